package deadletter

import "time"

// Operation is one action on a frozen selection of letters, run by the server.
type Operation struct {
	ID         OperationID
	Action     Verb
	State      OperationState
	Phase      OperationPhase
	Why        string    // why it is stopped, or waits by itself; "" otherwise
	PhaseUntil time.Time // end of a hold or of the wait after the canary; zero in other phases
	By         string
	Through    Way
	Reason     string
	Key        string   // Idempotency-Key: the same key by the same principal is the same operation
	Request    [32]byte // hash of what was asked for, so that a key that is used again for something else is refused
	Query      string   // what selected the letters, with fixed times; "" = chosen ids
	Except     int      // letters that the query selects and the person left out
	CreatedAt  time.Time
	SentAt     time.Time // the last letter was sent; zero before
	FinishedAt time.Time
	HaltedAt   time.Time // it was paused, or stopped by itself, the last time; zero: it never was
	Total      int
	First      int // only so many of the selection were asked for; 0 = all
	Expect     int // how many letters the person was shown; more than that are not acted on. 0 = not said
	Changed    int // letters of the query that had changed between its display and its start, and were left out
	Twice      int // letters that may have been sent twice: the answer of the broker was lost
	Pace       Pace
	Base       Base
	To         string           // queue of a redirect; "" = each to its origin
	DueAt      time.Time        // of a reschedule: when the letters are due
	Patch      []byte           // of an edit: RFC 6902, on the decoded body
	Reset      bool             // of a requeue: what comes back has all its retries again
	Restored   bool             // also letters that may have been sent since the copy that the store was restored from
	TakesOver  []OperationID    // halted operations whose rest is cancelled for it
	Counts     map[Result]int   // sum = Total
	Queues     []OperationQueue // per origin queue, most letters first
}

// Pace is how an operation sends: only requeues have one.
type Pace struct {
	Rate       float64       // letters per second, above 0
	Canary     int           // letters that go first; 0 = none
	CanaryWait time.Duration // how long the canary is watched before the rest goes
	StopAt     float64       // per cent of what was sent that came back at which it stops; 0 = never
	MaxDepth   int           // depth of a target queue at which it waits by itself; 0 = no limit
	Newest     bool          // newest received first, else oldest
	Hold       time.Duration // before the first letter, so that the operation can be undone
}

// Base is what stood when the last canary of an operation began: what it is judged by came after.
type Base struct {
	Taken    int // letters that were released
	Sent     int
	CameBack int
}

// OperationQueue is the share of an operation that belongs to one origin queue.
type OperationQueue struct {
	Broker, VHost, Queue string
	Counts               map[Result]int
}

// OperationState is where an operation stands.
type OperationState string

const (
	OperationRunning   OperationState = "running"
	OperationPaused    OperationState = "paused"    // by a person
	OperationStopped   OperationState = "stopped"   // by itself: too many came back; a person resumes or cancels it
	OperationDone      OperationState = "done"      // nothing is to go, and the verdict is known; what comes back later is still counted
	OperationCancelled OperationState = "cancelled" // the rest stayed as it was
)

// Active says whether the operation may still send or change letters, or is waiting for its
// verdict.
func (s OperationState) Active() bool {
	return s == OperationRunning || s == OperationPaused || s == OperationStopped
}

// Halted says whether the operation keeps letters and waits for a person.
func (s OperationState) Halted() bool { return s == OperationPaused || s == OperationStopped }

// OperationPhase is how far an operation is; pausing keeps it.
type OperationPhase string

const (
	PhaseSelecting OperationPhase = "selecting" // the frozen selection is being laid out
	PhaseHolding   OperationPhase = "holding"   // a moment in which it can be undone
	PhaseCanary    OperationPhase = "canary"    // the first letters go
	PhaseWaiting   OperationPhase = "waiting"   // the first letters are watched
	PhaseSending   OperationPhase = "sending"   // the rest goes
	PhaseWatching  OperationPhase = "watching"  // all went; which stay quiet?
	PhaseOver      OperationPhase = "over"
)

// Result is what an operation did with one letter.
type Result string

const (
	ResultPending    Result = "pending"    // not touched yet
	ResultReleased   Result = "released"   // scheduled, due now: on its way to the dispatcher
	ResultConfirmed  Result = "confirmed"  // requeued, confirmed by the broker, being watched
	ResultQuiet      Result = "quiet"      // did not come back within the watch window
	ResultUnverified Result = "unverified" // did not come back, but dlo could not see whether its queue is drained
	ResultCameBack   Result = "came back"
	ResultReturned   Result = "returned" // held: the broker had no such queue
	ResultFailed     Result = "failed"   // held: it could not be published, with the reason
	ResultInDoubt    Result = "in doubt" // held: the answer of the broker was lost
	ResultChanged    Result = "done"     // discarded, restored, held, released or purged
	ResultSkipped    Result = "skipped"
	ResultCancelled  Result = "cancelled"
)

// Results lists all results, in the order of a letter's way through an operation.
var Results = []Result{
	ResultPending, ResultReleased, ResultConfirmed, ResultQuiet, ResultUnverified, ResultCameBack, ResultReturned, ResultFailed, ResultInDoubt, ResultChanged, ResultSkipped, ResultCancelled,
}

// Open says whether the operation still has work with a letter of this result.
func (r Result) Open() bool { return r == ResultPending || r == ResultReleased }

// Acted says whether the operation did to a letter of this result what it was asked for; what it
// sent counts, whatever became of it.
func (r Result) Acted() bool {
	return r == ResultConfirmed || r == ResultQuiet || r == ResultUnverified || r == ResultCameBack || r == ResultChanged
}

// OperationLetter is the result of an operation for one letter.
type OperationLetter struct {
	Letter ID
	Queue  string
	Result Result
	Reason string
	Twice  bool      // it may have been sent twice
	State  State     // now
	DueAt  time.Time // now: when a scheduled letter leaves
	Error  string    // of its latest death, masked; the title of its group where nobody reported one
	Group  GroupID   // now, the head of those that are merged; 0 = none
	Was    GroupID   // when the operation took the letter, likewise; 0 = none, or it was not recorded
}

// SameError says whether a letter that came back died again of what it had died of before. It is
// not known while the letter has not been read again, and of operations from before this was
// recorded.
func (l *OperationLetter) SameError() (same, known bool) {
	return l.Group == l.Was, l.Group != 0 && l.Was != 0 && l.State != StateReceived
}

// BackGroup is a group that letters of an operation came back to.
type BackGroup struct {
	Group   GroupID
	Title   string
	Letters int
	Same    bool // they were in this group before
}

// Total is how many letters of the queue the operation has.
func (q OperationQueue) Total() (n int) {
	for _, c := range q.Counts {
		n += c
	}
	return n
}

// Sent is how many letters the broker has confirmed.
func (o *Operation) Sent() int {
	return o.Counts[ResultConfirmed] + o.Counts[ResultQuiet] + o.Counts[ResultUnverified] + o.Counts[ResultCameBack]
}

// Share is a part of a selection whose letters are alike to a plan.
type Share struct {
	Origin        Origin // without queue: nothing says where they died
	State         State
	Owner         OperationID // the operation that has them; 0 = none
	Unpublishable string      // why RabbitMQ would refuse them as they are; "" = it would not
	Oversize      bool        // their bodies are larger than what is published
	CameBack      OperationID // the last operation that sent them and after which they came back; 0 = none
	InDoubt       bool        // the answer to their last attempt was lost: they may be in a queue already
	InBroker      bool        // the broker has them until their retry
	HeldFrom      State       // what they were before they were held; "" where they are not held
	Restored      bool        // they may have been sent since the copy that the store was restored from
	Letters       int
	Examples      []ID // up to 5
}
