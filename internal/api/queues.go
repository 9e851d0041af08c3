package api

import (
	"time"
)

type Retries struct {
	State string    `json:"state"` // running, or that of the guard
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // tripped: when the queue is probed
}

type GroupPaused struct {
	Group string    `json:"group"`
	Title string    `json:"title"`
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

type Queue struct {
	Broker       string        `json:"broker"`
	VHost        string        `json:"vhost"`
	Queue        string        `json:"queue"`
	Scheduled    int           `json:"scheduled"`
	Dead         int           `json:"dead"`
	Held         int           `json:"held"`
	Depth        *int          `json:"depth"`     // null = unknown
	Consumers    *int          `json:"consumers"` // null = unknown
	Retries      Retries       `json:"retries"`
	GroupsPaused []GroupPaused `json:"groups_paused"`
}

type Inbox struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Connected bool   `json:"connected"` // to its broker
	Draining  bool   `json:"draining"`
	Depth     *int   `json:"depth"` // null = unknown
	Note      string `json:"note"`  // why it is not drained, or what may go wrong with it
}

// QueueRetries is how the retries of a queue stand after a call, and apiGroupRetries how those of a group do.
type QueueRetries struct {
	Broker  string  `json:"broker"`
	VHost   string  `json:"vhost"`
	Queue   string  `json:"queue"`
	Retries Retries `json:"retries"`
}

type GroupRetries struct {
	Group   string  `json:"group"`
	Retries Retries `json:"retries"`
}

type Queues struct {
	Queues  []Queue `json:"queues"`
	Inboxes []Inbox `json:"inboxes"`
}

type QueueRequest struct {
	Broker string `json:"broker"`
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	Reason string `json:"reason"`
}

type ReasonRequest struct {
	Reason string `json:"reason"`
}
