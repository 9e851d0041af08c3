package deadletter

import "time"

// Operation is one action on a frozen selection of letters, run by the server.
type Operation struct {
	ID         OperationID
	Action     Verb
	State      OperationState
	By         string
	Through    string // page, api or cli
	Reason     string
	Key        string // Idempotency-Key: the same key by the same principal is the same operation
	CreatedAt  time.Time
	FinishedAt time.Time
	Total      int
	Counts     map[Result]int   // sum = Total
	Queues     []OperationQueue // per origin queue, most letters first
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
	OperationDone      OperationState = "done"      // nothing is to go; what came back later is still counted
	OperationCancelled OperationState = "cancelled" // the rest stayed as it was
)

// Result is what an operation did with one letter.
type Result string

const (
	ResultPending   Result = "pending"   // not touched yet
	ResultReleased  Result = "released"  // scheduled, due now: on its way to the dispatcher
	ResultConfirmed Result = "confirmed" // requeued, confirmed by the broker
	ResultCameBack  Result = "came back"
	ResultFailed    Result = "failed" // held, with the reason
	ResultChanged   Result = "done"   // discarded or restored
	ResultSkipped   Result = "skipped"
	ResultCancelled Result = "cancelled"
)

// Open says whether the operation still has work with a letter of this result.
func (r Result) Open() bool { return r == ResultPending || r == ResultReleased }

// OperationLetter is the result of an operation for one letter.
type OperationLetter struct {
	Letter ID
	Queue  string
	Result Result
	Reason string
}

// Total is how many letters of the queue the operation has.
func (q OperationQueue) Total() int {
	n := 0
	for _, c := range q.Counts {
		n += c
	}
	return n
}
