package api

import (
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OperationRequest is the body of POST /operations. Missing fields have their defaults.
type OperationRequest struct {
	Action     deadletter.Verb `json:"action"`
	Q          *string         `json:"q,omitempty"` // "" selects every letter
	IDs        []string        `json:"ids,omitempty"`
	Except     []string        `json:"except,omitempty"`
	Until      Time            `json:"until,omitzero"`
	Expect     int             `json:"expect,omitempty"` // number of letters shown to the caller
	Reason     string          `json:"reason,omitempty"`
	DryRun     bool            `json:"dry_run,omitempty"`
	Rate       *float64        `json:"rate,omitempty"`   // letters per second
	Canary     *int            `json:"canary,omitempty"` // letters sent first
	CanaryWait *Duration       `json:"canary_wait,omitempty"`
	StopAt     *float64        `json:"stop_at,omitempty"`   // per cent of letters that come back
	MaxDepth   *int            `json:"max_depth,omitempty"` // messages in a target queue
	Order      string          `json:"order,omitempty"`
	First      int             `json:"first,omitempty"` // limit on the number of letters; 0 = all
	To         string          `json:"to,omitempty"`
	Hold       *Duration       `json:"hold,omitempty"`
	DueAt      Time            `json:"due_at,omitzero"`
	Reset      bool            `json:"reset_attempts,omitempty"`
	Restored   bool            `json:"include_restored,omitempty"`
	TakeOver   []string        `json:"take_over,omitempty"` // halted operations whose remaining letters are cancelled

	Patch json.RawMessage `json:"patch,omitzero"` // patch of an edit: RFC 6902, for the decoded body
}

// Plan is the response to a dry run of POST /operations. A client can start exactly the operation
// that the plan shows. It then sends the plan's query and until again, and the plan's total as
// expect.
type Plan struct {
	Action   deadletter.Verb `json:"action"`
	Query    string          `json:"query"` // query with fixed times; "" = chosen ids, or every letter
	Until    Time            `json:"until"`
	Total    int             `json:"total"`    // letters selected
	Eligible int             `json:"eligible"` // letters that it would act on
	First    int             `json:"first"`    // limit on the number of letters; 0 = all
	To       string          `json:"to"`
	Pace     Pace            `json:"pace"`
	Queues   []PlanQueue     `json:"queues"`
	Skipped  []PlanSkip      `json:"skipped"`
	Warnings []string        `json:"warnings"`
}

// PlanQueue is a queue of a plan, with the broker's information about the target.
type PlanQueue struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Label     string `json:"label"` // the broker's display name, such as production
	Queue     string `json:"queue"`
	Target    string `json:"target"`
	Letters   int    `json:"letters"`
	CameBack  int    `json:"came_back"` // letters that people requeued before and that came back
	Exists    *bool  `json:"exists"`    // null: unknown
	Consumers *int   `json:"consumers"` // null: unknown
	Ready     *int   `json:"ready"`     // messages; null = unknown

	SingleActive *bool   `json:"single_active"` // null: unknown
	MaxLength    *int    `json:"max_length"`    // messages; 0 = no limit; null = unknown
	MaxBytes     *int    `json:"max_bytes"`     // 0 = no limit; null = unknown
	DeadLetters  *string `json:"dead_letters"`  // null: unknown
	Warning      string  `json:"warning"`
}

// PlanSkip counts the letters that a plan skips for one reason.
type PlanSkip struct {
	Reason   string          `json:"reason"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`

	Operation string                    `json:"operation,omitempty"` // that holds them
	Halted    deadletter.OperationState `json:"halted,omitempty"`    // state of the other operation, if its remaining letters can be taken over
}
