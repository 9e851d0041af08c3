package api

import "time"

// Retries is what keeps the automatic retries of a queue or a group back, in GET /queues.
type Retries struct {
	State string    `json:"state"` // running, or that of the guard
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // tripped: when the queue is probed
}

// GroupPaused is a group whose retries a person paused or its breaker holds back, in GET /queues.
type GroupPaused struct {
	Group string    `json:"group"`
	Title string    `json:"title"`
	State string    `json:"state"` // paused, tripped, probing or ramping
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"` // tripped: when it is probed
}

// Queue is a queue that letters died in, in GET /queues.
type Queue struct {
	Broker       string        `json:"broker"`
	VHost        string        `json:"vhost"`
	Queue        string        `json:"queue"`
	Scheduled    int           `json:"scheduled"` // letters
	Dead         int           `json:"dead"`      // letters
	Held         int           `json:"held"`      // letters
	Depth        *int          `json:"depth"`     // messages; null: unknown
	Consumers    *int          `json:"consumers"` // null: unknown
	Retries      Retries       `json:"retries"`
	Away         string        `json:"away"` // why nothing can be sent to its broker now
	GroupsPaused []GroupPaused `json:"groups_paused"`
}

// Inbox is an inbox that dlo drains, in GET /queues.
type Inbox struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Connected bool   `json:"connected"` // to its broker
	Draining  bool   `json:"draining"`
	Depth     *int   `json:"depth"` // messages; null: unknown
	Note      string `json:"note"`  // why it is not drained, or what may go wrong with it
}

// QueueRetries is the answer of POST /queues/pause and POST /queues/resume.
type QueueRetries struct {
	Broker  string  `json:"broker"`
	VHost   string  `json:"vhost"`
	Queue   string  `json:"queue"`
	Retries Retries `json:"retries"`
}

// GroupRetries is the answer of POST /groups/{id}/pause and POST /groups/{id}/resume.
type GroupRetries struct {
	Group   string  `json:"group"`
	Retries Retries `json:"retries"`
}

// Queues is the answer of GET /queues.
type Queues struct {
	Queues  []Queue `json:"queues"`
	Inboxes []Inbox `json:"inboxes"`
}

// QueueRequest is the body of POST /queues/pause and POST /queues/resume.
type QueueRequest struct {
	Broker string `json:"broker,omitempty"`
	VHost  string `json:"vhost,omitempty"`
	Queue  string `json:"queue"`
	Reason string `json:"reason,omitempty"`
}

// ReasonRequest is the body of POST /groups/{id}/pause and POST /groups/{id}/resume.
type ReasonRequest struct {
	Reason string `json:"reason,omitempty"`
}
