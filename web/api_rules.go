package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// apiRules handles GET /rules. It returns the rules in use.
func (w *Web) apiRules(r *http.Request) (any, error) {
	if w.Rules == nil {
		return nil, deadletter.ErrNotFound
	}
	set := w.Rules.Set()
	out := api.Rules{
		File:     set.File,
		LoadedAt: api.At(set.Loaded),
		Rules:    []api.Rule{},
		Default:  apiRuleOf(&set.Default, nil),
		YAML:     allYAML(set),
	}
	when := conditions(set)
	for i := range set.Rules {
		out.Rules = append(out.Rules, apiRuleOf(&set.Rules[i], when[i]))
	}
	return out, nil
}

func apiRuleOf(r *rules.Rule, when []view.Clause) api.Rule {
	v := api.Rule{
		Name:         r.Name,
		Discard:      r.Discard,
		Severity:     r.Severity,
		InDoubt:      r.InDoubt,
		Rate:         r.Rate,
		MirrorXDeath: r.MirrorXDeath,
		YAML:         r.YAML,
	}
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

const maxAttempts = 1_000_000 // maximum number of attempts in the facts of a request

func readFacts(in *api.Facts) (rules.Facts, error) {
	f := rules.Facts{
		Broker:   in.Broker,
		VHost:    in.VHost,
		Queue:    in.Queue,
		Exchange: in.Exchange,
		Key:      in.Key,
		Reason:   in.Reason,
		Type:     in.Type,
		Error:    in.Error,
		Attempts: in.Attempts,
		Header:   func(name string) (string, bool) { v, ok := in.Headers[name]; return v, ok },
		Field:    func(path string) ([]string, bool) { v, ok := in.Fields[path]; return v, ok },
	}
	if in.Attempts < 0 || in.Attempts > maxAttempts {
		return f, invalid("attempts is a number from 0 to %d", maxAttempts)
	}
	if in.Age != "" {
		age, err := deadletter.ParseDuration(in.Age)
		if err != nil || age < 0 {
			return f, invalid("age must be a duration, for example 90s or 2h")
		}
		f.Age = age
	}
	return f, nil
}

// apiTestRules handles POST /rules/test. The request is {letter}, {facts} or {q, limit}, each
// optionally with {rules}. For a letter or facts, the response is the rule that matches, and the
// reason. For a query, the response is what each rule would decide about the newest letters of the
// query.
func (w *Web) apiTestRules(r *http.Request, in api.RuleTestRequest) (any, error) {
	if w.Rules == nil {
		return nil, deadletter.ErrNotFound
	}
	if err := askedOnce(&in); err != nil {
		return nil, err
	}
	set, notes := w.Rules.Set(), []string{}
	if in.Rules != nil {
		var err error
		if set, notes, err = w.parseTriedRules(r.Context(), *in.Rules); err != nil {
			return nil, err
		}
	}
	if in.Query != nil {
		return w.apiWhatIf(r, set, notes, &in)
	}
	return w.apiTestOne(r, set, &in)
}

// askedOnce returns an error if a request does not have exactly one of "letter", "facts" and "q".
// If a request has rules and none of these three, askedOnce first adds the query whatIfQuery.
func askedOnce(in *api.RuleTestRequest) error {
	given := 0
	for _, there := range []bool{in.Letter != nil, in.Facts != nil, in.Query != nil} {
		if there {
			given++
		}
	}
	if usual := whatIfQuery; given == 0 && in.Rules != nil {
		in.Query, given = &usual, 1
	}
	if given != 1 {
		return invalid("give exactly one of letter, facts and q")
	}
	if in.Limit != nil && (in.Query == nil || *in.Limit < 1 || *in.Limit > maxLimit) {
		return invalid("limit goes with q, and is a number from 1 to %d", maxLimit)
	}
	return nil
}

// apiTestOne tests rules on a letter or on facts.
func (w *Web) apiTestOne(r *http.Request, set *rules.Set, in *api.RuleTestRequest) (any, error) {
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
	ctx, stop := context.WithTimeout(r.Context(), whatIfTime)
	defer stop()
	f.Stop = func() bool { return ctx.Err() != nil }
	v := rule(set, f)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out.Rule, out.Decision = v.Rule, api.RuleDecision{Action: v.Outcome, Severity: v.Severity, Why: v.Why}
	if v.Outcome == deadletter.RuleRetry {
		out.Decision.Retry, out.Decision.Earliest, out.Decision.Latest = v.number, v.low.String(), v.high.String()
		if in.Letter != nil {
			out.Decision.Delay = v.Delay.String()
		} else { // for facts, the delay is omitted from Why, because it is random for each letter
			out.Decision.Why = "retry " + strconv.Itoa(v.number) + " of " + strconv.Itoa(v.retries)
		}
	}
	out.Steps = apiSteps(v.steps)
	return out, nil
}

// apiSteps returns the conditions of every rule, and whether the letter meets each of them. It
// never returns values of the letter.
func apiSteps(steps []rules.Step) []api.RuleStep {
	clause := func(c rules.Clause) api.Clause {
		return api.Clause{Condition: api.Condition{Field: c.Field, Want: c.Want}, Fits: c.Fits}
	}
	return each(steps, func(s rules.Step) api.RuleStep {
		return api.RuleStep{Rule: s.Rule, Matched: s.Matched, Applies: s.Applies, Clauses: each(s.Clauses, clause)}
	})
}

// letterSteps tests the rules in use on a letter. The caller must pass the letter before its values
// are masked. The result is nil if the rules are unknown, or if they do not apply to the letter.
func (w *Web) letterSteps(ctx context.Context, l *deadletter.Letter) ([]api.RuleStep, error) {
	// rules name queues that this principal may not see
	if w.Rules == nil || l.Tried() || !deadletter.ScopeOf(ctx).Everywhere() {
		return nil, nil
	}
	f, err := w.facts(ctx, l)
	if err != nil {
		return nil, err
	}
	return apiSteps(w.Rules.Set().Explain(f)), nil
}

func (w *Web) apiWhatIf(r *http.Request, set *rules.Set, notes []string, in *api.RuleTestRequest) (any, error) {
	most := view.WhatIfLetters
	if in.Limit != nil {
		most = *in.Limit
	}
	f, err := w.whatIf(r.Context(), principal(r), set, *in.Query, most)
	if err != nil {
		return nil, err
	}
	return api.WhatIf{
		Matching: f.Matching, Exact: f.Exact, Looked: f.Looked, Late: f.Late, LeftOut: f.Left, Notes: notes,
		Rules: each(f.Rules, apiCountOf), Totals: each(f.Totals, apiTotal), Fates: each(f.Fates, apiFate),
	}, nil
}

func apiCountOf(n view.RuleCount) api.RuleCount {
	return api.RuleCount{
		Rule:    n.Rule,
		Delays:  n.Delays,
		Letters: n.Letters,
		Retry:   n.Become[deadletter.RuleRetry],
		Dead:    n.Become[deadletter.RuleDead],
		Discard: n.Become[deadletter.RuleDiscard],
	}
}

func apiTotal(n view.RuleTotal) api.RuleTotal {
	return api.RuleTotal{
		State:   n.State,
		Letters: n.Letters,
		Text:    n.Words(),
		Retry:   n.Become[deadletter.RuleRetry],
		Dead:    n.Become[deadletter.RuleDead],
		Discard: n.Become[deadletter.RuleDiscard],
	}
}

func apiFate(f view.Fate) api.Fate {
	return api.Fate{
		Was: api.WasDecided{State: f.Was.State, Rule: f.Was.Rule, Severity: f.Was.Severity, Delays: f.Was.Delays},
		Would: api.WouldDecide{
			Rule:     f.Would.Rule,
			Action:   f.Would.Outcome,
			Severity: f.Would.Severity,
			Delays:   f.Would.Delays,
		},
		Same: f.Same, Letters: f.Letters, Examples: f.Examples, Query: f.Query,
	}
}
