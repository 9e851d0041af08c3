package deadletter

import "time"

// Attempt is one publish of a letter back to RabbitMQ.
type Attempt struct {
	Revision  int // revision that was sent; 0 = as received
	Letter    ID
	Number    int // value of the dlo-attempt header
	Token     Token
	Queue     string // target
	Operation OperationID
	Sends     int // number of publishes; more than 1 if an outcome was in doubt; all have the same token
	Outcome   OutcomeKind
	Detail    string
	At        time.Time // when the intent to publish was committed
	ClosedAt  time.Time // when the outcome became known
	Back      *Return   // death by which it came back; nil = it did not come back
	Probe     bool      // sent by a breaker: does not use up a retry when it comes back
	WaitsIn   string    // queue of the broker in which the letter waited first; "" = none
	WaitUntil time.Time // planned end of the wait in that queue
}

// Return is the death by which an attempt came back.
type Return struct {
	At     time.Time
	Queue  string
	Reason string
	Copies int // further copies with the same token
}

// OutcomeKind is the way in which a publish ended.
type OutcomeKind string

const (
	OutcomeOpen      OutcomeKind = "open"      // the intent is committed, the outcome is not known yet
	OutcomeConfirmed OutcomeKind = "confirmed" // acked and not returned
	OutcomeReturned  OutcomeKind = "returned"  // no such queue: 312 NO_ROUTE
	OutcomeNacked    OutcomeKind = "nacked"    // rejected by the queue
	OutcomeRefused   OutcomeKind = "refused"   // the message closed the channel, or cannot be encoded
	OutcomeInDoubt   OutcomeKind = "in doubt"  // sent, no confirm received
	OutcomeUnsent    OutcomeKind = "unsent"    // not sent: no connection
	OutcomeCameBack  OutcomeKind = "came back"
)

// Publishing is one message to be published.
type Publishing struct {
	Token      Token // the attempt's token; it identifies the letter if the letter comes back
	Queue      string
	Properties Properties
	Body       []byte
	Alone      bool          // sent on its own channel, so that it cannot put another message in doubt
	Wait       *Wait         // where it waits first; nil = sent to its queue immediately
	WaitFor    time.Duration // duration of that wait
}

// Outcome is the result of a Publishing.
type Outcome struct {
	Token  Token
	Kind   OutcomeKind
	Detail string
}

// Mark is the effect of an outcome on its letter. The dispatcher computes it and the store commits
// it.
type Mark struct {
	Letter  ID
	Token   Token
	Outcome OutcomeKind
	Detail  string
	DueAt   time.Time // confirmed: end of the watch; nacked, unsent or to be resent: time of the next try; held in doubt: zero
	Depth   *int      // ready messages in the queue when it was sent; nil = unknown
	Resend  bool      // in doubt: stays publishing, to be resent with the same token
	WaitsIn string    // confirmed by a broker waiter: the letter stays scheduled in this queue until DueAt
	Stays   bool      // no broker waiter took it: the letter stays scheduled in the store until DueAt
	Notice  *Notice

	Channels []string // channels that are notified if the letter is held
}

// Open reports whether a copy that comes back now belongs to this attempt, because the message may
// still be in its queue or on its way there.
func (k OutcomeKind) Open() bool {
	return k == OutcomeOpen || k == OutcomeConfirmed || k == OutcomeInDoubt
}

// Used reports whether the letter is known to have reached its queue. Only then does the attempt
// count.
func (k OutcomeKind) Used() bool { return k == OutcomeConfirmed || k == OutcomeCameBack }
