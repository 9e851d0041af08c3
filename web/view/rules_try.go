package view

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TryForm is the form for trying rules on stored letters.
type TryForm struct {
	Text     string // as typed; at first the rules in use
	Unshown  int    // bytes of the rules in use if they are too long to show; else 0
	Query    string // query for the letters, as written; "" = the usual letters
	Mistakes []RuleMistake
	Tried    bool     // the result is for Text, not for the rules in use
	Notes    []string // parts of Text that were not tried, one sentence each
}

// RuleMistake is an error in one line of the typed rules.
type RuleMistake struct {
	Line, Column int // 0: the whole text
	Text         string
	In           string // the line
}

// WhatIf shows the outcomes that rules would have had for stored letters at their last death,
// beside the real outcomes.
type WhatIf struct {
	Query    string // which letters
	Usual    bool   // the default letters, because the query is empty
	Matching int    // stored letters that Query selects
	Exact    bool   // false: the count stopped early
	Most     int    // maximum number of letters examined
	Looked   int
	Late     int         // letters that were not examined because time ran out
	Left     int         // letters that are gone, in queues hidden from the reader, or from trials
	Rules    []RuleCount // one per rule, the default last
	Totals   []RuleTotal // by the letters' state
	Fates    []Fate      // changed outcomes first, and then by number of letters
}

// RuleCount counts, by outcome, the letters to which one rule would apply.
type RuleCount struct {
	Rule    string
	Delays  string // the rule's retries and final outcome in one line
	Letters int
	Become  map[deadletter.RuleOutcome]int // letters
}

// RuleTotal counts the letters in one state. It counts them by the outcome that rules would have.
type RuleTotal struct {
	State   deadletter.State
	Letters int
	Become  map[deadletter.RuleOutcome]int // letters
}

// Fate is a number of letters with the same real outcome and the same outcome under the tried
// rules.
type Fate struct {
	Was, Would Decided
	Same       bool // the rules would change nothing
	Letters    int
	Examples   []deadletter.ID // newest first
	Query      string          // query that selects exactly these letters; "" = no query does
}

// Decided is either the real outcome of a letter, or the outcome that it would have had.
type Decided struct {
	State    deadletter.State       // for a real outcome; "" for an outcome under the tried rules
	Outcome  deadletter.RuleOutcome // for an outcome under the tried rules; "" for a real outcome
	Rule     string                 // rule that decided; "" = none
	Severity deadletter.Severity    // if dead
	Delays   string                 // delays of that rule, in one line; "" = the rule is no longer in use
}

// WhatIfLetters is the number of stored letters on which rules are tried.
const WhatIfLetters = 500

const (
	fatesShown  = 25  // maximum rows of results; the API returns all
	lineShown   = 120 // maximum bytes of a line with a mistake
	delaysShown = 200 // bytes of delays
	triedShown  = 25  // maximum rows of tried rules
)

// tried reports whether rules were submitted. In that case, the page shows the result first.
func (p RulesPage) tried() bool {
	return p.Try.Tried || len(p.Try.Mistakes) > 0 || p.Mistakes["try-q"] != ""
}

// rows returns the height of the rules field in a browser without scripts.
func (f TryForm) rows() string { return strconv.Itoa(min(max(strings.Count(f.Text, "\n")+1, 8), 24)) }

// invalid returns the attributes that link the rules field to its error message.
func (f TryForm) invalid() templ.Attributes {
	if len(f.Mistakes) == 0 {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": "try-text-wrong"}
}

// place returns the line and the column of a mistake.
func (m RuleMistake) place() string {
	if m.Line == 0 {
		return ""
	}
	return "Line " + Count(m.Line) + ", column " + Count(m.Column) + ": "
}

// howToUse returns an explanation of how to put rules into use.
func (p RulesPage) howToUse() []Span {
	if p.File == "" {
		return []Span{{Text: "To use rules, put them into a configuration file and start dlo with it: "}, {Text: "dlo serve dlo.yaml", Code: true}, {Text: ". New rules affect new deaths only. "}}
	}
	return []Span{
		{Text: "To use rules, put them into "},
		{Text: line(p.File, 200), Code: true},
		{Text: ", check it with "},
		{Text: "dlo config check", Code: true},
		{Text: ", then send SIGHUP to dlo or restart it. New rules affect new deaths only. "},
	}
}

// outcomeCounts returns the counts of letters by the outcome that rules would have, for example "3
// retried, 2 dead".
func outcomeCounts(become map[deadletter.RuleOutcome]int) string {
	var parts []string
	for _, o := range deadletter.RuleOutcomes {
		if n := become[o]; n > 0 {
			parts = append(parts, Count(n)+" "+o.Past())
		}
	}
	return strings.Join(parts, ", ")
}

// Words describes a total in a sentence: "Of 312 dead letters, 288 would still be dead and 24 would
// be retried."
func (t RuleTotal) Words() string {
	state := strings.ToLower(StateWord(t.State))
	letters := Number(t.Letters, state+" letter", state+" letters")
	var would []string
	for _, o := range deadletter.RuleOutcomes {
		n, text := t.Become[o], " would be "+o.Past()
		if o == t.State.Ruled() {
			text = " would still be " + o.Past()
		}
		if n > 0 {
			would = append(would, Count(n)+text)
		}
	}
	if t.State == deadletter.StateHeld {
		return letters + " would stay held. Once released, " + enumerated(would) + "."
	}
	return "Of " + letters + ", " + enumerated(would) + "."
}

// dryRun reports whether the result is for the rules in use.
func (p RulesPage) dryRun() bool { return p.WhatIf != nil && !p.Try.Tried }

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
		text += " " + Number(f.Left, "was", "were") + " left out: letters that are gone, that are in a queue that you may not see, or that are test letters of dlo."
	}
	return text + " Nothing was changed."
}

// count returns the number of letters that rule i would apply to, by outcome.
func (f WhatIf) count(i int) RuleCount {
	if i < len(f.Rules) {
		return f.Rules[i]
	}
	return RuleCount{}
}

// matched returns text with the number of tried rules that apply to at least one letter.
func (f WhatIf) matched() string {
	n := 0
	for _, r := range f.Rules {
		if r.Letters > 0 {
			n++
		}
	}
	return "Each rule that was tried: " + Count(n) + " of " + Count(len(f.Rules)) + " apply to one of these letters"
}

// words describes the real outcome of letters. For held letters, it names no rule, because a guard
// or a person held them.
func (d Decided) words() string {
	text := StateWord(d.State)
	if d.Rule == "" || d.State == deadletter.StateHeld {
		return text
	}
	return text + ruleAndSeverity(d)
}

// delays returns the delays of the rule.
func (d Decided) delays() string {
	if d.Rule != "" && d.Delays == "" {
		return "no longer in use"
	}
	return line(d.Delays, delaysShown)
}

// would returns a description of the outcome that letters would have had.
func (f Fate) would() string {
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
