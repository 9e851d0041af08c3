package view

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TryForm is the form for testing rules on stored letters.
type TryForm struct {
	Text     string // the text as typed; at first the current rules
	Unshown  int    // the size of the current rules in bytes if they are too long to show, or 0
	Query    string // the query for the letters as typed; "" selects the usual letters
	Mistakes []RuleMistake
	Notes    []string // the parts of Text that were not tried, one sentence each
}

// RuleMistake is a mistake in one line of the typed rules.
type RuleMistake struct {
	Line, Column int // 0 if the mistake concerns the whole text
	Text         string
	In           string // the line with the mistake
}

// WhatIf shows what would have become of stored letters under other rules. For the last death of
// each letter, it compares the decision of these rules with what really happened.
type WhatIf struct {
	Usual    bool // the default letters, because the query is empty
	Matching int  // the number of stored letters that the query selects
	Exact    bool // whether Matching is exact; if false, the count stopped early
	Most     int  // the maximum number of letters that are examined
	Looked   int
	Late     int    // the number of letters that were not examined because time ran out
	Left     int    // letters that are gone, that the reader may not see, or that come from trials
	Fates    []Fate // changed outcomes first, and then those with the most letters
}

// Fate is a group of letters that had the same real outcome, and that would all have had the same
// outcome if other rules had applied. A person tries these other rules on the page.
type Fate struct {
	Was, Would Decided
	Same       bool // the rules would change nothing
	Letters    int
	Examples   []deadletter.ID // the newest letter comes first
	Query      string          // the query that selects exactly these letters, or "" if no query does
}

// Decided is the outcome of a letter. It is either the real outcome, or the outcome under the tried
// rules.
type Decided struct {
	State    deadletter.State       // set for a real outcome; "" under the tried rules
	Outcome  deadletter.RuleOutcome // set under the tried rules; "" for a real outcome
	Rule     string                 // the rule that decided, or ""
	Severity deadletter.Severity    // set if the letter is dead
	Delays   string                 // the delays of that rule in one line; "" if the rule no longer exists
}

// WhatIfLetters is the number of stored letters on which a person can try rules.
const WhatIfLetters = 500

const (
	fatesShown  = 25  // the maximum number of rows of results; the API returns all
	lineShown   = 120 // the maximum size of a line with a mistake in bytes
	delaysShown = 200 // the maximum size of the delays in bytes
)

// wasTried reports whether a person tested rules. In that case, the page begins with the result.
func (p RulesPage) wasTried() bool {
	return p.WhatIf != nil || len(p.Try.Mistakes) > 0 || p.Mistakes["try-q"] != ""
}

// rows returns the number of lines that the field for rules has in a browser without scripts.
func (f TryForm) rows() string { return strconv.Itoa(min(max(strings.Count(f.Text, "\n")+1, 8), 24)) }

// rulesAttributes returns the HTML attributes that link the field for rules to its error message.
func (f TryForm) rulesAttributes() templ.Attributes {
	if len(f.Mistakes) == 0 {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": "try-text-wrong"}
}

// position returns words for the line and the column of a mistake.
func (m RuleMistake) position() string {
	if m.Line == 0 {
		return ""
	}
	return "Line " + Count(m.Line) + ", column " + Count(m.Column) + ": "
}

// howToUse explains how a person can make dlo use new rules.
func (p RulesPage) howToUse() []Span {
	if p.File == "" {
		return []Span{
			{Text: "To use rules, put them into a configuration file and start dlo with it: "},
			{Text: "dlo serve dlo.yaml", Code: true},
			{Text: ". New rules affect new deaths only. "},
		}
	}
	return []Span{
		{Text: "To use rules, put them into "},
		{Text: line(p.File, 200), Code: true},
		{Text: ", check it with "},
		{Text: "dlo config check", Code: true},
		{Text: ", then send SIGHUP to dlo or restart it. New rules affect new deaths only. "},
	}
}

// words describes which letters were examined.
func (f WhatIf) words() string {
	text := "Looked at " + Count(f.Looked) + " of " + AtLeast(f.Matching, f.Exact) + " letters"
	if f.Usual {
		text += " that are dead, held or scheduled"
	}
	text += ", newest first"
	if f.Matching > f.Most || !f.Exact {
		text += ", at most " + Count(f.Most)
	}
	text += "."
	if f.Late > 0 {
		text += " " + Number(f.Late, "more was", "more were") + " not looked at: time ran out."
	}
	if f.Left > 0 {
		text += " " + Number(f.Left, "was", "were") +
			" left out: letters that are gone, that are in a queue that you may not see, or that are test letters of dlo."
	}
	return text + " Nothing was changed."
}

// words describes the real outcome of a group of letters. If the letters are held, it names no
// rule, because a person or a guard held them.
func (d Decided) words() string {
	text := StateWord(d.State)
	if d.Rule == "" || d.State == deadletter.StateHeld {
		return text
	}
	return text + ruleAndSeverity(d)
}

// delays returns the delays of the rule that decided.
func (d Decided) delays() string {
	if d.Rule != "" && d.Delays == "" {
		return "no longer in use"
	}
	return line(d.Delays, delaysShown)
}

// outcomeWords returns a description of the outcome that letters would have had.
func (f Fate) outcomeWords() string {
	text := f.Would.Outcome.Past() + ruleAndSeverity(f.Would)
	if f.Was.State == deadletter.StateHeld {
		return "Held; once released, " + text
	}
	if f.Same {
		text = "still " + text
	}
	return upperFirst(text)
}

// ruleAndSeverity returns words with the name of the rule that made a decision, and with the
// severity.
func ruleAndSeverity(d Decided) string {
	text := ": rule " + Rule{Name: d.Rule}.label()
	if word, bars := severityMark(d.Severity); bars > 0 {
		text += ", severity " + strings.ToLower(word)
	}
	return text
}
