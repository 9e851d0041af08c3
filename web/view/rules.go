package view

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// RulesPage says what becomes of letters: the rules in use, which of them applies to a letter, and
// what people picked besides.
type RulesPage struct {
	Shell
	File      string    // that the rules were read from; "" = none
	Loaded    time.Time // zero: not said
	Rules     []Rule    // in order, the default last; none = not known here
	Chosen    int       // index of the rule that is shown at length
	Try       TryForm
	WhatIf    *WhatIf // nil: not asked for
	Tester    Tester
	Guards    []deadletter.Guard // what keeps retries back now
	Overrides []deadletter.Override
	Places    []RulesPlace // where a redirect can be: each broker with its vhost
	Form      OverrideForm
	Apply     string            // the query of letters that the rules are to be applied to, as it is written
	Mistakes  map[string]string // what is wrong in a field of the form of redirects, by its name, in "q", or in "try-q"
}

// Rule is one rule as it stands.
type Rule struct {
	Name     string
	When     []Clause // all of them have to fit; none = every letter
	Retry    RetryPlan
	OwnRetry bool // false: that of the default rule, and for letters that a worker refused only
	Discard  bool
	Severity deadletter.Severity // of its dead letters; "" = as the default rule says
	Notify   []string            // channels that are told of them
	Further  []string            // what else it changes, a sentence each
	YAML     string
	Default  bool
}

// Clause is one condition of a rule. What a letter holds there is not told.
type Clause struct {
	Field, Want string
	Fits        bool
}

// RetryPlan is a back-off: explicit delays, or a first one that grows.
type RetryPlan struct {
	Delays     []time.Duration
	First, Max time.Duration // without Delays; Max 0 = no limit of its own
	Factor     float64
	Curve      Curve
}

// Tester asks which rule applies to a letter, or to facts.
type Tester struct {
	Letter   string // id, as it is written
	Facts    FactsForm
	Mistakes map[string]string // by field; "letter" and "attempts" can be wrong, and "headers"
	Answer   *RuleAnswer
}

// FactsForm are the facts of a letter as they are written.
type FactsForm struct{ Queue, Reason, Type, Error, Exchange, Key, Attempts, Headers string }

// RuleAnswer says which rule applies, what it does next, and why the others do not apply.
type RuleAnswer struct {
	Letter    deadletter.ID    // "" = pasted facts
	State     deadletter.State // of the letter
	Was       string           // the rule that decided on the letter last; "" = none has
	Known     []Span           // what was looked at, as one line; no header values
	Rule      string
	Outcome   deadletter.RuleOutcome
	Number    int           // of the retry, from 1
	Delay     time.Duration // of the retry; 0 where it is not drawn yet
	Low, High time.Duration // when it can happen
	Severity  deadletter.Severity
	Why       string
	Notes     []string // what else decides about it
	Steps     []RuleStep
}

// RuleStep says of one rule whether it fits, and why not.
type RuleStep struct {
	Rule             string
	Matched, Applies bool
	Clauses          []Clause
}

// RulesPlace is a broker and its vhost.
type RulesPlace struct{ Broker, VHost string }

// Value is how a form names a place.
func (p RulesPlace) Value() string { return p.Broker + "\n" + p.VHost }

// OverrideForm is the form of a redirect as it is written.
type OverrideForm struct{ Place, Queue, To, Reason string }

// RuleURL is the page of the rules with one of them at length; i counts from 0.
func RuleURL(i int) string { return "/rules?rule=" + strconv.Itoa(i+1) + "#rule" }

// WhyURL is where the rules explain themselves for a letter.
func WhyURL(id deadletter.ID) string { return "/rules?" + url.Values{"letter": {string(id)}}.Encode() }

// source says where the rules come from.
func (p RulesPage) source() []Span {
	loaded := ""
	if !p.Loaded.IsZero() {
		loaded = ", loaded " + p.Loaded.UTC().Format("2 January 15:04 UTC")
	}
	if p.File == "" {
		return []Span{{Text: "First match wins. No rules file: these are the defaults" + loaded + "."}}
	}
	return []Span{{Text: "First match wins. Read from "}, {Text: line(p.File, 200), Code: true}, {Text: loaded + "."}}
}

// chosen is the rule that is shown at length.
func (p RulesPage) chosen() Rule { return p.Rules[min(max(p.Chosen, 0), len(p.Rules)-1)] }

// fallback is the default rule.
func (p RulesPage) fallback() Rule { return p.Rules[len(p.Rules)-1] }

const ruleName = 80 // bytes of a rule's name that a page shows

// label is what a rule is called on the page.
func (r Rule) label() string {
	if r.Name == "" {
		return "without a name"
	}
	return line(r.Name, ruleName)
}

const (
	wantShown    = 120 // bytes of what a clause wants
	clausesShown = 12  // clauses of one rule; its YAML has all
	wantInRow    = 60  // the same where all rules are listed
	clausesInRow = 3
)

func (c Clause) words(not string, n int) []Span {
	return []Span{{Text: line(c.Field, n) + " is " + not}, {Text: line(c.Want, n), Code: true}}
}

// when says which letters a rule is for, with the first n of its clauses.
func (r Rule) when(n int) []Span {
	switch {
	case r.Default:
		return []Span{{Text: "everything else"}}
	case len(r.When) == 0:
		return []Span{{Text: "every letter"}}
	}
	return clauses(r.When, "", n)
}

func clauses(all []Clause, not string, n int) []Span {
	var out []Span
	for i, c := range all {
		if i == n {
			return append(out, Span{Text: " and " + Count(len(all)-i) + " more"})
		}
		if i > 0 {
			out = append(out, Span{Text: " and "})
		}
		if n == clausesInRow {
			out = append(out, c.words(not, wantInRow)...)
		} else {
			out = append(out, c.words(not, wantShown)...)
		}
	}
	return out
}

// retries says in short what a rule does before a letter is dead.
func (r Rule) retries() string {
	switch {
	case r.Discard:
		return "discards at once"
	case !r.OwnRetry:
		return "same as default (rejected letters only)"
	}
	return r.Retry.words()
}

// words are a back-off in short: 10 s, 1 min 40 s; or 30 s × 3, 5 times, at most 30 min.
func (p RetryPlan) words() string {
	text := ""
	switch {
	case p.Curve.Count == 0:
		return "no retry"
	case len(p.Delays) > 0:
		var parts []string
		for i, d := range p.Delays {
			if i == 6 && len(p.Delays) > 7 {
				parts = append(parts, Number(len(p.Delays)-i, "more", "more"))
				break
			}
			parts = append(parts, Duration(d))
		}
		text = strings.Join(parts, ", ")
	default:
		text = Duration(p.First)
		if p.Factor > 1 {
			text += " × " + number(p.Factor)
		}
		text += ", " + Number(p.Curve.Count, "time", "times")
		if p.Max > 0 && p.Factor > 1 {
			text += ", at most " + Duration(p.Max)
		}
	}
	if p.Curve.Jitter > 0 {
		text += ", ±" + share(p.Curve.Jitter)
	}
	return text
}

// then is what becomes of a letter whose retries are used up.
func (p RulesPage) then(r Rule) string {
	if s := p.severity(r); s != "" {
		return "dead, severity " + s
	}
	return "dead"
}

// severity is how loudly the dead letters of a rule call; "" when it is not known.
func (p RulesPage) severity(r Rule) string {
	s := r.Severity
	if s == "" {
		s = p.fallback().Severity
	}
	word, _ := severityMark(s)
	return strings.ToLower(word)
}

// asked says whether the tester was asked something.
func (t Tester) asked() bool { return t.Answer != nil || len(t.Mistakes) > 0 }

// described says whether that was about facts, and not about a letter.
func (t Tester) described() bool { return t.asked() && t.Letter == "" }

// next says what the rule does next.
func (a RuleAnswer) next() string {
	switch a.Outcome {
	case deadletter.RuleDiscard:
		return "discarded at once: known noise"
	case deadletter.RuleRetry:
		return "retry " + Count(a.Number) + a.when()
	}
	severity, _ := severityMark(a.Severity)
	return "dead, severity " + strings.ToLower(unknownIf(severity)) + ": " + line(a.Why, 200)
}

// when says when the retry of an answer can happen.
func (a RuleAnswer) when() string {
	switch {
	case a.Low == a.High:
		return ", in " + Duration(a.Low)
	case a.Delay > 0:
		return ", in " + Duration(a.Delay) + " (between " + Duration(a.Low) + " and " + Duration(a.High) + ")"
	}
	return ", between " + Duration(a.Low) + " and " + Duration(a.High)
}

// changed says whether another rule than now decided on the letter.
func (a RuleAnswer) changed() bool { return a.Was != "" && a.Was != a.Rule }

// reason says why a rule does not apply.
func (s RuleStep) reason() []Span {
	if s.Matched {
		return []Span{{Text: "would match, but comes later"}}
	}
	missed := slices.DeleteFunc(slices.Clone(s.Clauses), func(c Clause) bool { return c.Fits })
	if len(missed) == 0 {
		return []Span{{Text: "does not match"}}
	}
	return clauses(missed, "not ", clausesInRow)
}

// place is the number of a step's rule; the default has none.
func (a RuleAnswer) place(i int) string {
	if i == len(a.Steps)-1 {
		return ""
	}
	return strconv.Itoa(i+1) + " "
}

// stepsShown are the rules that a tester's answer lists; the API has all.
const stepsShown = 50

var guardStates = map[deadletter.GuardState]mark{
	deadletter.GuardPaused:  {"Paused", "pause", "warn"},
	deadletter.GuardTripped: {"Stopped automatically", "stop", "bad"},
	deadletter.GuardProbing: {"Probing", "clock", "wait"},
	deadletter.GuardRamping: {"Starting slowly", "play", "wait"},
}

// guardWord says what keeps retries back.
func guardWord(g deadletter.Guard) mark { return markOf(guardStates, g.State) }

// several says whether a redirect has to say where its queue is.
func (p RulesPage) several() bool { return len(p.Places) > 1 }

func overrideWord(o deadletter.Override) string {
	return "Remove the redirect of " + queueName(o.Queue)
}

func ruleWrong(wrong map[string]string, name string) templ.Attributes {
	return fieldWrong("rule-"+name, wrong[name])
}

const (
	rulesShown  = 50   // rows of the table of rules; the API has all
	guardsShown = 20   // lines of what keeps retries back
	ruleYAML    = 3000 // bytes of the YAML of one rule that a page shows; the file has all
)

// yamlShown is YAML as a page shows it.
func yamlShown(text string, n int) string {
	shown := deadletter.VisibleLines(deadletter.Cut(text, n))
	if len(text) > n {
		shown += "\n# " + Size(len(text)-n) + " more: see the file"
	}
	return shown
}

// Known writes what is known of a letter as one line: pairs of a name and a value, those without a
// value left out, and how many attempts it used.
func Known(pairs [][2]string, attempts int) []Span {
	var out []Span
	for _, p := range pairs {
		if p[1] != "" {
			out = append(out, Span{Text: p[0] + " "}, Span{Text: line(p[1], wantShown), Code: true}, Span{Text: ", "})
		}
	}
	return append(out, Span{Text: Number(attempts, "attempt", "attempts") + " used."})
}
