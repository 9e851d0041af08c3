package api

import (
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
	InDoubt      string              `json:"in_doubt,omitempty"`
	Watch        string              `json:"watch,omitempty"`
	Rate         *float64            `json:"rate,omitempty"` // letters per second
	MirrorXDeath bool                `json:"mirror_x_death,omitempty"`
	YAML         string              `json:"yaml"`
}

// Condition is one condition of a rule. The response to GET /rules contains it.
type Condition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
}

// Clause is a condition, and whether a letter meets it. The responses to POST /rules/test and GET
// /letters/{id} contain it.
type Clause struct {
	Condition
	Fits bool `json:"fits"`
}

// RuleStep is a rule that was checked for a letter. The responses to POST /rules/test and GET
// /letters/{id} contain it.
type RuleStep struct {
	Rule    string   `json:"rule"`
	Matched bool     `json:"matched"`
	Applies bool     `json:"applies"`
	Clauses []Clause `json:"clauses"`
}

// RuleDecision is what a rule decides about a letter. The response to POST /rules/test contains it.
type RuleDecision struct {
	Action   deadletter.RuleOutcome `json:"action"`
	Retry    int                    `json:"retry,omitempty"` // number of the retry, counted from 1
	Delay    string                 `json:"delay,omitempty"` // the delay of this letter; missing for facts
	Earliest string                 `json:"earliest,omitempty"`
	Latest   string                 `json:"latest,omitempty"`
	Severity deadletter.Severity    `json:"severity"`
	Why      string                 `json:"why"`
}

// Facts describe a letter that need not exist. The body of POST /rules/test can contain them. A
// fact that is missing is empty.
type Facts struct {
	Broker   string              `json:"broker,omitempty"`
	VHost    string              `json:"vhost,omitempty"`
	Queue    string              `json:"queue,omitempty"`
	Exchange string              `json:"exchange,omitempty"`
	Key      string              `json:"key,omitempty"`
	Reason   string              `json:"reason,omitempty"`
	Type     string              `json:"type,omitempty"`
	Error    string              `json:"error,omitempty"`
	Headers  map[string]string   `json:"headers,omitempty"`
	Fields   map[string][]string `json:"fields,omitempty"`   // values of the fields of the body, by path
	Attempts int                 `json:"attempts,omitempty"` // number of attempts used so far
	Age      string              `json:"age,omitempty"`      // for example 2h
}

// RuleCount says to how many letters one rule would apply, and how many of them the rule would
// retry, leave dead or discard. The response to POST /rules/test contains it.
type RuleCount struct {
	Rule    string `json:"rule"`
	Delays  string `json:"delays"` // the retries and the final result of the rule, in one line
	Letters int    `json:"letters"`
	Retry   int    `json:"retry"`
	Dead    int    `json:"dead"`
	Discard int    `json:"discard"`
}

// Rules is the response to GET /rules.
type Rules struct {
	File     string `json:"file"` // "" = there is no file, and the defaults apply
	LoadedAt Time   `json:"loaded_at,omitzero"`
	Rules    []Rule `json:"rules"` // in their order; the first rule that matches a letter applies
	Default  Rule   `json:"default"`
	YAML     string `json:"yaml"` // all rules as YAML that can be pasted into the configuration
}

// RuleTestRequest is the body of POST /rules/test. It contains a letter, facts or a query. It may
// also contain rules that are tested instead of the current ones. In that case, the query may be
// missing.
type RuleTestRequest struct {
	Rules  *string `json:"rules,omitempty"` // as YAML
	Letter *string `json:"letter,omitempty"`
	Facts  *Facts  `json:"facts,omitempty"`
	Query  *string `json:"q,omitempty"`
	Limit  *int    `json:"limit,omitempty"` // maximum number of letters of the query that are tested
}

// RuleTest is the response to POST /rules/test for a letter or facts.
type RuleTest struct {
	Rule     string        `json:"rule"`
	Was      string        `json:"was,omitempty"`    // the rule that made the last decision
	Letter   deadletter.ID `json:"letter,omitempty"` // missing for facts
	Decision RuleDecision  `json:"decision"`
	Steps    []RuleStep    `json:"steps"`
}

// WhatIf is the response to POST /rules/test for a query. All of its numbers count letters.
type WhatIf struct {
	Matching int         `json:"matching"`
	Exact    bool        `json:"exact"`
	Looked   int         `json:"looked"`   // how many of the newest letters were tested
	Late     int         `json:"late"`     // not tested because the time was over
	LeftOut  int         `json:"left_out"` // deleted in the meantime, not visible to the caller, or test letters of dlo
	Notes    []string    `json:"notes"`    // parts of the rules that were not tested
	Rules    []RuleCount `json:"rules"`
	Totals   []RuleTotal `json:"totals"`
	Fates    []Fate      `json:"fates"` // changed results first, then sorted by the number of letters
}

// RuleTotal counts all letters that are now in one state, for example all dead letters. It says how
// many of them the rules would retry, leave dead, or discard. The response to POST /rules/test
// contains it.
type RuleTotal struct {
	State   deadletter.State `json:"state"`
	Letters int              `json:"letters"`
	Retry   int              `json:"retry"`
	Dead    int              `json:"dead"`
	Discard int              `json:"discard"`
	Text    string           `json:"text"` // a summary in one sentence
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
	Query string `json:"q,omitempty"`
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
	Q      string `json:"q,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
	Reason string `json:"reason,omitempty"`
}
