package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Overrides is the response to GET /overrides.
type Overrides struct {
	Overrides []deadletter.Override `json:"overrides"`
}

// OverrideRequest is the body of POST /overrides.
type OverrideRequest struct {
	QueueRequest
	To string `json:"to"`
}
