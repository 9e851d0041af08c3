package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Audit is a page of GET /audit.
type Audit struct {
	Entries []deadletter.Act `json:"entries"`
	Next    string           `json:"next"`
}
