package view

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// RulesPage shows the current rules for letters, and the redirects that people added. It can also
// show what rules would have decided about stored letters.
type RulesPage struct {
	Shell
	File      string    // the file from which the rules were read, or ""
	Loaded    time.Time // when the rules were loaded; a zero time is not shown
	Rules     []Rule    // the rules in their order with the default last; empty if this process has none
	Chosen    int       // the index of the rule that is shown in detail
	Try       TryForm
	WhatIf    *rules.WhatIf      // nil if it was not requested
	Guards    []deadletter.Guard // the guards that stop retries now
	Overrides []deadletter.Override
	Places    []RulesPlace // the brokers, with their vhosts, to which a redirect can apply
	Form      OverrideForm
	Apply     string            // the query for applying the rules, as typed
	Mistakes  map[string]string // the mistakes by field: the fields of the form for redirects, "q" and "try-q"
}

// Rule is one of the current rules.
type Rule struct {
	rules.Rule
	When    []rules.Condition // a letter must meet all conditions; without conditions, every letter matches
	Delays  string            // the delays and the final outcome in one line, for letters that were rejected
	Further []string          // the further effects of the rule, one sentence each
	Default bool
}

// RulesPlace is a broker and one of its vhosts.
type RulesPlace struct{ Broker, VHost string }

// Value returns the value that stands for a broker and its vhost in a form.
func (p RulesPlace) Value() string {
	return url.Values{"broker": {p.Broker}, "vhost": {p.VHost}}.Encode()
}

// OverrideForm contains the form for a redirect as a person typed it.
type OverrideForm struct{ Place, Queue, To, Reason string }

// RuleURL returns the URL of the page of rules with one rule in detail. The first rule has i = 0.
func RuleURL(i int) string { return "/rules?rule=" + strconv.Itoa(i+1) + "#rule" }

// source says from which file the rules come and when they were loaded.
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

// chosenRule returns the rule shown in detail.
func (p RulesPage) chosenRule() Rule { return p.Rules[min(max(p.Chosen, 0), len(p.Rules)-1)] }

// fallback returns the default rule.
func (p RulesPage) fallback() Rule { return p.Rules[len(p.Rules)-1] }

const ruleName = 80 // the maximum size of the name of a rule in bytes

// ruleLabel returns the name of a rule as the page shows it.
func ruleLabel(name string) string {
	if name == "" {
		return "without a name"
	}
	return line(name, ruleName)
}

const (
	wantShown    = 120 // the maximum size of the value that a condition expects, in bytes
	clausesShown = 12  // the maximum number of conditions of one rule; its YAML shows all
	wantInRow    = 60  // the same as wantShown, for the list of rules
	clausesInRow = 3
)

// matchWords describes which letters a rule matches. It lists the first n conditions of the rule.
func (r Rule) matchWords(n int) []Span {
	switch {
	case r.Default:
		return []Span{{Text: "everything else"}}
	case len(r.When) == 0:
		return []Span{{Text: "every letter"}}
	}
	return conditionWords(r.When, "", n)
}

func conditionWords(all []rules.Condition, not string, n int) []Span {
	var out []Span
	size := wantShown
	if n == clausesInRow {
		size = wantInRow
	}
	for i, c := range all {
		if i == n {
			return append(out, Span{Text: " and " + Count(len(all)-i) + " more"})
		}
		if i > 0 {
			out = append(out, Span{Text: " and "})
		}
		out = append(out, Span{Text: line(c.Field, size) + " is " + not}, Span{Text: line(c.Want, size), Code: true})
	}
	return out
}

// retries returns a summary of the retries that a rule makes before a letter is dead.
func (r Rule) retries() string {
	switch {
	case r.Discard:
		return "discards at once"
	case !r.ownRetry():
		return "same as default (rejected letters only)"
	case r.Retry == nil:
		return retryWords(&rules.Retry{})
	}
	return retryWords(r.Retry)
}

// ownRetry reports whether the rule has retries of its own. If it has none, those of the default
// rule apply, but only to rejected letters.
func (r Rule) ownRetry() bool { return r.Retry != nil || r.Default }

// retryWords returns a summary of when a rule retries, for example "10 s, 1 min 40 s" or "30 s × 3,
// 5 times, at most 30 min".
func retryWords(p *rules.Retry) string {
	text := ""
	switch {
	case p.Count() == 0:
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
		text += ", " + Number(p.Count(), "time", "times")
		if p.Max > 0 && p.Factor > 1 {
			text += ", at most " + Duration(p.Max)
		}
	}
	if p.Jitter > 0 {
		text += ", ±" + share(p.Jitter)
	}
	return text
}

// share formats a fraction as a percentage, for example 10% or 12.5%.
func share(v float64) string { return number(v*100) + "%" }

// severity returns the severity of letters that a rule leaves dead, or "" if it is not known.
func (p RulesPage) severity(r Rule) string {
	s := r.Severity
	if s == "" {
		s = p.fallback().Severity
	}
	word, _ := severityMark(s)
	return strings.ToLower(word)
}

var guardStates = map[deadletter.GuardState]mark{
	deadletter.GuardPaused:  {"Paused", "pause", "warn"},
	deadletter.GuardTripped: {"Stopped automatically", "stop", "bad"},
	deadletter.GuardProbing: {"Probing", "clock", "wait"},
	deadletter.GuardRamping: {"Starting slowly", "play", "wait"},
}

// guardWord returns a coloured mark. It says whether retries are running, paused by a person, or
// stopped by a circuit breaker.
func guardWord(g deadletter.Guard) mark { return markOf(guardStates, g.State) }

// needsPlaces reports whether a redirect has to name the broker and the vhost of its queue.
func (p RulesPage) needsPlaces() bool { return len(p.Places) > 1 }

func overrideWord(o deadletter.Override) string {
	return "Remove the redirect of " + queueName(o.Queue)
}

func ruleWrong(wrong map[string]string, name string) templ.Attributes {
	return fieldWrong("rule-"+name, wrong[name])
}

const (
	rulesShown  = 50   // the maximum number of rows in the table of rules; the API returns all
	guardsShown = 20   // the maximum number of lines about stopped retries
	ruleYAML    = 3000 // the maximum size of the YAML of a rule in bytes; the file contains all of it
)

// yamlShown returns YAML as a page shows it, cut to n bytes.
func yamlShown(text string, n int) string {
	shown := deadletter.VisibleLines(deadletter.Cut(text, n))
	if len(text) > n {
		shown += "\n# " + Size(len(text)-n) + " more: see the file"
	}
	return shown
}
