package deadletter

import "time"

// Attempt is one publish of a letter back to RabbitMQ.
type Attempt struct {
	Revision  int // of the letter that was sent; 0 = as received
	Letter    ID
	Number    int // what the header dlo-attempt says
	Token     Token
	Queue     string // target
	Operation OperationID
	Sends     int // how often it went out: more than 1 after a doubt, always with the same token
	Outcome   OutcomeKind
	Detail    string
	At        time.Time // intent committed
	ClosedAt  time.Time // outcome known
	Back      *Return   // came back: what it died of
	Probe     bool      // by a breaker: it is not counted when it comes back
	WaitsIn   string    // the queue of the broker that it waited in before; "" = none
	WaitUntil time.Time // when it was to leave there
}

// Return is the death by which an attempt came back.
type Return struct {
	At     time.Time
	Queue  string
	Reason string
	Copies int // further copies with the same token
}

// OutcomeKind is how a publish ended.
type OutcomeKind string

const (
	OutcomeOpen      OutcomeKind = "open"      // intent committed, nothing known yet
	OutcomeConfirmed OutcomeKind = "confirmed" // acked and not returned
	OutcomeReturned  OutcomeKind = "returned"  // no such queue: 312 NO_ROUTE
	OutcomeNacked    OutcomeKind = "nacked"    // the queue refused it
	OutcomeRefused   OutcomeKind = "refused"   // the channel was closed because of it, or it cannot be encoded
	OutcomeInDoubt   OutcomeKind = "in doubt"  // sent, no answer
	OutcomeUnsent    OutcomeKind = "unsent"    // never left: there was no connection
	OutcomeCameBack  OutcomeKind = "came back"
)

// Publishing is one message for the wire.
type Publishing struct {
	Token      Token // of the attempt: how a return is told apart
	Queue      string
	Properties Properties
	Body       []byte
	Alone      bool          // on a channel of its own, so that it can put no other in doubt
	Wait       *Wait         // where it waits first; nil = it goes to its queue at once
	WaitFor    time.Duration // how long it waits there
}

// Outcome is what became of a Publishing.
type Outcome struct {
	Token  Token
	Kind   OutcomeKind
	Detail string
}

// Mark is what an outcome does to its letter: computed by the dispatcher, committed by the store.
type Mark struct {
	Letter  ID
	Token   Token
	Outcome OutcomeKind
	Detail  string
	DueAt   time.Time // confirmed: end of the watch; nacked, unsent or to be sent again: when; zero for a doubt that is held
	Depth   *int      // messages that were ready in the queue when it was sent; nil = unknown
	Resend  bool      // in doubt: stays publishing, to be sent again with the same token
	WaitsIn string    // confirmed by a waiter of the broker: stays scheduled, until DueAt in this queue
	Stays   bool      // no waiter of the broker took it: stays scheduled until DueAt, in the store
	Notice  *Notice

	Channels []string // where people are told of it, should it be held
}

// Open says whether a copy that comes back now belongs to this attempt: it may still be in its
// queue, or on its way.
func (k OutcomeKind) Open() bool {
	return k == OutcomeOpen || k == OutcomeConfirmed || k == OutcomeInDoubt
}

// Used says whether the letter is known to have reached its queue, so that the attempt counts.
func (k OutcomeKind) Used() bool { return k == OutcomeConfirmed || k == OutcomeCameBack }
