package deadletter

import (
	"fmt"
	"time"
)

// Operation is one action on a frozen selection of letters. The server runs it.
type Operation struct {
	ID         OperationID    `json:"id"`
	Action     Verb           `json:"action"`
	State      OperationState `json:"state"`
	Phase      OperationPhase `json:"phase"`
	Why        string         `json:"why"`                  // reason why the operation is stopped or waits automatically; otherwise ""
	PhaseUntil time.Time      `json:"phase_until,omitzero"` // end of the hold, or of the wait after the canary; otherwise zero
	By         string         `json:"by"`
	Through    Way            `json:"through"`
	Reason     string         `json:"reason"`
	Key        string         `json:"-"` // Idempotency-Key; requests of one principal with the same key start only one operation
	Request    [32]byte       `json:"-"` // hash of the request; another request with the same key is rejected
	// query that selected the letters, with fixed times; "" = the letters were chosen by id
	Query      string    `json:"query"`
	Except     int       `json:"except"` // number of letters that match the query but that the person excluded
	CreatedAt  time.Time `json:"created_at"`
	SentAt     time.Time `json:"sent_at,omitzero"` // time at which the last letter was sent; zero = not yet
	FinishedAt time.Time `json:"finished_at,omitzero"`
	HaltedAt   time.Time `json:"-"` // time at which the operation was last paused, or stopped automatically; zero = never
	Total      int       `json:"total"`
	First      int       `json:"-"` // maximum number of letters that are taken from the selection; 0 = all
	// number of letters that the person saw, which is the maximum for the operation; 0 = not given
	Expect int `json:"-"`
	// number of letters that were left out because they changed after the person saw them
	Changed  int       `json:"changed"`
	Twice    int       `json:"twice"` // number of letters that may have been sent twice, because the broker's confirm was lost
	Pace     Pace      `json:"pace"`
	Base     Base      `json:"-"`
	To       string    `json:"to"`                        // queue to which a redirect sends the letters; "" = each letter goes to its own queue
	DueAt    time.Time `json:"due_at,omitzero"`           // for a reschedule: time at which the letters become due
	Patch    []byte    `json:"-"`                         // for an edit: patch of the decoded body (RFC 6902)
	Reveal   bool      `json:"-"`                         // for an edit: the person may see masked values, so that the patch may change them
	Reset    bool      `json:"reset_attempts,omitzero"`   // for a requeue: letters that come back get all their retries again
	Restored bool      `json:"include_restored,omitzero"` // the operation also takes letters that may have been sent after the backup from which the store was restored
	// halted operations that are cancelled, so that this operation gets their remaining letters
	TakesOver []OperationID    `json:"-"`
	Counts    map[Result]int   `json:"counts"` // number of letters by result; the sum is Total
	Queues    []OperationQueue `json:"queues"` // numbers by queue of origin, most letters first
	// reason why none of the letters that are left can be sent now; "" = they can be sent, or none are
	// left
	Away string `json:"away"`
}

// Pace says how an operation sends its letters. Only operations that send letters have a pace.
type Pace struct {
	Rate       float64       `json:"rate"`        // letters per second, above 0
	Canary     int           `json:"canary"`      // number of letters that are sent first; 0 = none
	CanaryWait time.Duration `json:"canary_wait"` // time for which the canary is watched before the other letters are sent
	// percentage of sent letters that may come back before the operation stops; 0 = it never stops
	StopAt   float64       `json:"stop_at"`
	MaxDepth int           `json:"max_depth"` // number of messages in a target queue at which the operation waits; 0 = no limit
	Newest   NewestFirst   `json:"order"`
	Hold     time.Duration `json:"hold"` // time before the first letter is sent, during which the operation can be undone
}

// PaceAsked is the part of a request that says how letters are sent. For a nil field, the default
// applies.
type PaceAsked struct {
	Rate       *float64       `json:"rate,omitzero"`   // letters per second
	Canary     *int           `json:"canary,omitzero"` // number of letters that are sent first and watched; 0 = none
	CanaryWait *time.Duration `json:"canary_wait,omitzero"`
	// percentage of letters that came back at which the operation stops; 0 = never
	StopAt   *float64       `json:"stop_at,omitzero"`
	MaxDepth *int           `json:"max_depth,omitzero"` // maximum number of messages in a target queue; 0 = no limit
	Newest   NewestFirst    `json:"order,omitzero"`
	Hold     *time.Duration `json:"hold,omitzero"`
}

// NewestFirst says that letters are sent newest received first; otherwise oldest first.
type NewestFirst bool

// String returns newest or oldest.
func (n NewestFirst) String() string {
	if n {
		return "newest"
	}
	return "oldest"
}

// ParseNewestFirst parses the result of String. The error wraps ErrInvalid.
func ParseNewestFirst(text string) (NewestFirst, error) {
	for _, n := range []NewestFirst{false, true} {
		if n.String() == text {
			return n, nil
		}
	}
	return false, fmt.Errorf("%w: the order is oldest or newest: which letters go first", ErrInvalid)
}

// Base contains the counts of an operation at the start of its last canary. The canary is the first
// part of the letters, which is sent as a test. dlo judges the canary only by what happened after
// these counts were taken.
type Base struct {
	Taken    int // number of letters that were released
	Sent     int
	CameBack int
}

// OperationQueue contains the counts of an operation for the letters of one queue.
type OperationQueue struct {
	Broker string         `json:"broker"`
	VHost  string         `json:"vhost"`
	Queue  string         `json:"queue"`
	Inbox  string         `json:"-"` // inbox of the letters; set only if their queue is unknown
	Counts map[Result]int `json:"counts"`
}

// Place returns the place to which the letters belong, as Letter.Place does.
func (q OperationQueue) Place() Origin {
	return placeOf(Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue}, q.Inbox)
}

// OperationState is the state of an operation.
type OperationState string

const (
	OperationRunning OperationState = "running"
	OperationPaused  OperationState = "paused" // a person paused the operation
	// dlo stopped the operation because too many letters came back; a person resumes or cancels it
	OperationStopped OperationState = "stopped"
	// there is nothing left to send, and there is a verdict on every letter; letters that come back
	// later still count
	OperationDone      OperationState = "done"
	OperationCancelled OperationState = "cancelled" // the remaining letters were not changed
)

// Active reports whether the operation may still send or change letters, or waits for the verdict
// on its letters.
func (s OperationState) Active() bool {
	return s == OperationRunning || s == OperationPaused || s == OperationStopped
}

// Halted reports whether the operation keeps its letters and waits for a person.
func (s OperationState) Halted() bool { return s == OperationPaused || s == OperationStopped }

// OperationPhase says how far an operation has come. A pause does not change the phase.
type OperationPhase string

const (
	PhaseSelecting OperationPhase = "selecting" // the frozen selection is being recorded
	PhaseHolding   OperationPhase = "holding"   // the operation waits and can be undone
	PhaseCanary    OperationPhase = "canary"    // the first letters are being sent
	PhaseWaiting   OperationPhase = "waiting"   // the first letters are being watched
	PhaseSending   OperationPhase = "sending"   // the other letters are being sent
	PhaseWatching  OperationPhase = "watching"  // all letters are sent and are being watched
	PhaseOver      OperationPhase = "over"
)

// Result says what an operation has done with one letter.
type Result string

const (
	ResultPending  Result = "pending"  // the operation has not acted on the letter yet
	ResultReleased Result = "released" // the letter is scheduled and due now, so that the dispatcher will send it
	// the letter was requeued, the broker has confirmed it, and it is being watched
	ResultConfirmed Result = "confirmed"
	ResultQuiet     Result = "quiet" // the letter did not come back while it was watched
	// the letter did not come back, but it is unknown whether its queue is consumed
	ResultUnverified Result = "unverified"
	ResultCameBack   Result = "came back"
	ResultReturned   Result = "returned" // the letter is held, because the broker had no such queue
	// the letter is held, because it could not be published; the reason is recorded
	ResultFailed    Result = "failed"
	ResultInDoubt   Result = "in doubt" // the letter is held, because the broker's confirm was lost
	ResultChanged   Result = "done"     // the letter was discarded, restored, held, released or purged
	ResultSkipped   Result = "skipped"
	ResultCancelled Result = "cancelled"
)

// Results lists all results, in the order in which a letter gets them.
var Results = []Result{
	ResultPending, ResultReleased, ResultConfirmed, ResultQuiet, ResultUnverified, ResultCameBack, ResultReturned,
	ResultFailed, ResultInDoubt, ResultChanged, ResultSkipped, ResultCancelled,
}

// Open reports whether the operation still has work to do on a letter with this result.
func (r Result) Open() bool { return r == ResultPending || r == ResultReleased }

// Acted reports whether the operation performed its action on a letter that has this result. A
// letter that was sent counts, even if it came back after that.
func (r Result) Acted() bool {
	return r == ResultConfirmed || r == ResultQuiet || r == ResultUnverified || r == ResultCameBack ||
		r == ResultChanged
}

// OperationLetter is the result of an operation for one letter.
type OperationLetter struct {
	Letter ID        `json:"letter"`
	Queue  string    `json:"queue"`
	Result Result    `json:"result"`
	Reason string    `json:"reason"`
	Twice  bool      `json:"twice"`           // the letter may have been sent twice
	State  State     `json:"state"`           // current state
	DueAt  time.Time `json:"due_at,omitzero"` // if the letter is scheduled, when it is sent
	// the error of the latest death, without masked values; if there is none, the title of the group
	Error string  `json:"error"`
	Group GroupID `json:"group,omitzero"` // the current group, or the one into which that is merged; missing = none
	// group when the operation took the letter, or the group into which that is merged; 0 = none,
	// or not recorded
	Was GroupID `json:"-"`
}

// SameError reports whether a letter that came back died with the same error as before. The result
// "known" is false until the letter has been read again. It is also false for operations of older
// versions that did not record the group.
func (l *OperationLetter) SameError() (same, known bool) {
	return l.Group == l.Was, l.Group != 0 && l.Was != 0 && l.State != StateReceived
}

// BackGroup contains the number of letters of an operation that came back into the same group.
type BackGroup struct {
	Group   GroupID
	Title   string
	Letters int
	Same    bool // the letters were already in this group before the operation
}

// Total returns the number of letters of the queue in the operation.
func (q OperationQueue) Total() (n int) {
	for _, c := range q.Counts {
		n += c
	}
	return n
}

// Sent returns the number of letters that the operation sent and the broker confirmed.
func (o *Operation) Sent() int {
	return o.Counts[ResultConfirmed] + o.Counts[ResultQuiet] + o.Counts[ResultUnverified] + o.Counts[ResultCameBack]
}

// Share is a part of a selection of letters. When an operation is planned, all letters of a share
// are treated in the same way.
type Share struct {
	Origin        Origin // place where the letters died; without a queue if that is unknown
	Inbox         string // inbox from which the letters were drained, if it is unknown where they died
	State         State
	Owner         OperationID // operation to which the letters belong; 0 = none
	Unpublishable string      // reason why RabbitMQ would reject the letters as they are now; "" = it would accept them
	Oversize      bool        // the bodies are too large to publish
	CameBack      OperationID // last operation that sent the letters before they came back; 0 = none
	InDoubt       bool        // the confirm of the last attempt was lost, so that the letters may already be in a queue
	InBroker      bool        // the letters wait in the broker for their retry
	HeldFrom      State       // state before the letters were held; "" = they are not held
	Restored      bool        // the letters may have been sent after the backup from which the store was restored
	Letters       int
	Examples      []ID      // up to 5 letters
	Causes        []GroupID // groups of the letters; for a merged group, the one into which it is merged
}

// Place returns the place to which the letters belong. This is the queue in which they died. If
// that queue is unknown, it is the inbox from which they were drained.
func (s *Share) Place() Origin { return placeOf(s.Origin, s.Inbox) }
