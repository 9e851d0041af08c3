package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// apiRules is GET /rules: the rules in use.
func (w *Web) apiRules(r *http.Request) (any, error) {
	if w.Rules == nil {
		return nil, deadletter.ErrNotFound
	}
	set := w.Rules.Set()
	out := api.Rules{File: set.File, LoadedAt: utc(set.Loaded), Rules: []api.Rule{}, Default: apiRuleOf(&set.Default, nil), YAML: allYAML(set)}
	when := conditions(set)
	for i := range set.Rules {
		out.Rules = append(out.Rules, apiRuleOf(&set.Rules[i], when[i]))
	}
	return out, nil
}

func apiRuleOf(r *rules.Rule, when []view.Clause) api.Rule {
	v := api.Rule{Name: r.Name, Discard: r.Discard, Severity: r.Severity, InDoubt: r.InDoubt, Rate: r.Rate, MirrorXDeath: r.MirrorXDeath, YAML: r.YAML}
	v.When = each(when, func(c view.Clause) api.Condition { return api.Condition{Field: c.Field, Want: c.Want} })
	if r.Watch > 0 {
		v.Watch = r.Watch.String()
	}
	if r.Retry != nil {
		v.Retry = &api.Retry{Delays: []string{}, Jitter: r.Retry.Jitter, Waiter: string(r.Retry.Waiter)}
		for n := range r.Retry.Count() {
			v.Retry.Delays = append(v.Retry.Delays, r.Retry.Delay(n).String())
		}
	}
	return v
}

const maxAttempts = 1_000_000 // of facts that somebody writes

func readFacts(in *api.Facts) (rules.Facts, error) {
	f := rules.Facts{
		Broker: in.Broker, VHost: in.VHost, Queue: in.Queue, Exchange: in.Exchange, Key: in.Key, Reason: in.Reason, Type: in.Type, Error: in.Error, Attempts: in.Attempts,
		Header: func(name string) (string, bool) { v, ok := in.Headers[name]; return v, ok },
		Field:  func(path string) ([]string, bool) { v, ok := in.Fields[path]; return v, ok },
	}
	if in.Attempts < 0 || in.Attempts > maxAttempts {
		return f, invalid("attempts is a number from 0 to %d", maxAttempts)
	}
	if in.Age != "" {
		age, err := time.ParseDuration(in.Age)
		if err != nil || age < 0 {
			return f, invalid("age is a time such as 90s or 2h")
		}
		f.Age = age
	}
	return f, nil
}

// apiTestRules is POST /rules/test {letter}, {facts} or {q, limit}: which rule applies and why, or
// what each rule would do with the newest letters of a query.
func (w *Web) apiTestRules(r *http.Request, in api.RuleTestRequest) (any, error) {
	if w.Rules == nil {
		return nil, deadletter.ErrNotFound
	}
	given := 0
	for _, there := range []bool{in.Letter != nil, in.Facts != nil, in.Query != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("say one of letter, facts and q")
	}
	if in.Limit != nil && (in.Query == nil || *in.Limit < 1 || *in.Limit > maxLimit) {
		return nil, invalid("limit goes with q, and is a number from 1 to %d", maxLimit)
	}
	set := w.Rules.Set()
	if in.Query != nil {
		most := view.WhatIfLetters
		if in.Limit != nil {
			most = *in.Limit
		}
		return w.apiWhatIf(r, set, *in.Query, most)
	}
	out := api.RuleTest{}
	var f rules.Facts
	var err error
	if in.Letter != nil {
		l, err := w.letterNamed(r, *in.Letter)
		if err != nil {
			return nil, err
		}
		if f, err = w.facts(r.Context(), &l); err != nil {
			return nil, err
		}
		out.Letter, out.Was = l.ID, l.Rule
	} else if f, err = readFacts(in.Facts); err != nil {
		return nil, err
	}
	v := rule(set, f)
	out.Rule, out.Decision = v.Rule, api.RuleDecision{Action: v.Outcome, Severity: v.Severity, Why: v.Why}
	if v.Outcome == deadletter.RuleRetry {
		out.Decision.Retry, out.Decision.Earliest, out.Decision.Latest = v.number, v.low.String(), v.high.String()
		if in.Letter != nil {
			out.Decision.Delay = v.Delay.String()
		} else { // what Why says of the delay is drawn for one letter
			out.Decision.Why = "retry " + strconv.Itoa(v.number) + " of " + strconv.Itoa(v.retries)
		}
	}
	out.Steps = apiSteps(v.steps)
	return out, nil
}

// apiSteps are what every rule says to a letter: what it wants and whether that fits, never what
// the letter holds.
func apiSteps(steps []rules.Step) []api.RuleStep {
	clause := func(c rules.Clause) api.Clause {
		return api.Clause{Condition: api.Condition{Field: c.Field, Want: c.Want}, Fits: c.Fits}
	}
	return each(steps, func(s rules.Step) api.RuleStep {
		return api.RuleStep{Rule: s.Rule, Matched: s.Matched, Applies: s.Applies, Clauses: each(s.Clauses, clause)}
	})
}

// letterSteps are the rules in use, asked about a letter that nothing is hidden of yet; nil where
// they are not known.
func (w *Web) letterSteps(ctx context.Context, l *deadletter.Letter) ([]api.RuleStep, error) {
	if w.Rules == nil {
		return nil, nil
	}
	f, err := w.facts(ctx, l)
	if err != nil {
		return nil, err
	}
	return apiSteps(w.Rules.Set().Explain(f)), nil
}

func (w *Web) apiWhatIf(r *http.Request, set *rules.Set, q string, most int) (any, error) {
	f, err := w.whatIf(r.Context(), principal(r), set, q, most)
	if err != nil {
		return nil, err
	}
	out := api.WhatIf{Matching: f.Matching, Exact: f.Exact, Looked: f.Looked, Late: f.Late, LeftOut: f.Left, Rules: nil}
	for i, n := range f.Counts {
		name := set.Default.Name
		if i < len(set.Rules) {
			name = set.Rules[i].Name
		}
		out.Rules = append(out.Rules, apiCount(name, n))
	}
	return out, nil
}

func apiCount(rule string, n view.RuleCount) api.RuleCount {
	return api.RuleCount{Rule: rule, Letters: n.Letters, Retry: n.Become[deadletter.RuleRetry], Dead: n.Become[deadletter.RuleDead], Discard: n.Become[deadletter.RuleDiscard]}
}
