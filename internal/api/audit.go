package api

import (
	"time"
)

type AuditEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Actor     string    `json:"actor"`
	Through   string    `json:"through"`
	Operation string    `json:"operation"`
	Total     int       `json:"total"`
	Query     string    `json:"query"`
	Detail    string    `json:"detail"`
}

type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    string       `json:"next"`
}
