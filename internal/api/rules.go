package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Rule is a current rule. The response to GET /rules contains it.
type Rule struct {
	rules.Rule
	// the conditions, which must all match; none = the rule matches every letter
	When []rules.Condition `json:"when"`
}

// NewRule returns a rule in the form of the API.
func NewRule(r rules.Rule) Rule { return Rule{r, r.Match.Conditions()} }

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

// ApplyRequest is the body of POST /rules/apply.
type ApplyRequest struct {
	Q      string `json:"q,omitzero"`
	DryRun bool   `json:"dry_run,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// SettingRequest is the body of POST /settings.
type SettingRequest struct {
	deadletter.Setting
	DryRun bool   `json:"dry_run,omitzero"` // the change is only shown and tested
	Digest string `json:"digest,omitzero"`  // the digest of the dry run; needed to save the change
}

// ReloadRequest is the body of POST /reload.
type ReloadRequest struct {
	DryRun bool `json:"dry_run,omitzero"` // nothing is changed; the answer says what would change
}

// SettingChange is the response to POST /settings.
type SettingChange struct {
	deadletter.SettingChange
	Diff []payload.DiffLine `json:"diff"` // empty = the file is not changed in place
	Test *rules.WhatIf      `json:"test"` // what the changed rules would have done; null = not tested
}
