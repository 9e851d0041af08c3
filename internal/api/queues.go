package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Retries is the state of the automatic retries of a queue or a group. If they are held back, it
// gives the reason. The response to GET /queues contains it.
type Retries struct {
	State string    `json:"state"` // running, or the state of the guard that holds them back
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // if the state is tripped, when dlo probes the queue
}

// GroupPaused is a group with retries that are held back. Either a person has paused them, or a
// breaker holds them back. The response to GET /queues contains it.
type GroupPaused struct {
	Group deadletter.GroupID `json:"group"`
	Title string             `json:"title"`
	State string             `json:"state"` // paused, tripped, probing or ramping
	Why   string             `json:"why"`
	By    string             `json:"by"`
	Since time.Time          `json:"since"`
	Until time.Time          `json:"until,omitzero"` // if the state is tripped, when dlo probes the group
}

// Queue is a queue in which letters died. The response to GET /queues contains it.
type Queue struct {
	Broker       string        `json:"broker"`
	VHost        string        `json:"vhost"`
	Queue        string        `json:"queue"`
	Scheduled    int           `json:"scheduled"` // number of letters
	Dead         int           `json:"dead"`      // number of letters
	Held         int           `json:"held"`      // number of letters
	Depth        *int          `json:"depth"`     // number of messages; null = unknown
	Consumers    *int          `json:"consumers"` // null = unknown
	Retries      Retries       `json:"retries"`
	Away         string        `json:"away"` // why no letter can be sent to the broker now
	GroupsPaused []GroupPaused `json:"groups_paused"`
}

// Inbox is an inbox that dlo drains. The response to GET /queues contains it.
type Inbox struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Connected bool   `json:"connected"` // dlo is connected to the broker
	Draining  bool   `json:"draining"`
	Depth     *int   `json:"depth"` // number of messages; null = unknown
	Note      string `json:"note"`  // why the inbox is not drained, or a warning about it
}

// QueueRetries is the response to POST /queues/pause and POST /queues/resume.
type QueueRetries struct {
	Broker  string  `json:"broker"`
	VHost   string  `json:"vhost"`
	Queue   string  `json:"queue"`
	Retries Retries `json:"retries"`
}

// GroupRetries is the response to POST /groups/{id}/pause and POST /groups/{id}/resume.
type GroupRetries struct {
	Group   deadletter.GroupID `json:"group"`
	Retries Retries            `json:"retries"`
}

// Queues is the response to GET /queues.
type Queues struct {
	Queues  []Queue `json:"queues"`
	Inboxes []Inbox `json:"inboxes"`
}

// QueueRequest is the body of POST /queues/pause and POST /queues/resume.
type QueueRequest struct {
	Broker string `json:"broker,omitzero"`
	VHost  string `json:"vhost,omitzero"`
	Queue  string `json:"queue"`
	Reason string `json:"reason,omitzero"`
}

// ReasonRequest is the body of POST /groups/{id}/pause and POST /groups/{id}/resume.
type ReasonRequest struct {
	Reason string `json:"reason,omitzero"`
}
