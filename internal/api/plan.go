package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OperationRequest is the body of POST /operations. What is absent has its default.
type OperationRequest struct {
	Action     string    `json:"action"`
	Q          *string   `json:"q"`
	IDs        []string  `json:"ids"`
	Except     []string  `json:"except"`
	Until      time.Time `json:"until"`
	Expect     int       `json:"expect"`
	Reason     string    `json:"reason"`
	DryRun     bool      `json:"dry_run"`
	Rate       *float64  `json:"rate"`
	Canary     *int      `json:"canary"`
	CanaryWait *Duration `json:"canary_wait"`
	StopAt     *float64  `json:"stop_at"`
	MaxDepth   *int      `json:"max_depth"`
	Order      string    `json:"order"`
	First      int       `json:"first"`
	To         string    `json:"to"`
	Hold       *Duration `json:"hold"`
	DueAt      time.Time `json:"due_at"`
	Reset      bool      `json:"reset_attempts"`

	Patch json.RawMessage `json:"patch"` // of an edit: RFC 6902, on the decoded body
}

// Duration is a duration as JSON has it: a text such as "2m" or "1m30s".
type Duration time.Duration

func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("%w: a duration is a text such as \"2m\" or \"10s\", not %s", deadletter.ErrInvalid, b)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%w: %q is not a duration such as \"2m\" or \"10s\"", deadletter.ErrInvalid, text)
	}
	*d = Duration(v)
	return nil
}

// Plan is a dry run. Query and until, sent again with expect, start exactly what the plan shows.
type Plan struct {
	Action   deadletter.Verb `json:"action"`
	Query    string          `json:"query"` // with fixed times; "" = chosen ids, or every letter
	Until    time.Time       `json:"until"`
	Total    int             `json:"total"`
	Eligible int             `json:"eligible"`
	First    int             `json:"first"`
	To       string          `json:"to"`
	Pace     Pace            `json:"pace"`
	Queues   []PlanQueue     `json:"queues"`
	Skipped  []PlanSkip      `json:"skipped"`
	Warnings []string        `json:"warnings"`
}

type PlanQueue struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Target    string `json:"target"`
	Letters   int    `json:"letters"`
	CameBack  int    `json:"came_back"`
	Exists    *bool  `json:"exists"`    // null: unknown
	Consumers *int   `json:"consumers"` // null: unknown
	Ready     *int   `json:"ready"`     // null: unknown

	SingleActive bool    `json:"single_active"` // false also where nobody says
	MaxLength    *int    `json:"max_length"`    // 0: no limit; null: unknown
	MaxBytes     *int    `json:"max_bytes"`     // 0: no limit; null: unknown
	DeadLetters  *string `json:"dead_letters"`  // null: unknown
	Warning      string  `json:"warning"`
}

type PlanSkip struct {
	Reason   string          `json:"reason"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}
