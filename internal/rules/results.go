package rules

import "github.com/deadletteroffice/dlo/internal/deadletter"

// WhatIf compares what rules would have decided about stored letters with what became of them. All
// of its numbers count letters.
type WhatIf struct {
	Usual    bool     `json:"-"`        // the letters are those that are tested without a query
	Most     int      `json:"-"`        // maximum number of letters that are tested
	Matching int      `json:"matching"` // letters that the query selects
	Exact    bool     `json:"exact"`    // false = Matching may be larger
	Looked   int      `json:"looked"`   // how many of the newest letters were tested
	Late     int      `json:"late"`     // not tested because the time was over
	Left     int      `json:"left_out"` // deleted in the meantime, not visible to the caller, or test letters of dlo
	Notes    []string `json:"notes"`    // parts of the rules that were not tested
	Fates    []Fate   `json:"fates"`    // changed results first, then sorted by the number of letters
}

// Fate is a number of letters that had the same real outcome, and would all have the same outcome
// under the tested rules.
type Fate struct {
	Was      Outcome         `json:"was"`
	Would    Outcome         `json:"would"`
	Same     bool            `json:"same"` // the rules would change nothing
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"` // newest first
	// the query that selects exactly these letters; "" = there is no such query
	Query string `json:"q,omitzero"`
}

// Outcome is what became of letters, or what would have become of them under the tested rules.
type Outcome struct {
	State    deadletter.State       `json:"state,omitzero"`  // only a real outcome has it
	Rule     string                 `json:"rule"`            // the rule that decided; "" = none did
	Action   deadletter.RuleOutcome `json:"action,omitzero"` // only an outcome under the tested rules has it
	Severity deadletter.Severity    `json:"severity"`        // only for dead letters
	Delays   string                 `json:"delays"`          // the delays of that rule; "" = it does not exist any more
}

// Applied says which decisions about waiting letters the rules changed, or would change in a dry
// run.
type Applied struct {
	DryRun    bool            `json:"dry_run"`
	Looked    int             `json:"looked_at"`  // number of letters that the rules were applied to
	Unchanged int             `json:"unchanged"`  // number of letters whose decision is the same
	Left      map[string]int  `json:"left_alone"` // number of letters that were skipped, by reason
	Changes   []AppliedChange `json:"changes"`    // the change with the most letters comes first
	// the caller disconnected or dlo is stopping, so not all letters were looked at
	Stopped bool `json:"stopped"`
}

// AppliedChange is the number of letters whose decisions change in the same way, for example from a
// retry to dead. If From and To are equal, the delays or the severity of the rule have changed.
type AppliedChange struct {
	From     Decided         `json:"from"`
	To       Decided         `json:"to"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"` // up to 3 of the letters, oldest first
}

// Decided is the decision of a rule about a letter.
type Decided struct {
	Rule    string                 `json:"rule"`
	Outcome deadletter.RuleOutcome `json:"outcome"`
}
