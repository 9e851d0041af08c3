package api

import "time"

// AuditEntry is something that was done, in GET /audit.
type AuditEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Actor     string    `json:"actor"`
	Through   string    `json:"through"`
	Operation string    `json:"operation"`
	Total     int       `json:"total"` // letters of the operation
	Query     string    `json:"query"`
	Detail    string    `json:"detail"`
}

// Audit is a page of GET /audit.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    string       `json:"next"`
}
