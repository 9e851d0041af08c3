package view

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TryForm is where rules are written to see what they would do.
type TryForm struct {
	Text     string // as it is written; at first the rules in use
	Unshown  int    // bytes of the rules in use, where these are too long for that; else 0
	Query    string // of the letters, as it is written; "" = the usual ones
	Mistakes []RuleMistake
	Tried    bool     // what would be is that of Text, and not of the rules in use
	Notes    []string // what of Text was not tried, a sentence each
}

// RuleMistake is what is wrong in a line of the rules that were written.
type RuleMistake struct {
	Line, Column int // 0: of the whole text
	Text         string
	In           string // the line
}

// WhatIf says what rules would have made of stored letters when they last died, beside what became
// of them.
type WhatIf struct {
	Query    string // which letters
	Usual    bool   // it is those that are looked at where nobody asks for others
	Matching int    // letters in the store that Query selects
	Exact    bool   // false: Matching stopped early
	Most     int    // letters that are looked at
	Looked   int
	Late     int         // not looked at, since the time was up
	Left     int         // gone meanwhile, of queues that the reader may not see, or of trials
	Rules    []RuleCount // one for each rule, the default last
	Totals   []RuleTotal // by the state that letters are in
	Fates    []Fate      // what would be otherwise first, most letters first
}

// RuleCount is what one rule would do.
type RuleCount struct {
	Rule    string
	Delays  string // its retries in a line, and what comes then
	Letters int
	Become  map[deadletter.RuleOutcome]int // letters
}

// RuleTotal is what rules would make of the letters that are in a state.
type RuleTotal struct {
	State   deadletter.State
	Letters int
	Become  map[deadletter.RuleOutcome]int // letters
}

// Fate is what became of some letters, and what rules would have made of them.
type Fate struct {
	Was, Would Decided
	Same       bool // nothing would have been otherwise
	Letters    int
	Examples   []deadletter.ID // newest first
	Query      string          // that selects exactly these; "" = none does
}

// Decided is what became of a letter, or would have.
type Decided struct {
	State    deadletter.State       // of what did; "" of what would have
	Outcome  deadletter.RuleOutcome // of what would have; "" of what did
	Rule     string                 // that decided; "" = none
	Severity deadletter.Severity    // of one that is dead
	Delays   string                 // of that rule, in a line; "" = it is not in use any more
}

// WhatIfLetters is how many stored letters rules are tried on.
const WhatIfLetters = 500

const (
	fatesShown  = 25  // rows of what would be; the API has all
	lineShown   = 120 // bytes of a line with a mistake
	delaysShown = 200 // bytes of delays
	triedShown  = 25  // rows of the rules that were tried
)

// tried says whether rules were written and sent: then what is said of them is first.
func (p RulesPage) tried() bool {
	return p.Try.Tried || len(p.Try.Mistakes) > 0 || p.Mistakes["try-q"] != ""
}

// rows is how high the field of the rules is without a script.
func (f TryForm) rows() string { return strconv.Itoa(min(max(strings.Count(f.Text, "\n")+1, 8), 24)) }

// invalid ties the field of the rules to what is wrong in it.
func (f TryForm) invalid() templ.Attributes {
	if len(f.Mistakes) == 0 {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": "try-text-wrong"}
}

// place says where a mistake is.
func (m RuleMistake) place() string {
	if m.Line == 0 {
		return ""
	}
	return "Line " + Count(m.Line) + ", column " + Count(m.Column) + ": "
}

// use says how rules come into use.
func (p RulesPage) use() []Span {
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

// does says what rules would do with letters: 3 retried, 2 dead.
func does(become map[deadletter.RuleOutcome]int) string {
	var parts []string
	for _, o := range deadletter.RuleOutcomes {
		if n := become[o]; n > 0 {
			parts = append(parts, Count(n)+" "+o.Past())
		}
	}
	return strings.Join(parts, ", ")
}

// Words are a total in a sentence: of 312 dead letters, 288 would still be dead and 24 would be
// retried.
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

// dryRun says whether the rules in use were asked what they would do.
func (p RulesPage) dryRun() bool { return p.WhatIf != nil && !p.Try.Tried }

// words say what was looked at.
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
		text += " " + Number(f.Left, "was", "were") + " left out: gone meanwhile, in a queue that you may not see, or test letters of dlo."
	}
	return text + " Nothing was changed."
}

// count is what rule i would do.
func (f WhatIf) count(i int) RuleCount {
	if i < len(f.Rules) {
		return f.Rules[i]
	}
	return RuleCount{}
}

// matched says how many of the rules that were tried apply to one of the letters.
func (f WhatIf) matched() string {
	n := 0
	for _, r := range f.Rules {
		if r.Letters > 0 {
			n++
		}
	}
	return "Each rule that was tried: " + Count(n) + " of " + Count(len(f.Rules)) + " apply to one of these letters"
}

// words say what became of letters. What is held is so by a guard or a person, and by no rule.
func (d Decided) words() string {
	text := StateWord(d.State)
	if d.Rule == "" || d.State == deadletter.StateHeld {
		return text
	}
	return text + by(d)
}

// delays are those of the rule.
func (d Decided) delays() string {
	if d.Rule != "" && d.Delays == "" {
		return "no longer in use"
	}
	return line(d.Delays, delaysShown)
}

// would says what would have become of letters.
func (f Fate) would() string {
	text := f.Would.Outcome.Past() + by(f.Would)
	if f.Was.State == deadletter.StateHeld {
		return "Held; once released, " + text
	}
	if f.Same {
		text = "still " + text
	}
	return upperFirst(text)
}

// by names the rule of a decision, and how loudly it calls.
func by(d Decided) string {
	text := ": rule " + Rule{Name: d.Rule}.label()
	if word, bars := severityMark(d.Severity); bars > 0 {
		text += ", severity " + strings.ToLower(word)
	}
	return text
}
