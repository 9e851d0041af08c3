package deadletter

import "time"

// VerbDrain is the verb for draining a queue once.
const VerbDrain Verb = "drain"

// DrainRequest is a request to drain a queue once.
type DrainRequest struct {
	Broker string `json:"broker,omitzero"` // name of the broker; may be "" if only one broker is configured
	VHost  string `json:"vhost,omitzero"`  // vhost; "" = vhost of the broker in the configuration
	Queue  string `json:"queue"`
	// origin of letters whose headers do not say where they died; "" = such letters are held
	Origin string `json:"origin,omitzero"`
	Count  int    `json:"count,omitzero"` // maximum number of letters; 0 = until the queue is empty
}

// Drain describes one run that takes letters out of a queue that is not an inbox. The run may have
// ended.
type Drain struct {
	ID     string     `json:"id"` // id such as D-1mfc2x8k4; never used again, even after a restart of dlo
	Broker string     `json:"broker"`
	VHost  string     `json:"vhost"`
	Queue  string     `json:"queue"`
	Origin string     `json:"origin"`
	Asked  int        `json:"count"` // requested number of letters; 0 = until the queue is empty
	Taken  int        `json:"taken"` // number of letters that were stored; at most Asked
	State  DrainState `json:"state"`
	// while the drain runs, why it waits, or "" if it does not wait; after that, why it ended
	Why       string    `json:"why"`
	By        string    `json:"by"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"` // zero while running
}

// DrainState is the state of a drain.
type DrainState string

const (
	DrainRunning DrainState = "running"
	DrainDone    DrainState = "done"    // the queue was empty, or the requested number was reached
	DrainStopped DrainState = "stopped" // a person stopped the drain, or dlo was stopped
	DrainFailed  DrainState = "failed"  // the queue cannot be drained
)

// InboxName identifies a queue that is or was drained.
type InboxName struct{ Broker, VHost, Queue string }
