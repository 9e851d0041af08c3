package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Queues is the response to GET /queues.
type Queues struct {
	Queues  []deadletter.Queue `json:"queues"`
	Inboxes []deadletter.Inbox `json:"inboxes"`
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
