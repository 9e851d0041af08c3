package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Change is what a call changes of groups; what is not there stays.
type Change struct {
	Owner    *string              `json:"owner"`
	Severity *deadletter.Severity `json:"severity"`
	Ticket   *string              `json:"ticket"`
	Note     string               `json:"note"`
	Snooze   *SnoozeChange        `json:"snooze"`
	Resolve  *ResolveChange       `json:"resolve"`
	Reopen   bool                 `json:"reopen"`
}

// Decision is a decision that was recorded.
type Decision struct {
	ID      int64       `json:"id"`
	Kind    string      `json:"kind"`
	Detail  string      `json:"detail,omitempty"`
	By      string      `json:"by"`
	At      time.Time   `json:"at"`
	Groups  []string    `json:"groups"`
	Skipped []LeftAlone `json:"skipped,omitempty"`
	Undone  *time.Time  `json:"undone_at,omitempty"`
}

type LeftAlone struct {
	Group string `json:"group"`
	Why   string `json:"why"`
}

type SnoozeChange struct {
	Until time.Time `json:"until"`
	For   string    `json:"for"`   // instead of until: "2h"
	After int       `json:"after"` // further letters
	Queue bool      `json:"queue"`
}

type ResolveChange struct {
	Version string `json:"version"`
}

type GroupsChange struct {
	Change
	Groups []string `json:"groups"`
}

type MergeRequest struct {
	Groups []string `json:"groups"`
}

type Decisions struct {
	Decisions []Decision `json:"decisions"`
}
