package api

import (
	"time"

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
