package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Retry is the back-off of a rule, in GET /rules.
type Retry struct {
	Delays []string `json:"delays"` // before each retry, such as 1m40s
	Jitter float64  `json:"jitter"` // part of a delay, from 0 to 1
	Waiter string   `json:"waiter"`
}

// Rule is a rule in use, in GET /rules.
type Rule struct {
	Name         string              `json:"name"`
	When         []Condition         `json:"when"` // all of them; none = every letter
	Retry        *Retry              `json:"retry"`
	Discard      bool                `json:"discard"`
	Severity     deadletter.Severity `json:"severity"`
	InDoubt      string              `json:"in_doubt,omitempty"`
	Watch        string              `json:"watch,omitempty"`
	Rate         *float64            `json:"rate,omitempty"` // letters per second
	MirrorXDeath bool                `json:"mirror_x_death,omitempty"`
	YAML         string              `json:"yaml"`
}

// Condition is what a rule wants of a letter, in GET /rules.
type Condition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
}

// Clause is a condition that a letter was held to, in POST /rules/test and GET /letters/{id}.
type Clause struct {
	Condition
	Fits bool `json:"fits"`
}

// RuleStep is a rule that was asked about a letter, in POST /rules/test and GET /letters/{id}.
type RuleStep struct {
	Rule    string   `json:"rule"`
	Matched bool     `json:"matched"`
	Applies bool     `json:"applies"`
	Clauses []Clause `json:"clauses"`
}

// RuleDecision is what becomes of a letter by a rule, in POST /rules/test.
type RuleDecision struct {
	Action   deadletter.RuleOutcome `json:"action"`
	Retry    int                    `json:"retry,omitempty"` // its number, from 1
	Delay    string                 `json:"delay,omitempty"` // of a letter; facts draw none
	Earliest string                 `json:"earliest,omitempty"`
	Latest   string                 `json:"latest,omitempty"`
	Severity deadletter.Severity    `json:"severity"`
	Why      string                 `json:"why"`
}

// Facts are what a letter would be like, in the body of POST /rules/test; what is absent is empty.
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
	Fields   map[string][]string `json:"fields,omitempty"`   // of the body, by path
	Attempts int                 `json:"attempts,omitempty"` // used so far
	Age      string              `json:"age,omitempty"`      // such as 2h
}

// RuleCount is what a rule would do with letters, in POST /rules/test: numbers of letters.
type RuleCount struct {
	Rule    string `json:"rule"`
	Delays  string `json:"delays"` // its retries in a line, and what comes then
	Letters int    `json:"letters"`
	Retry   int    `json:"retry"`
	Dead    int    `json:"dead"`
	Discard int    `json:"discard"`
}

// Rules is the answer of GET /rules.
type Rules struct {
	File     string    `json:"file"` // "" = none: the defaults
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Rules    []Rule    `json:"rules"` // in order: the first that matches wins
	Default  Rule      `json:"default"`
	YAML     string    `json:"yaml"` // of all of them, to be pasted
}

// RuleTestRequest is the body of POST /rules/test: a letter, facts or a query, and rules to be
// tried instead of those in use, for which the query may be left out.
type RuleTestRequest struct {
	Rules  *string `json:"rules,omitempty"` // as YAML
	Letter *string `json:"letter,omitempty"`
	Facts  *Facts  `json:"facts,omitempty"`
	Query  *string `json:"q,omitempty"`
	Limit  *int    `json:"limit,omitempty"` // letters of the query
}

// RuleTest is the answer of POST /rules/test to a letter or to facts.
type RuleTest struct {
	Rule     string        `json:"rule"`
	Was      string        `json:"was,omitempty"`    // the rule that decided on the letter last
	Letter   deadletter.ID `json:"letter,omitempty"` // absent for facts
	Decision RuleDecision  `json:"decision"`
	Steps    []RuleStep    `json:"steps"`
}

// WhatIf is the answer of POST /rules/test to a query: numbers of letters.
type WhatIf struct {
	Matching int         `json:"matching"`
	Exact    bool        `json:"exact"`
	Looked   int         `json:"looked"`   // at the newest so many
	Late     int         `json:"late"`     // not looked at, since the time was up
	LeftOut  int         `json:"left_out"` // gone meanwhile, of queues of others, or made by dlo for a trial
	Notes    []string    `json:"notes"`    // what of the text of rules was not tried
	Rules    []RuleCount `json:"rules"`
	Totals   []RuleTotal `json:"totals"`
	Fates    []Fate      `json:"fates"` // what would be otherwise first, most letters first
}

// RuleTotal is what rules would make of the letters in a state, in POST /rules/test.
type RuleTotal struct {
	State   deadletter.State `json:"state"`
	Letters int              `json:"letters"`
	Retry   int              `json:"retry"`
	Dead    int              `json:"dead"`
	Discard int              `json:"discard"`
	Text    string           `json:"text"` // all of it in a sentence
}

// Fate is what became of letters beside what rules would have made of them, in POST /rules/test.
type Fate struct {
	Was      WasDecided      `json:"was"`
	Would    WouldDecide     `json:"would"`
	Same     bool            `json:"same"` // nothing would have been otherwise
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`    // newest first
	Query    string          `json:"q,omitempty"` // that selects exactly these; absent: none does
}

// WasDecided is what became of letters, in POST /rules/test.
type WasDecided struct {
	State    deadletter.State    `json:"state"`
	Rule     string              `json:"rule"`     // that decided; "" = none has
	Severity deadletter.Severity `json:"severity"` // of dead letters
	Delays   string              `json:"delays"`   // of that rule; "" = it is not in use any more
}

// WouldDecide is what rules would have made of letters, in POST /rules/test.
type WouldDecide struct {
	Rule     string                 `json:"rule"`
	Action   deadletter.RuleOutcome `json:"action"`
	Severity deadletter.Severity    `json:"severity"` // of dead letters
	Delays   string                 `json:"delays"`
}

// Applied is the answer of POST /rules/apply.
type Applied struct {
	DryRun    bool            `json:"dry_run"`
	LookedAt  int             `json:"looked_at"`  // letters
	Unchanged int             `json:"unchanged"`  // letters
	LeftAlone map[string]int  `json:"left_alone"` // letters by reason
	Changes   []AppliedChange `json:"changes"`    // most letters first
	Stopped   bool            `json:"stopped"`    // dlo stops: it is not the whole query
}

// AppliedChange is how many letters another decision was made about, in POST /rules/apply.
type AppliedChange struct {
	From     Decided         `json:"from"`
	To       Decided         `json:"to"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}

// Decided is a rule and what it made of a letter, in POST /rules/apply.
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
