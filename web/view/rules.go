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

// RulesPage shows what happens to letters: the rules in use, the rule that applies to a given
// letter, and the redirects that people added.
type RulesPage struct {
	Shell
	File      string    // file that the rules were read from; "" = none
	Loaded    time.Time // zero: not shown
	Rules     []Rule    // in order, the default last; empty = the rules are not known here
	Chosen    int       // index of the rule shown in detail
	Try       TryForm
	WhatIf    *WhatIf // nil: not requested
	Tester    Tester
	Guards    []deadletter.Guard // guards that stop retries now
	Overrides []deadletter.Override
	Places    []RulesPlace // where a redirect can apply: brokers with their vhosts
	Form      OverrideForm
	Apply     string            // the query for applying the rules, as typed
	Mistakes  map[string]string // mistakes by form field: the fields of the redirect form, "q" and "try-q"
}

// Rule is one rule in use.
type Rule struct {
	Name     string
	When     []Clause // a letter must meet all of them; none = every letter
	Retry    RetryPlan
	OwnRetry bool // false: the default rule's retries apply, but only to rejected letters
	Discard  bool
	Severity deadletter.Severity // severity of the rule's dead letters; "" = the severity of the default rule
	Notify   []string            // channels notified of dead letters
	Further  []string            // further effects of the rule, one sentence each
	YAML     string
	Default  bool
}

// Clause is one condition of a rule. It does not contain the letter's value.
type Clause struct {
	Field, Want string
	Fits        bool
}

// RetryPlan is a back-off, either explicit delays or a growing first delay.
type RetryPlan struct {
	Delays     []time.Duration
	First, Max time.Duration // used if Delays is empty; Max 0 = no own limit
	Factor     float64
	Curve      Curve
}

// Tester holds the question which rule applies to a letter or to given facts. It also holds the
// answer.
type Tester struct {
	Letter   string // id, as typed
	Facts    FactsForm
	Mistakes map[string]string // mistakes by field: "letter", "attempts" or "headers"
	Answer   *RuleAnswer
}

// FactsForm holds the facts of a letter as typed.
type FactsForm struct{ Queue, Reason, Type, Error, Exchange, Key, Attempts, Headers string }

// RuleAnswer says which rule applies, what the rule does next, and why the other rules do not
// apply.
type RuleAnswer struct {
	Letter    deadletter.ID    // "" = pasted facts
	State     deadletter.State // of the letter
	Was       string           // the rule that made the last decision on the letter; "" = none
	Known     []Span           // the facts considered, in one line; no header values
	Rule      string
	Outcome   deadletter.RuleOutcome
	Number    int           // number of the retry, from 1
	Delay     time.Duration // delay of the retry; 0 if not drawn yet
	Low, High time.Duration // range of the retry's delay
	Severity  deadletter.Severity
	Why       string
	Notes     []string // other facts that affect the decision
	Steps     []RuleStep
}

// RuleStep says whether one rule matches. If the rule does not match, it says why.
type RuleStep struct {
	Rule             string
	Matched, Applies bool
	Clauses          []Clause
}

// RulesPlace is a broker and its vhost.
type RulesPlace struct{ Broker, VHost string }

// Value returns the form value of a place.
func (p RulesPlace) Value() string { return p.Broker + "\n" + p.VHost }

// OverrideForm holds the redirect form as typed.
type OverrideForm struct{ Place, Queue, To, Reason string }

// RuleURL returns the URL of the rules page with one rule in detail. i counts from 0.
func RuleURL(i int) string { return "/rules?rule=" + strconv.Itoa(i+1) + "#rule" }

// WhyURL returns the URL of the page that explains the rules for a letter.
func WhyURL(id deadletter.ID) string { return "/rules?" + url.Values{"letter": {string(id)}}.Encode() }

// source describes where the rules come from.
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

// chosen returns the rule shown in detail.
func (p RulesPage) chosen() Rule { return p.Rules[min(max(p.Chosen, 0), len(p.Rules)-1)] }

// fallback returns the default rule.
func (p RulesPage) fallback() Rule { return p.Rules[len(p.Rules)-1] }

const ruleName = 80 // maximum bytes of a rule's name

// label returns the name of a rule in the form in which the page shows it.
func (r Rule) label() string {
	if r.Name == "" {
		return "without a name"
	}
	return line(r.Name, ruleName)
}

const (
	wantShown    = 120 // maximum bytes of a clause's expected value
	clausesShown = 12  // maximum number of clauses of one rule; its YAML shows all
	wantInRow    = 60  // like wantShown, in the list of rules
	clausesInRow = 3
)

func (c Clause) words(not string, n int) []Span {
	return []Span{{Text: line(c.Field, n) + " is " + not}, {Text: line(c.Want, n), Code: true}}
}

// when describes which letters a rule matches. It lists the first n clauses of the rule.
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

// retries summarises the retries of a rule before a letter is dead.
func (r Rule) retries() string {
	switch {
	case r.Discard:
		return "discards at once"
	case !r.OwnRetry:
		return "same as default (rejected letters only)"
	}
	return r.Retry.words()
}

// words summarises a back-off, for example "10 s, 1 min 40 s" or "30 s × 3, 5 times, at most 30
// min".
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

// then describes the fate of a letter after its last retry.
func (p RulesPage) then(r Rule) string {
	if s := p.severity(r); s != "" {
		return "dead, severity " + s
	}
	return "dead"
}

// severity returns the severity of a rule's dead letters, or "" if it is not known.
func (p RulesPage) severity(r Rule) string {
	s := r.Severity
	if s == "" {
		s = p.fallback().Severity
	}
	word, _ := severityMark(s)
	return strings.ToLower(word)
}

// asked reports whether the tester was used.
func (t Tester) asked() bool { return t.Answer != nil || len(t.Mistakes) > 0 }

// described reports whether the tester was used with facts instead of a letter.
func (t Tester) described() bool { return t.asked() && t.Letter == "" }

// next describes what the rule does next.
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

// when describes the time at which the retry of an answer can happen.
func (a RuleAnswer) when() string {
	switch {
	case a.Low == a.High:
		return ", in " + Duration(a.Low)
	case a.Delay > 0:
		return ", in " + Duration(a.Delay) + " (between " + Duration(a.Low) + " and " + Duration(a.High) + ")"
	}
	return ", between " + Duration(a.Low) + " and " + Duration(a.High)
}

// changed reports whether another rule made the last decision on the letter.
func (a RuleAnswer) changed() bool { return a.Was != "" && a.Was != a.Rule }

// reason explains why a rule does not apply.
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

// place returns the number of a step's rule. The default rule has no number.
func (a RuleAnswer) place(i int) string {
	if i == len(a.Steps)-1 {
		return ""
	}
	return strconv.Itoa(i+1) + " "
}

// stepsShown is the maximum number of rules in a tester's answer. The API returns all.
const stepsShown = 50

var guardStates = map[deadletter.GuardState]mark{
	deadletter.GuardPaused:  {"Paused", "pause", "warn"},
	deadletter.GuardTripped: {"Stopped automatically", "stop", "bad"},
	deadletter.GuardProbing: {"Probing", "clock", "wait"},
	deadletter.GuardRamping: {"Starting slowly", "play", "wait"},
}

// guardWord returns the mark for the state of a guard.
func guardWord(g deadletter.Guard) mark { return markOf(guardStates, g.State) }

// several reports whether a redirect has to name the broker and vhost of its queue.
func (p RulesPage) several() bool { return len(p.Places) > 1 }

func overrideWord(o deadletter.Override) string {
	return "Remove the redirect of " + queueName(o.Queue)
}

func ruleWrong(wrong map[string]string, name string) templ.Attributes {
	return fieldWrong("rule-"+name, wrong[name])
}

const (
	rulesShown  = 50   // maximum rows of the table of rules; the API returns all
	guardsShown = 20   // maximum number of lines about stopped retries
	ruleYAML    = 3000 // maximum bytes of a rule's YAML; the file has all
)

// yamlShown returns YAML in the form in which a page shows it.
func yamlShown(text string, n int) string {
	shown := deadletter.VisibleLines(deadletter.Cut(text, n))
	if len(text) > n {
		shown += "\n# " + Size(len(text)-n) + " more: see the file"
	}
	return shown
}

// Known describes a letter in one line. It lists the pairs of name and value, and leaves out empty
// values. It also shows the number of attempts used.
func Known(pairs [][2]string, attempts int) []Span {
	var out []Span
	for _, p := range pairs {
		if p[1] != "" {
			out = append(out, Span{Text: p[0] + " "}, Span{Text: line(p[1], wantShown), Code: true}, Span{Text: ", "})
		}
	}
	return append(out, Span{Text: Number(attempts, "attempt", "attempts") + " used."})
}
