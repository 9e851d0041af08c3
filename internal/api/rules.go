package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Retry is a back-off; delays and jitter say all of it.
type Retry struct {
	Delays []string `json:"delays"` // before each retry, such as 1m40s
	Jitter float64  `json:"jitter"`
	Waiter string   `json:"waiter"`
}

type Rule struct {
	Name         string              `json:"name"`
	When         []Condition         `json:"when"` // all of them; none = every letter
	Retry        *Retry              `json:"retry"`
	Discard      bool                `json:"discard"`
	Severity     deadletter.Severity `json:"severity"`
	InDoubt      string              `json:"in_doubt,omitempty"`
	Watch        string              `json:"watch,omitempty"`
	Rate         *float64            `json:"rate,omitempty"`
	MirrorXDeath bool                `json:"mirror_x_death,omitempty"`
	YAML         string              `json:"yaml"`
}

type Condition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
}

type Clause struct {
	Condition
	Fits bool `json:"fits"`
}

type RuleStep struct {
	Rule    string   `json:"rule"`
	Matched bool     `json:"matched"`
	Applies bool     `json:"applies"`
	Clauses []Clause `json:"clauses"`
}

type RuleDecision struct {
	Action   string              `json:"action"` // retry, dead or discard
	Retry    int                 `json:"retry,omitempty"`
	Delay    string              `json:"delay,omitempty"` // of a letter; facts draw none
	Earliest string              `json:"earliest,omitempty"`
	Latest   string              `json:"latest,omitempty"`
	Severity deadletter.Severity `json:"severity"`
	Why      string              `json:"why"`
}

// Facts are facts that somebody writes; what is left out is empty.
type Facts struct {
	Broker   string              `json:"broker"`
	VHost    string              `json:"vhost"`
	Queue    string              `json:"queue"`
	Exchange string              `json:"exchange"`
	Key      string              `json:"key"`
	Reason   string              `json:"reason"`
	Type     string              `json:"type"`
	Error    string              `json:"error"`
	Headers  map[string]string   `json:"headers"`
	Fields   map[string][]string `json:"fields"` // of the body, by path
	Attempts int                 `json:"attempts"`
	Age      string              `json:"age"` // such as 2h
}

type RuleCount struct {
	Rule    string `json:"rule"`
	Letters int    `json:"letters"`
	Retry   int    `json:"retry"`
	Dead    int    `json:"dead"`
	Discard int    `json:"discard"`
}

type Rules struct {
	File     string    `json:"file"` // "" = none: the defaults
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Rules    []Rule    `json:"rules"` // in order: the first that matches wins
	Default  Rule      `json:"default"`
	YAML     string    `json:"yaml"` // of all of them, to be pasted
}

type RuleTestRequest struct {
	Letter *string `json:"letter"`
	Facts  *Facts  `json:"facts"`
	Query  *string `json:"q"`
	Limit  *int    `json:"limit"`
}

type RuleTest struct {
	Rule     string        `json:"rule"`
	Was      string        `json:"was,omitempty"`    // the rule that decided about the letter last
	Letter   deadletter.ID `json:"letter,omitempty"` // absent for facts
	Decision RuleDecision  `json:"decision"`
	Steps    []RuleStep    `json:"steps"`
}

type WhatIf struct {
	Matching int         `json:"matching"`
	Exact    bool        `json:"exact"`
	Looked   int         `json:"looked"`   // at the newest so many
	Late     int         `json:"late"`     // not looked at, since the time was up
	LeftOut  int         `json:"left_out"` // gone meanwhile, or of queues of others
	Rules    []RuleCount `json:"rules"`
}

type Applied struct {
	DryRun    bool            `json:"dry_run"`
	LookedAt  int             `json:"looked_at"`
	Unchanged int             `json:"unchanged"`
	LeftAlone map[string]int  `json:"left_alone"` // by reason
	Changes   []AppliedChange `json:"changes"`    // most letters first
	Stopped   bool            `json:"stopped"`    // dlo stops: it is not the whole query
}

type AppliedChange struct {
	From     Decided         `json:"from"`
	To       Decided         `json:"to"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}

type Decided struct {
	Rule    string `json:"rule"`
	Outcome string `json:"outcome"` // retry, dead or discard
}

type ApplyRequest struct {
	Q      string `json:"q"`
	DryRun bool   `json:"dry_run"`
	Reason string `json:"reason"`
}
