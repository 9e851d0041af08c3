package deadletter

import "time"

// TrialQueue is the queue of trials. dlo sends a letter of its own through it, so that people can
// see the path of a letter before they trust dlo with their own letters. It is the only one of
// dlo's own queues in which letters die and to which dlo sends letters back. This applies only to
// letters that dlo made.
const TrialQueue = "dlo.try"

// TrialRule is the name of the rule for letters that dlo made for a trial. No configured rule can
// have this name.
const TrialRule = "dlo.try"

// TrialType is the full name of the type of trial letters.
const TrialType = "dlo.v1.Trial"

// HeaderTrial is the header that proves that dlo made a message in TrialQueue. Its value is a mark
// that only this store assigns to the message id.
const HeaderTrial = "dlo-try"

// TrialKept is how long a trial's queue and its letter are kept.
const TrialKept = time.Hour

// Tried reports whether dlo made the letter for a trial or a probe.
func (l *Letter) Tried() bool { return l.Rule == TrialRule && Tries(l.Origin.Queue) }

// Tried reports whether dlo made the letter for a trial or a probe. Such letters have no group.
func (r *Row) Tried() bool { return Tries(r.Queue) && r.Group == 0 && r.State != StateReceived }

// Tries reports whether the letters of trials or probes die in a queue.
func Tries(queue string) bool { return queue == TrialQueue || IsProbe(queue) }

// Trial is the progress of a trial letter. Times are zero until reached.
type Trial struct {
	Broker, VHost string
	By            string
	State         TrialState
	Problem       string // why it did not complete
	Cure          string // a command; "" = there is none
	Letter        ID     // set after arrival
	Summary       string // summary of the decoded body
	StartedAt     time.Time
	RejectedAt    time.Time // by the trial's consumer
	ArrivedAt     time.Time
	DecodedAt     time.Time
	RequeuedAt    time.Time // confirmed by the broker
	AcceptedAt    time.Time // by the trial's consumer
	SettledAt     time.Time
}

// TrialState is the state of a trial.
type TrialState string

// These are the states of a trial.
const (
	TrialRunning TrialState = "running"
	TrialDone    TrialState = "done" // its letter completed the path
	TrialFailed  TrialState = "failed"
)

// TrialMessage is the message that a trial sends and that its consumer receives.
type TrialMessage struct {
	Properties Properties
	Body       []byte
}

// TrialRefused is the error for a trial that cannot be run. It says why, and how to change that.
type TrialRefused struct{ Why, Cure string }

func (e *TrialRefused) Error() string { return e.Why }
