package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Queue is a queue in which letters died. The response to GET /queues contains it.
type Queue struct {
	Broker       string             `json:"broker"`
	VHost        string             `json:"vhost"`
	Queue        string             `json:"queue"`
	Scheduled    int                `json:"scheduled"` // number of letters
	Dead         int                `json:"dead"`      // number of letters
	Held         int                `json:"held"`      // number of letters
	Depth        *int               `json:"depth"`     // number of messages; null = unknown
	Consumers    *int               `json:"consumers"` // null = unknown
	Retries      deadletter.Guard   `json:"retries"`
	Away         string             `json:"away"`          // why no letter can be sent to the broker now
	GroupsPaused []deadletter.Guard `json:"groups_paused"` // groups with retries that are held back
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
