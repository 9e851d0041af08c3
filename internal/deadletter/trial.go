package deadletter

import "time"

// TrialQueue is the queue of trials. In a trial, dlo sends a letter of its own through this queue.
// People can thus see the path of a letter before they trust dlo with their letters.
//
// The letter dies in this queue, and dlo sends it back to the queue. dlo has other queues of its
// own, but it never sends letters back to them.
const TrialQueue = "dlo.try"

// TrialRule is the name of the rule for letters that dlo made for a trial. No configured rule can
// have this name.
const TrialRule = "dlo.try"

// TrialType is the full name of the type that trial letters have.
const TrialType = "dlo.v1.Trial"

// HeaderTrial is a header of messages in TrialQueue. It proves that dlo made the message. Its value
// is a mark that only this store can compute from the message id.
const HeaderTrial = "dlo-try"

// TrialKept is the time for which the queue and the letter of a trial are kept.
const TrialKept = time.Hour

// Tried reports whether dlo made the letter for a trial or a probe.
func (l *Letter) Tried() bool { return l.Rule == TrialRule && Tries(l.Queue) }

// Tried reports whether dlo made the letter for a trial or a probe. Such a letter has no group.
func (r *Row) Tried() bool { return Tries(r.Queue) && r.Group == 0 && r.State != StateReceived }

// Tries reports whether a queue is one in which trial letters or probe letters die.
func Tries(queue string) bool { return queue == TrialQueue || IsProbe(queue) }

// Trial says how far a trial letter has got. A time is zero until the letter has reached that
// point.
type Trial struct {
	Broker     string     `json:"broker"`
	VHost      string     `json:"vhost"`
	By         string     `json:"by"`
	State      TrialState `json:"state"`
	Problem    string     `json:"problem"`         // reason why the trial failed
	Cure       string     `json:"cure"`            // command that solves the problem; "" = there is none
	Letter     ID         `json:"letter,omitzero"` // set when the letter has arrived
	Summary    string     `json:"summary"`         // summary of the decoded body
	StartedAt  time.Time  `json:"started_at"`
	RejectedAt time.Time  `json:"rejected_at,omitzero"` // time at which the consumer of the trial rejected the letter
	ArrivedAt  time.Time  `json:"arrived_at,omitzero"`
	DecodedAt  time.Time  `json:"decoded_at,omitzero"`
	RequeuedAt time.Time  `json:"requeued_at,omitzero"` // time at which the broker confirmed the requeue
	AcceptedAt time.Time  `json:"accepted_at,omitzero"` // time at which the consumer of the trial accepted the letter
	QuietAt    time.Time  `json:"quiet_at,omitzero"`
}

// TrialState is the state of a trial.
type TrialState string

// These are the states of a trial.
const (
	TrialRunning TrialState = "running"
	TrialDone    TrialState = "done" // the letter has completed the whole path
	TrialFailed  TrialState = "failed"
)

// TrialMessage is the message that a trial sends and that the consumer of the trial receives.
type TrialMessage struct {
	Properties Properties
	Body       []byte
}

// TrialRefused is the error for a trial that cannot be run. It contains the reason, and what to do
// about it.
type TrialRefused struct{ Why, Cure string }

func (e *TrialRefused) Error() string { return e.Why }
