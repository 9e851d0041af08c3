package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Retry says when a rule retries letters. The response to GET /rules contains it.
type Retry struct {
	Delays []string `json:"delays"` // the delay before each retry, such as 1m40s
	Jitter float64  `json:"jitter"` // fraction of a delay, from 0 to 1
	Waiter string   `json:"waiter"`
}

// Rule is a current rule. The response to GET /rules contains it.
type Rule struct {
	Name string `json:"name"`
	// the conditions, which must all match; none = the rule matches every letter
	When         []Condition         `json:"when"`
	Retry        *Retry              `json:"retry"`
	Discard      bool                `json:"discard"`
	Severity     deadletter.Severity `json:"severity"`
	InDoubt      string              `json:"in_doubt,omitzero"`
	Watch        string              `json:"watch,omitzero"`
	Rate         *float64            `json:"rate,omitzero"` // letters per second
	MirrorXDeath bool                `json:"mirror_x_death,omitzero"`
	YAML         string              `json:"yaml"`
}

// Condition is one condition of a rule. The response to GET /rules contains it.
type Condition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
}

// Clause is a condition, and whether a letter meets it. The response to GET /letters/{id} contains
// it.
type Clause struct {
	Condition
	Fits bool `json:"fits"`
}

// RuleStep is a rule that was checked for a letter. The response to GET /letters/{id} contains it.
type RuleStep struct {
	Rule    string   `json:"rule"`
	Matched bool     `json:"matched"`
	Applies bool     `json:"applies"`
	Clauses []Clause `json:"clauses"`
}

// Rules is the response to GET /rules.
type Rules struct {
	File     string    `json:"file"` // "" = there is no file, and the defaults apply
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Rules    []Rule    `json:"rules"` // in their order; the first rule that matches a letter applies
	Default  Rule      `json:"default"`
	YAML     string    `json:"yaml"` // all rules as YAML that can be pasted into the configuration
}

// RuleTestRequest is the body of POST /rules/test.
type RuleTestRequest struct {
	Rules *string `json:"rules,omitzero"` // as YAML; missing = the rules in use
	Query string  `json:"q,omitzero"`     // "" = state:dead,held,scheduled
	Limit *int    `json:"limit,omitzero"` // maximum number of letters of the query that are tested
}

// WhatIf is the response to POST /rules/test. All of its numbers count letters.
type WhatIf struct {
	Matching int      `json:"matching"`
	Exact    bool     `json:"exact"`
	Looked   int      `json:"looked"`   // how many of the newest letters were tested
	Late     int      `json:"late"`     // not tested because the time was over
	LeftOut  int      `json:"left_out"` // deleted in the meantime, not visible to the caller, or test letters of dlo
	Notes    []string `json:"notes"`    // parts of the rules that were not tested
	Fates    []Fate   `json:"fates"`    // changed results first, then sorted by the number of letters
}

// Fate compares what really became of letters with what rules would have decided. The response to
// POST /rules/test contains it.
type Fate struct {
	Was      WasDecided      `json:"was"`
	Would    WouldDecide     `json:"would"`
	Same     bool            `json:"same"` // the result would be the same
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"` // newest first
	// the query that selects exactly these letters; missing = there is no such query
	Query string `json:"q,omitzero"`
}

// WasDecided is the decision that was really made about letters. The response to POST /rules/test
// contains it, so that it can be compared with the tested rules.
type WasDecided struct {
	State    deadletter.State    `json:"state"`
	Rule     string              `json:"rule"`     // the rule that decided; "" = none did
	Severity deadletter.Severity `json:"severity"` // only for dead letters
	Delays   string              `json:"delays"`   // the delays of that rule; "" = the rule does not exist any more
}

// WouldDecide is what rules would have decided about letters. The response to POST /rules/test
// contains it.
type WouldDecide struct {
	Rule     string                 `json:"rule"`
	Action   deadletter.RuleOutcome `json:"action"`
	Severity deadletter.Severity    `json:"severity"` // only for dead letters
	Delays   string                 `json:"delays"`
}

// Applied is the response to POST /rules/apply.
type Applied struct {
	DryRun    bool            `json:"dry_run"`
	LookedAt  int             `json:"looked_at"`  // number of letters that the rules were applied to
	Unchanged int             `json:"unchanged"`  // number of letters whose decision is the same
	LeftAlone map[string]int  `json:"left_alone"` // number of letters that did not change, by reason
	Changes   []AppliedChange `json:"changes"`    // the change with the most letters comes first
	// dlo is stopping, so that not all letters of the query were looked at
	Stopped bool `json:"stopped"`
}

// AppliedChange is the number of letters whose decision changed in the same way. The response to
// POST /rules/apply contains it.
type AppliedChange struct {
	From     Decided         `json:"from"`
	To       Decided         `json:"to"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}

// Decided is a rule, and what it decided about a letter. The response to POST /rules/apply contains
// it.
type Decided struct {
	Rule    string                 `json:"rule"`
	Outcome deadletter.RuleOutcome `json:"outcome"`
}

// ApplyRequest is the body of POST /rules/apply.
type ApplyRequest struct {
	Q      string `json:"q,omitzero"`
	DryRun bool   `json:"dry_run,omitzero"`
	Reason string `json:"reason,omitzero"`
}
