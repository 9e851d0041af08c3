package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Retry is the back-off of a rule. The response to GET /rules contains it.
type Retry struct {
	Delays []string `json:"delays"` // before each retry, such as 1m40s
	Jitter float64  `json:"jitter"` // fraction of a delay, from 0 to 1
	Waiter string   `json:"waiter"`
}

// Rule is a current rule. The response to GET /rules contains it.
type Rule struct {
	Name         string              `json:"name"`
	When         []Condition         `json:"when"` // all must match; none = every letter
	Retry        *Retry              `json:"retry"`
	Discard      bool                `json:"discard"`
	Severity     deadletter.Severity `json:"severity"`
	InDoubt      string              `json:"in_doubt,omitempty"`
	Watch        string              `json:"watch,omitempty"`
	Rate         *float64            `json:"rate,omitempty"` // letters per second
	MirrorXDeath bool                `json:"mirror_x_death,omitempty"`
	YAML         string              `json:"yaml"`
}

// Condition is a condition of a rule. The response to GET /rules contains it.
type Condition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
}

// Clause is a condition that was checked for a letter. The responses to POST /rules/test and GET
// /letters/{id} contain it.
type Clause struct {
	Condition
	Fits bool `json:"fits"`
}

// RuleStep is a rule that was evaluated for a letter. The responses to POST /rules/test and GET
// /letters/{id} contain it.
type RuleStep struct {
	Rule    string   `json:"rule"`
	Matched bool     `json:"matched"`
	Applies bool     `json:"applies"`
	Clauses []Clause `json:"clauses"`
}

// RuleDecision is the decision of a rule about a letter. The response to POST /rules/test contains
// it.
type RuleDecision struct {
	Action   deadletter.RuleOutcome `json:"action"`
	Retry    int                    `json:"retry,omitempty"` // number of the retry, from 1
	Delay    string                 `json:"delay,omitempty"` // delay for a letter; facts have none
	Earliest string                 `json:"earliest,omitempty"`
	Latest   string                 `json:"latest,omitempty"`
	Severity deadletter.Severity    `json:"severity"`
	Why      string                 `json:"why"`
}

// Facts describe an imaginary letter. The body of POST /rules/test can contain them. Missing facts
// are empty.
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
	Fields   map[string][]string `json:"fields,omitempty"`   // fields of the body, by path
	Attempts int                 `json:"attempts,omitempty"` // used so far
	Age      string              `json:"age,omitempty"`      // such as 2h
}

// RuleCount counts letters by the outcome that one rule would have for them. The response to POST
// /rules/test contains it.
type RuleCount struct {
	Rule    string `json:"rule"`
	Delays  string `json:"delays"` // its retries and the final outcome, in one line
	Letters int    `json:"letters"`
	Retry   int    `json:"retry"`
	Dead    int    `json:"dead"`
	Discard int    `json:"discard"`
}

// Rules is the response to GET /rules.
type Rules struct {
	File     string `json:"file"` // "" = no file: the defaults
	LoadedAt Time   `json:"loaded_at,omitzero"`
	Rules    []Rule `json:"rules"` // in order; the first match wins
	Default  Rule   `json:"default"`
	YAML     string `json:"yaml"` // all rules, ready to paste
}

// RuleTestRequest is the body of POST /rules/test: a letter, facts or a query. It may contain rules
// to test instead of the current ones. In this case the query may be missing.
type RuleTestRequest struct {
	Rules  *string `json:"rules,omitempty"` // as YAML
	Letter *string `json:"letter,omitempty"`
	Facts  *Facts  `json:"facts,omitempty"`
	Query  *string `json:"q,omitempty"`
	Limit  *int    `json:"limit,omitempty"` // how many letters of the query to test
}

// RuleTest is the response to POST /rules/test for a letter or facts.
type RuleTest struct {
	Rule     string        `json:"rule"`
	Was      string        `json:"was,omitempty"`    // the rule that decided last
	Letter   deadletter.ID `json:"letter,omitempty"` // missing for facts
	Decision RuleDecision  `json:"decision"`
	Steps    []RuleStep    `json:"steps"`
}

// WhatIf is the response to POST /rules/test for a query. Its numbers count letters.
type WhatIf struct {
	Matching int         `json:"matching"`
	Exact    bool        `json:"exact"`
	Looked   int         `json:"looked"`   // newest letters tested
	Late     int         `json:"late"`     // not tested because time ran out
	LeftOut  int         `json:"left_out"` // since deleted, not visible to the caller, or test letters of dlo
	Notes    []string    `json:"notes"`    // parts of the rules that were not tested
	Rules    []RuleCount `json:"rules"`
	Totals   []RuleTotal `json:"totals"`
	Fates    []Fate      `json:"fates"` // changed outcomes first, then by number of letters
}

// RuleTotal counts the letters in one state by the outcome that rules would have for them. The
// response to POST /rules/test contains it.
type RuleTotal struct {
	State   deadletter.State `json:"state"`
	Letters int              `json:"letters"`
	Retry   int              `json:"retry"`
	Dead    int              `json:"dead"`
	Discard int              `json:"discard"`
	Text    string           `json:"text"` // a summary in one sentence
}

// Fate compares the real outcome of letters with the outcome that the rules would have had. The
// response to POST /rules/test contains it.
type Fate struct {
	Was      WasDecided      `json:"was"`
	Would    WouldDecide     `json:"would"`
	Same     bool            `json:"same"` // the outcome would not have changed
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`    // newest first
	Query    string          `json:"q,omitempty"` // selects exactly these letters; missing = no query does
}

// WasDecided is the decision that was really made on letters, for comparison with the tested rules.
// The response to POST /rules/test contains it.
type WasDecided struct {
	State    deadletter.State    `json:"state"`
	Rule     string              `json:"rule"`     // rule that decided; "" = none has
	Severity deadletter.Severity `json:"severity"` // dead letters only
	Delays   string              `json:"delays"`   // delays of that rule; "" = the rule is no longer in use
}

// WouldDecide is the outcome that rules would have had for letters. The response to POST
// /rules/test contains it.
type WouldDecide struct {
	Rule     string                 `json:"rule"`
	Action   deadletter.RuleOutcome `json:"action"`
	Severity deadletter.Severity    `json:"severity"` // dead letters only
	Delays   string                 `json:"delays"`
}

// Applied is the response to POST /rules/apply.
type Applied struct {
	DryRun    bool            `json:"dry_run"`
	LookedAt  int             `json:"looked_at"`  // letters
	Unchanged int             `json:"unchanged"`  // letters
	LeftAlone map[string]int  `json:"left_alone"` // letters by reason
	Changes   []AppliedChange `json:"changes"`    // most letters first
	Stopped   bool            `json:"stopped"`    // dlo is stopping: the query was not completed
}

// AppliedChange counts letters whose decision changed. The response to POST /rules/apply contains
// it.
type AppliedChange struct {
	From     Decided         `json:"from"`
	To       Decided         `json:"to"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}

// Decided is a rule and its decision about a letter. The response to POST /rules/apply contains it.
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
