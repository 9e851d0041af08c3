package deadletter

import "time"

// VerbDrain takes letters out of a queue once.
const VerbDrain Verb = "drain"

// DrainRequest asks for letters to be taken out of a queue once.
type DrainRequest struct {
	Broker string // name; may be "" where there is one only
	VHost  string // may be "": that of the broker
	Queue  string
	Origin string // queue that letters come from whose headers do not say; "" = they are held
	Count  int    // letters; 0 = until the queue is empty
}

// Drain is one drain of a queue, running or ended.
type Drain struct {
	ID                   string // such as D-1mfc2x8k4; not used twice, over restarts of dlo
	Broker, VHost, Queue string
	Origin               string
	Asked                int // letters; 0 = until the queue is empty
	Taken                int // letters that were stored; never more than asked
	State                DrainState
	Why                  string // of a running one what it waits for, "" when it does not; else why it ended, in words
	By                   string
	StartedAt            time.Time
	EndedAt              time.Time // zero while it runs
}

// DrainState is where a drain stands.
type DrainState string

const (
	DrainRunning DrainState = "running"
	DrainDone    DrainState = "done"    // the queue was empty, or the count was reached
	DrainStopped DrainState = "stopped" // by a person, or with dlo
	DrainFailed  DrainState = "failed"  // the queue cannot be drained
)

// InboxName names a queue that letters are, or were, drained from.
type InboxName struct{ Broker, VHost, Queue string }
