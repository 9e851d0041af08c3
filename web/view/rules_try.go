package view

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TryForm is the form for testing rules on stored letters.
type TryForm struct {
	Text     string // the text as typed; at first the current rules
	Unshown  int    // the size of the current rules in bytes if they are too long to show, or 0
	Query    string // the query for the letters as typed; "" selects the usual letters
	Mistakes []deadletter.Mistake
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

// mistakeWords describes a mistake, with its position.
func mistakeWords(m deadletter.Mistake) string {
	text := line(m.Text, 500)
	if m.Line == 0 {
		return text
	}
	return "Line " + Count(m.Line) + ", column " + Count(m.Column) + ": " + text
}

// lineWith returns the line of the text that contains a mistake. It returns "" if the mistake
// concerns the whole text.
func (f TryForm) lineWith(m deadletter.Mistake) string {
	if lines := strings.Split(f.Text, "\n"); m.Line >= 1 && m.Line <= len(lines) {
		return strings.TrimSpace(lines[m.Line-1])
	}
	return ""
}

// howToUse explains how a person can make dlo use new rules.
func (p RulesPage) howToUse() []Span {
	if p.Set.File == "" {
		return []Span{
			{Text: "To use rules, put them into a configuration file and start dlo with it: "},
			{Text: "dlo serve dlo.yaml", Code: true},
			{Text: ". New rules affect new deaths only. "},
		}
	}
	return []Span{
		{Text: "To use rules, put them into "},
		{Text: line(p.Set.File, 200), Code: true},
		{Text: ", check it with "},
		{Text: "dlo config check", Code: true},
		{Text: ", then run dlo reload. New rules affect new deaths only. "},
	}
}

// whatIfWords describes which letters were examined.
func whatIfWords(f *rules.WhatIf) string {
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

// realOutcome describes the real outcome of a group of letters. If the letters are held, it names
// no rule, because a person or a guard held them.
func realOutcome(d rules.Outcome) string {
	text := StateWord(d.State)
	if d.Rule == "" || d.State == deadletter.StateHeld {
		return text
	}
	return text + ruleAndSeverity(d)
}

// outcomeDelays returns the delays of the rule that decided.
func outcomeDelays(d rules.Outcome) string {
	if d.Rule != "" && d.Delays == "" {
		return "no longer in use"
	}
	return line(d.Delays, delaysShown)
}

// outcomeWords returns a description of the outcome that letters would have had.
func outcomeWords(f rules.Fate) string {
	text := f.Would.Action.Past() + ruleAndSeverity(f.Would)
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
func ruleAndSeverity(d rules.Outcome) string {
	text := ": rule " + ruleLabel(d.Rule)
	if word, bars := severityMark(d.Severity); bars > 0 {
		text += ", severity " + strings.ToLower(word)
	}
	return text
}
