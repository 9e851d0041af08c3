package deadletter

import "time"

// TrialQueue is the queue of trials: dlo sends a letter of its own through it, so that people see
// the way of a letter before they trust theirs to it. It is the one queue of dlo's own that letters
// die in and are sent back to, and only those that dlo made.
const TrialQueue = "dlo.try"

// TrialRule is the name of the rule that decided on a letter that dlo made for a trial. No rule
// of a configuration has it.
const TrialRule = "dlo.try"

// TrialType is the full name of the type of such letters.
const TrialType = "dlo.v1.Trial"

// HeaderTrial has what shows that dlo made a message of TrialQueue: a mark that only this store
// gives to its message id.
const HeaderTrial = "dlo-try"

// TrialKept is how long the queue of a trial, and its letter, stay.
const TrialKept = time.Hour

// Tried says whether dlo made the letter for a trial.
func (l *Letter) Tried() bool { return l.Rule == TrialRule && l.Origin.Queue == TrialQueue }

// Tried says whether dlo made the letter for a trial: such letters are of no group.
func (r *Row) Tried() bool { return r.Queue == TrialQueue && r.Group == 0 && r.State != StateReceived }

// Trial is a letter of dlo's own on its way, and how far it is. Times are zero before.
type Trial struct {
	Broker, VHost string
	By            string
	State         TrialState
	Problem       string // why it did not go the whole way
	Cure          string // a command; "" = there is none
	Letter        ID     // once it has arrived
	Summary       string // of its body, decoded
	StartedAt     time.Time
	RejectedAt    time.Time // by the consumer of the trial
	ArrivedAt     time.Time
	DecodedAt     time.Time
	RequeuedAt    time.Time // confirmed by the broker
	AcceptedAt    time.Time // by the consumer of the trial
	SettledAt     time.Time
}

// TrialState is where a trial stands.
type TrialState string

// The states of a trial.
const (
	TrialRunning TrialState = "running"
	TrialDone    TrialState = "done" // its letter went the whole way
	TrialFailed  TrialState = "failed"
)

// TrialMessage is what a trial sends, and its consumer takes.
type TrialMessage struct {
	Properties Properties
	Body       []byte
}

// TrialRefused is a trial that cannot be: why, and what to do about it.
type TrialRefused struct{ Why, Cure string }

func (e *TrialRefused) Error() string { return e.Why }
