package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Change is the body of PATCH /groups/{id}. If a field is missing, the group keeps its value.
type Change struct {
	Owner    *string              `json:"owner,omitempty"`
	Severity *deadletter.Severity `json:"severity,omitempty"`
	Ticket   *string              `json:"ticket,omitempty"`
	Note     string               `json:"note,omitempty"`
	Snooze   *SnoozeChange        `json:"snooze,omitempty"`
	Resolve  *ResolveChange       `json:"resolve,omitempty"`
	Reopen   bool                 `json:"reopen,omitempty"`
}

// Decision is a recorded decision about groups. Every call that makes a decision returns it.
type Decision struct {
	ID      int64       `json:"id"`
	Kind    string      `json:"kind"`
	Detail  string      `json:"detail,omitempty"`
	By      string      `json:"by"`
	At      Time        `json:"at"`
	Groups  []string    `json:"groups"`
	Skipped []LeftAlone `json:"skipped,omitempty"`
	Undone  *Time       `json:"undone_at,omitempty"`
}

// LeftAlone is a group to which a decision does not apply, and the reason. The response to POST
// /groups/decisions contains it.
type LeftAlone struct {
	Group string `json:"group"`
	Why   string `json:"why"`
}

// SnoozeChange is the part of the body of PATCH /groups/{id} that snoozes a group.
type SnoozeChange struct {
	Until Time   `json:"until,omitzero"`
	For   string `json:"for,omitempty"`   // a duration such as "2h", instead of until
	After int    `json:"after,omitempty"` // number of further letters that end the snooze
	Queue bool   `json:"queue,omitempty"` // the snooze ends when another queue has the same error
}

// ResolveChange is the part of the body of PATCH /groups/{id} that resolves a group.
type ResolveChange struct {
	// version of the consumer that has the fix; older versions may continue to fail
	Version string `json:"version,omitempty"`
}

// GroupsChange is the body of POST /groups/decisions.
type GroupsChange struct {
	Change
	Groups []string `json:"groups"`
}

// MergeRequest is the body of POST /groups/{id}/merge.
type MergeRequest struct {
	Groups []string `json:"groups"`
}

// Decisions is the response to GET /groups/decisions.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
}
