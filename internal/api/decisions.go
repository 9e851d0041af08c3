package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Change is the body of PATCH /groups/{id}. If a field is missing, the group keeps its value.
type Change struct {
	Owner    *string              `json:"owner,omitzero"`
	Severity *deadletter.Severity `json:"severity,omitzero"`
	Ticket   *string              `json:"ticket,omitzero"`
	Note     string               `json:"note,omitzero"`
	Snooze   *SnoozeChange        `json:"snooze,omitzero"`
	Resolve  *ResolveChange       `json:"resolve,omitzero"`
	Reopen   bool                 `json:"reopen,omitzero"`
}

// SnoozeChange is the part of the body of PATCH /groups/{id} that snoozes a group.
type SnoozeChange struct {
	Until time.Time `json:"until,omitzero"`
	For   string    `json:"for,omitzero"`   // a duration such as "2h", instead of until
	After int       `json:"after,omitzero"` // number of further letters that end the snooze
	Queue bool      `json:"queue,omitzero"` // the snooze ends when another queue has the same error
}

// ResolveChange is the part of the body of PATCH /groups/{id} that resolves a group.
type ResolveChange struct {
	// version of the consumer that has the fix; older versions may continue to fail
	Version string `json:"version,omitzero"`
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
	Decisions []deadletter.Decided `json:"decisions"`
}
