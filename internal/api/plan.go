package api

import (
	"encoding/json"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OperationRequest is the body of POST /operations. A field that is missing has its default.
type OperationRequest struct {
	Action deadletter.Verb `json:"action"`
	Q      *string         `json:"q,omitzero"` // "" = every letter
	IDs    []string        `json:"ids,omitzero"`
	Except []string        `json:"except,omitzero"`
	Until  time.Time       `json:"until,omitzero"`
	Expect int             `json:"expect,omitzero"` // number of letters that the caller has seen in the plan
	Reason string          `json:"reason,omitzero"`
	DryRun bool            `json:"dry_run,omitzero"`
	deadletter.PaceAsked
	First    int           `json:"first,omitzero"` // maximum number of letters; 0 = all
	To       string        `json:"to,omitzero"`
	DueAt    time.Time     `json:"due_at,omitzero"`
	DueIn    time.Duration `json:"-"` // the delay that a form has in place of due_at
	Reset    bool          `json:"reset_attempts,omitzero"`
	Restored bool          `json:"include_restored,omitzero"`
	TakeOver []string      `json:"take_over,omitzero"` // halted operations whose remaining letters are cancelled

	Patch json.RawMessage `json:"patch,omitzero"` // for an edit: a patch of the decoded body, RFC 6902
}

// Plan is the response to a dry run of POST /operations. A client can show the plan and then start
// exactly this operation. For this, it sends the plan's "query" and "until" again. It also sends
// the plan's "total" in the field "expect".
type Plan struct {
	deadletter.Plan
	Query  string      `json:"query"` // the query with fixed times; "" = the chosen ids, or every letter
	Queues []PlanQueue `json:"queues"`
}

// PlanQueue is one queue of a plan, with what the broker reports about it.
type PlanQueue struct {
	deadletter.PlanQueue
	Label     string            `json:"label"`     // the broker's display name, such as production
	Exists    *bool             `json:"exists"`    // null = unknown
	Consumers deadletter.Amount `json:"consumers"` // null = unknown
	Ready     deadletter.Amount `json:"ready"`     // number of ready messages; null = unknown

	SingleActive *bool             `json:"single_active"` // null = unknown
	MaxLength    deadletter.Amount `json:"max_length"`    // maximum number of messages; 0 = no limit; null = unknown
	MaxBytes     deadletter.Amount `json:"max_bytes"`     // maximum number of bytes; 0 = no limit; null = unknown
	DeadLetters  *string           `json:"dead_letters"`  // null = unknown
}
