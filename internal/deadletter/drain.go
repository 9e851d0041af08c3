package deadletter

import "time"

// VerbDrain drains a queue once.
const VerbDrain Verb = "drain"

// DrainRequest is a request to drain a queue once.
type DrainRequest struct {
	Broker string // name; may be "" if there is only one broker
	VHost  string // "" = the vhost of the broker
	Queue  string
	Origin string // origin of letters whose headers name no origin; "" = such letters are held
	Count  int    // maximum number of letters; 0 = until the queue is empty
}

// Drain is one drain of a queue, running or finished.
type Drain struct {
	ID                   string // such as D-1mfc2x8k4; never reused, even after a restart of dlo
	Broker, VHost, Queue string
	Origin               string
	Asked                int // requested number of letters; 0 = until the queue is empty
	Taken                int // letters stored; never more than Asked
	State                DrainState
	Why                  string // while running: why it waits, "" = it does not wait; after the end: why it ended, in words
	By                   string
	StartedAt            time.Time
	EndedAt              time.Time // zero while running
}

// DrainState is the state of a drain.
type DrainState string

const (
	DrainRunning DrainState = "running"
	DrainDone    DrainState = "done"    // the queue was empty, or the count was reached
	DrainStopped DrainState = "stopped" // by a person, or because dlo stopped
	DrainFailed  DrainState = "failed"  // the queue cannot be drained
)

// InboxName identifies a queue from which letters are or were drained.
type InboxName struct{ Broker, VHost, Queue string }
