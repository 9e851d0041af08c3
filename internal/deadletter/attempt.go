package deadletter

import "time"

// Attempt is one publish of a letter back to RabbitMQ.
type Attempt struct {
	Revision  int         `json:"revision,omitzero"` // revision that was sent; 0 = the message as it was received
	Letter    ID          `json:"-"`
	Number    int         `json:"number"` // value of the header dlo-attempt
	Token     Token       `json:"-"`
	Queue     string      `json:"queue"` // queue to which the letter was sent
	Operation OperationID `json:"operation"`
	// number of publishes; more than 1 if an outcome was in doubt; all of them have the same token
	Sends    int         `json:"sends"`
	Outcome  OutcomeKind `json:"outcome"`
	Detail   string      `json:"detail"`
	At       time.Time   `json:"at"`                 // time at which the intent to publish was committed
	ClosedAt time.Time   `json:"closed_at,omitzero"` // time at which the outcome became known
	Back     *Return     `json:"came_back,omitzero"` // death with which the letter came back; nil = it did not come back
	Probe    bool        `json:"-"`                  // sent as a probe of a breaker; if it comes back, it does not count as a retry
	// queue of the broker in which the letter waited before it was delivered; "" = none
	WaitsIn   string    `json:"waits_in,omitzero"`
	WaitUntil time.Time `json:"wait_until,omitzero"` // planned end of the wait in WaitsIn
}

// Return describes how a letter died again after an attempt, and came back to dlo.
type Return struct {
	At     time.Time `json:"at"`
	Queue  string    `json:"queue"`
	Reason string    `json:"reason"`
	Copies int       `json:"further_copies"` // number of further copies with the same token
}

// OutcomeKind says how a publish ended.
type OutcomeKind string

const (
	OutcomeOpen      OutcomeKind = "open"      // the intent to publish is committed, but the outcome is not known yet
	OutcomeConfirmed OutcomeKind = "confirmed" // confirmed by the broker and not returned
	OutcomeReturned  OutcomeKind = "returned"  // returned because the queue does not exist: 312 NO_ROUTE
	OutcomeNacked    OutcomeKind = "nacked"    // rejected by the queue with a nack
	// the broker closed the channel because of the message, or the message cannot be encoded
	OutcomeRefused  OutcomeKind = "refused"
	OutcomeInDoubt  OutcomeKind = "in doubt" // sent, but no confirm was received
	OutcomeUnsent   OutcomeKind = "unsent"   // not sent, because there was no connection
	OutcomeCameBack OutcomeKind = "came back"
)

// Publishing is one message that is to be published.
type Publishing struct {
	Token      Token // token of the attempt, by which the letter is recognised if it comes back
	Queue      string
	Properties Properties
	Body       []byte
	Alone      bool          // the message has its own channel, so that it cannot put another message in doubt
	Wait       *Wait         // place in the broker where the letter waits first; nil = it goes to its queue immediately
	WaitFor    time.Duration // duration of the wait
}

// Outcome is the outcome of a Publishing.
type Outcome struct {
	Token  Token
	Kind   OutcomeKind
	Detail string
}

// Mark says how an outcome changes a letter. The dispatcher computes it, and the store commits it.
type Mark struct {
	Letter  ID
	Token   Token
	Outcome OutcomeKind
	Detail  string
	// confirmed: end of the watch; nacked, unsent or resend: time of the next try; held in doubt:
	// zero
	DueAt time.Time
	Depth *int // number of ready messages in the queue when the letter was sent; nil = unknown
	// the attempt is in doubt; the letter stays in the state publishing and is sent again with the
	// same token
	Resend bool
	// the letter is confirmed and waits in this queue of the broker; it stays in the state
	// scheduled until DueAt
	WaitsIn string
	// the letter could not be put into a wait queue of the broker; it stays in the store, in the
	// state scheduled, until DueAt
	Stays  bool
	Notice *Notice

	Channels []string // channels that are notified if the letter becomes held
}

// Open reports whether the message of an attempt may still be in its queue or on its way there. If
// the letter comes back while an attempt is open, it comes back from this attempt.
func (k OutcomeKind) Open() bool {
	return k == OutcomeOpen || k == OutcomeConfirmed || k == OutcomeInDoubt
}

// Used reports whether an attempt with this outcome certainly reached the letter's queue. Only such
// an attempt is counted as an attempt of the letter.
func (k OutcomeKind) Used() bool { return k == OutcomeConfirmed || k == OutcomeCameBack }
