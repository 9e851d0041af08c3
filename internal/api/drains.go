package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Drains is the response to GET /queues/drains.
type Drains struct {
	Drains []deadletter.Drain `json:"drains"`
}
