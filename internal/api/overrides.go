package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Overrides is the response to GET /overrides.
type Overrides struct {
	Overrides []deadletter.Override `json:"overrides"`
}

// OverrideRequest is the body of POST /overrides.
type OverrideRequest struct {
	Broker string `json:"broker,omitzero"`
	VHost  string `json:"vhost,omitzero"`
	Queue  string `json:"queue"`
	To     string `json:"to"`
	Reason string `json:"reason,omitzero"`
}
