package api

// Retries is the state of the automatic retries of a queue or group, with the reason if they are
// held back. The response to GET /queues contains it.
type Retries struct {
	State string `json:"state"` // running, or the guard's state
	Why   string `json:"why"`
	By    string `json:"by"`
	Since Time   `json:"since,omitzero"`
	Until Time   `json:"until,omitzero"` // tripped: when the queue will be probed
}

// GroupPaused is a group whose retries are paused by a person or held back by its breaker. The
// response to GET /queues contains it.
type GroupPaused struct {
	Group string `json:"group"`
	Title string `json:"title"`
	State string `json:"state"` // paused, tripped, probing or ramping
	Why   string `json:"why"`
	By    string `json:"by"`
	Since Time   `json:"since"`
	Until Time   `json:"until,omitzero"` // tripped: when the group will be probed
}

// Queue is one entry of the response to GET /queues: a queue in which letters died.
type Queue struct {
	Broker       string        `json:"broker"`
	VHost        string        `json:"vhost"`
	Queue        string        `json:"queue"`
	Scheduled    int           `json:"scheduled"` // letters
	Dead         int           `json:"dead"`      // letters
	Held         int           `json:"held"`      // letters
	Depth        *int          `json:"depth"`     // messages; null = unknown
	Consumers    *int          `json:"consumers"` // null: unknown
	Retries      Retries       `json:"retries"`
	Away         string        `json:"away"` // why no letter can be sent to the broker
	GroupsPaused []GroupPaused `json:"groups_paused"`
}

// Inbox is one entry of the response to GET /queues: an inbox that dlo drains.
type Inbox struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Connected bool   `json:"connected"` // dlo is connected to the broker
	Draining  bool   `json:"draining"`
	Depth     *int   `json:"depth"` // messages; null = unknown
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
	Group   string  `json:"group"`
	Retries Retries `json:"retries"`
}

// Queues is the response to GET /queues.
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
