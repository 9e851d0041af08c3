package deadletter

import "time"

// Operation is one action on a frozen selection of letters, run by the server.
type Operation struct {
	ID         OperationID
	Action     Verb
	State      OperationState
	Phase      OperationPhase
	Why        string    // why it is stopped, or why it waits automatically; otherwise ""
	PhaseUntil time.Time // end of the hold or of the wait after the canary; otherwise zero
	By         string
	Through    Way
	Reason     string
	Key        string   // Idempotency-Key; requests of one principal with an equal key start only one operation
	Request    [32]byte // hash of the request; a different request with the same key is rejected
	Query      string   // query that selected the letters, with fixed times; "" = chosen ids
	Except     int      // letters that match the query but that the person excluded
	CreatedAt  time.Time
	SentAt     time.Time // when the last letter was sent; zero = none yet
	FinishedAt time.Time
	HaltedAt   time.Time // when it was last paused or stopped automatically; zero = never
	Total      int
	First      int // maximum number of letters taken from the selection; 0 = all
	Expect     int // number of letters that the person saw; the operation acts on no more than that; 0 = not given
	Changed    int // letters of the query that were left out because they changed after the person saw them
	Twice      int // letters that may have been sent twice, because the broker's confirm was lost
	Pace       Pace
	Base       Base
	To         string           // queue of a redirect; "" = each to its origin
	DueAt      time.Time        // reschedule: when the letters are due
	Patch      []byte           // edit: RFC 6902, on the decoded body
	Reveal     bool             // edit: the person may see masked data, so the patch may change it
	Reset      bool             // requeue: letters that come back get all their retries again
	Restored   bool             // includes letters that may have been sent since the backup from which the store was restored
	TakesOver  []OperationID    // halted operations that are cancelled so that this one gets their remaining letters
	Counts     map[Result]int   // sum = Total
	Queues     []OperationQueue // per origin queue, most letters first
}

// Pace describes how an operation sends its letters. Only requeues have a pace.
type Pace struct {
	Rate       float64       // letters per second, more than 0
	Canary     int           // letters sent first; 0 = none
	CanaryWait time.Duration // how long the canary is watched before the rest is sent
	StopAt     float64       // percentage of sent letters that may come back before the operation stops; 0 = off
	MaxDepth   int           // number of messages in a target queue at which the operation waits; 0 = no limit
	Newest     bool          // newest received first; otherwise oldest
	Hold       time.Duration // delay before the first letter is sent; the operation can be undone during it
}

// Base holds the counts at the start of an operation's last canary. Only events after that count
// for the verdict on the canary.
type Base struct {
	Taken    int // released letters
	Sent     int
	CameBack int
}

// OperationQueue is the part of an operation that belongs to one origin queue.
type OperationQueue struct {
	Broker, VHost, Queue string
	Inbox                string // set only if the queue is unknown
	Counts               map[Result]int
}

// Place returns the place to which the letters belong, as Letter.Place does.
func (q OperationQueue) Place() Origin {
	return belongs(Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue}, q.Inbox)
}

// OperationState is the state of an operation.
type OperationState string

const (
	OperationRunning   OperationState = "running"
	OperationPaused    OperationState = "paused"    // by a person
	OperationStopped   OperationState = "stopped"   // automatically: too many came back; a person resumes or cancels
	OperationDone      OperationState = "done"      // nothing left to send, and the verdict is known; later returns are still counted
	OperationCancelled OperationState = "cancelled" // the remaining letters were left unchanged
)

// Active reports whether the operation may still send or change letters, or whether its verdict is
// still unknown.
func (s OperationState) Active() bool {
	return s == OperationRunning || s == OperationPaused || s == OperationStopped
}

// Halted reports whether the operation keeps its letters and waits for a person.
func (s OperationState) Halted() bool { return s == OperationPaused || s == OperationStopped }

// OperationPhase is the progress of an operation. Pausing does not change it.
type OperationPhase string

const (
	PhaseSelecting OperationPhase = "selecting" // recording the frozen selection
	PhaseHolding   OperationPhase = "holding"   // hold time, in which it can be undone
	PhaseCanary    OperationPhase = "canary"    // sending the first letters
	PhaseWaiting   OperationPhase = "waiting"   // watching the first letters
	PhaseSending   OperationPhase = "sending"   // sending the rest
	PhaseWatching  OperationPhase = "watching"  // all sent; watching which stay quiet
	PhaseOver      OperationPhase = "over"
)

// Result is the result of an operation for one letter.
type Result string

const (
	ResultPending    Result = "pending"    // not touched yet
	ResultReleased   Result = "released"   // scheduled, due now: on its way to the dispatcher
	ResultConfirmed  Result = "confirmed"  // requeued, confirmed by the broker, being watched
	ResultQuiet      Result = "quiet"      // did not come back within the watch time
	ResultUnverified Result = "unverified" // did not come back, but it is unknown whether its queue is consumed
	ResultCameBack   Result = "came back"
	ResultReturned   Result = "returned" // held: the broker had no such queue
	ResultFailed     Result = "failed"   // held: it could not be published; the reason is given
	ResultInDoubt    Result = "in doubt" // held: the broker's confirm was lost
	ResultChanged    Result = "done"     // discarded, restored, held, released or purged
	ResultSkipped    Result = "skipped"
	ResultCancelled  Result = "cancelled"
)

// Results lists all results, in the order in which a letter reaches them.
var Results = []Result{
	ResultPending, ResultReleased, ResultConfirmed, ResultQuiet, ResultUnverified, ResultCameBack, ResultReturned, ResultFailed, ResultInDoubt, ResultChanged, ResultSkipped, ResultCancelled,
}

// Open reports whether the operation still has work to do on a letter with this result.
func (r Result) Open() bool { return r == ResultPending || r == ResultReleased }

// Acted reports whether the operation performed the requested action on letters with this result. A
// sent letter counts, whatever happened to the letter afterwards.
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
	DueAt  time.Time // current: when a scheduled letter leaves
	Error  string    // error of the latest death, masked; the title of the letter's group if no error was reported
	Group  GroupID   // current group, or the group that it is merged into; 0 = none
	Was    GroupID   // group, like Group, at the time when the operation took the letter; 0 = none, or not recorded
}

// SameError reports whether a letter that came back died of its earlier error again. The result
// "known" is false until the letter has been read again. It is also false for operations that were
// stored before dlo recorded this.
func (l *OperationLetter) SameError() (same, known bool) {
	return l.Group == l.Was, l.Group != 0 && l.Was != 0 && l.State != StateReceived
}

// BackGroup is a group of letters that an operation sent and that came back.
type BackGroup struct {
	Group   GroupID
	Title   string
	Letters int
	Same    bool // the letters were already in this group before the operation
}

// Total returns the number of the queue's letters in the operation.
func (q OperationQueue) Total() (n int) {
	for _, c := range q.Counts {
		n += c
	}
	return n
}

// Sent returns the number of letters that the broker has confirmed.
func (o *Operation) Sent() int {
	return o.Counts[ResultConfirmed] + o.Counts[ResultQuiet] + o.Counts[ResultUnverified] + o.Counts[ResultCameBack]
}

// Share is a part of a selection in which a plan treats all letters alike.
type Share struct {
	Origin        Origin // where they died; without a queue = unknown
	Inbox         string // inbox from which they were drained, if it is unknown where they died
	State         State
	Owner         OperationID // operation that has them; 0 = none
	Unpublishable string      // why RabbitMQ would refuse them as they are now; "" = it would accept them
	Oversize      bool        // their bodies are too large to publish
	CameBack      OperationID // last operation that sent them before they came back; 0 = none
	InDoubt       bool        // the confirm of their last attempt was lost, so they may already be in a queue
	InBroker      bool        // they wait in the broker for their retry
	HeldFrom      State       // state before they were held; "" = they are not held
	Restored      bool        // they may have been sent since the backup from which the store was restored
	Letters       int
	Examples      []ID // up to 5
}

// Place returns the place to which the letters belong. This is the queue that they died in or, if
// that queue is unknown, the inbox that they were drained from.
func (s *Share) Place() Origin { return belongs(s.Origin, s.Inbox) }
