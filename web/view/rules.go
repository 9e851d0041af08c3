package view

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// RulesPage shows the current rules for letters, and the redirects that people added. It can also
// show what rules would have decided about stored letters.
type RulesPage struct {
	Shell
	Set       *rules.Set
	Chosen    int // the index of the rule that is shown in detail
	Try       TryForm
	WhatIf    *rules.WhatIf      // nil if it was not requested
	Guards    []deadletter.Guard // the guards that stop retries now
	Overrides []deadletter.Override
	Form      url.Values        // the form for a redirect, as a person typed it
	Apply     string            // the query for applying the rules, as typed
	Mistakes  map[string]string // the mistakes by field: the fields of the form for redirects, "q" and "try-q"
}

// rule is one of the rules of a set.
type rule struct {
	*rules.Rule
	set *rules.Set
}

// rules returns the rules in their order, with the default last.
func (p RulesPage) rules() []rule {
	var list []rule
	for i := range p.Set.Rules {
		list = append(list, rule{&p.Set.Rules[i], p.Set})
	}
	return append(list, rule{&p.Set.Default, p.Set})
}

func (r rule) isDefault() bool { return r.Rule == &r.set.Default }

// RuleURL returns the URL of the page of rules with one rule in detail. The first rule has i = 0.
func RuleURL(i int) string { return "/rules?rule=" + strconv.Itoa(i+1) + "#rule" }

// source says from which file the rules come and when they were loaded.
func (p RulesPage) source() []Span {
	loaded := ""
	if !p.Set.Loaded.IsZero() {
		loaded = ", loaded " + p.Set.Loaded.UTC().Format("2 January 15:04 UTC")
	}
	if p.Set.File == "" {
		return []Span{{Text: "First match wins. No rules file: these are the defaults" + loaded + "."}}
	}
	return []Span{{Text: "First match wins. Read from "}, {Text: line(p.Set.File, 200), Code: true}, {Text: loaded + "."}}
}

// chosenRule returns the rule shown in detail.
func (p RulesPage) chosenRule() rule {
	all := p.rules()
	return all[min(max(p.Chosen, 0), len(all)-1)]
}

const ruleName = 80 // the maximum size of the name of a rule in bytes

// ruleLabel returns the name of a rule as the page shows it.
func ruleLabel(name string) string {
	return line(cmp.Or(name, "without a name"), ruleName)
}

const (
	wantShown    = 120 // the maximum size of the value that a condition expects, in bytes
	clausesShown = 12  // the maximum number of conditions of one rule; its YAML shows all
	wantInRow    = 60  // the same as wantShown, for the list of rules
	clausesInRow = 3
)

// matchWords describes which letters a rule matches. It lists the first n conditions of the rule.
func (r rule) matchWords(n int) []Span {
	when := r.Match.Conditions()
	switch {
	case r.isDefault():
		return []Span{words("everything else")}
	case len(when) == 0:
		return []Span{{Text: "every letter"}}
	}
	return conditionWords(when, "", n)
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
func (r rule) retries() string {
	switch {
	case r.Discard:
		return "discards at once"
	case !r.ownRetry():
		return "same as default (rejected letters only)"
	}
	return delays(r.set.Retries(r.Rule, deadletter.ReasonRejected), delaysInRow)
}

// ownRetry reports whether the rule has retries of its own. If it has none, those of the default
// rule apply, but only to rejected letters.
func (r rule) ownRetry() bool { return r.Retry != nil || r.isDefault() }

// These are the maximum numbers of delays that are shown of a rule.
const (
	delaysInRow  = 3
	delaysInLine = 6
)

// delays returns the first n delays before the retries of a rule, each with its jitter, for example
// "9 s to 11 s, 1 h". A single further delay is shown instead of "1 more".
func delays(retry *rules.Retry, n int) string {
	count := retry.Count()
	if count == 0 {
		return "no retry"
	}
	if count == n+1 {
		n = count
	}
	var parts []string
	for i := range min(n, count) {
		low, high := retry.Band(i)
		text := Duration(low)
		if high := Duration(high); high != text {
			text += " to " + high
		}
		parts = append(parts, text)
	}
	if n < count {
		parts = append(parts, Count(count-n)+" more")
	}
	return strings.Join(parts, ", ")
}

// Delays returns one line with the delays before the retries of a rule, and the final outcome: "9 s
// to 11 s, 1 h, then dead: page". The line applies to letters that died for the given reason.
func Delays(set *rules.Set, r *rules.Rule, reason string) string {
	if r.Discard {
		return "discarded at once"
	}
	retry, dead := set.Retries(r, reason), "dead"
	if severity := cmp.Or(r.Severity, set.Default.Severity); severity != "" {
		dead += ": " + string(severity)
	}
	if retry.Count() > 0 {
		dead = "then " + dead
	}
	return delays(retry, delaysInLine) + ", " + dead
}

// total returns a sentence with the sum of the delays, or "" if there are fewer than two.
func (r rule) total() string {
	retry := r.set.Retries(r.Rule, deadletter.ReasonRejected)
	if retry.Count() < 2 {
		return ""
	}
	return " In all, at most " + Duration(retry.Rest(0)) + "."
}

// further returns the further effects of the rule, one sentence each.
func (r rule) further() []string {
	out := waiterWords(cmp.Or(r.Retry, r.set.Default.Retry, &rules.Retry{}))
	if r.InDoubt != "" {
		out = append(out, "If the broker does not answer a requeue: "+r.InDoubt+".")
	}
	if r.Watch > 0 {
		out = append(out, "Watched for "+Duration(r.Watch)+" before it is quiet.")
	}
	switch {
	case r.Rate == nil:
	case *r.Rate == 0:
		out = append(out, "Its retries have no limit of their own by queue and second.")
	default:
		rate := strconv.FormatFloat(*r.Rate, 'g', 6, 64)
		out = append(out, "At most "+rate+" retries per queue and second.")
	}
	if r.MirrorXDeath {
		out = append(out, "Retries carry an x-death for workers that read it.")
	}
	return out
}

// waiterWords describes where the letters of a rule wait for their retry, and the limits of that
// place. It returns nil if they wait in the store, as by default.
func waiterWords(retry *rules.Retry) []string {
	text, ok := waiterPlaces[retry.Waiter]
	if !ok || retry.Count() == 0 {
		return nil
	}
	return []string{text + " dlo cannot edit, pause or discard them there, and they are retried even while dlo is down."}
}

var waiterPlaces = map[rules.Waiter]string{
	rules.WaiterQueue:   "Letters wait in the broker, in a queue for each delay.",
	rules.WaiterTTL:     "Letters wait in the broker, in one queue for all delays: a letter cannot leave before the letters ahead of it, even if they wait longer.",
	rules.WaiterDelayed: "Letters wait in the broker, in an exchange of type x-delayed-message. If the broker has no such exchange, they wait in the store.",
}

// dies returns the severity of letters that a rule leaves dead, or "" if it is not known.
func (r rule) dies() string {
	word, _ := severityMark(cmp.Or(r.Severity, r.set.Default.Severity))
	return strings.ToLower(word)
}

// needsPlaces reports whether a redirect has to name the broker and the vhost of its queue.
func (p RulesPage) needsPlaces() bool { return len(p.Brokers) > 1 }

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
