package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// listRules returns the rules in use, in order; the first that matches a letter wins. The
// configuration file is the only source of rules.
func (w *Web) listRules(context.Context, *struct{}) (*reply[api.Rules], error) {
	set := w.Rules.Set()
	out := api.Rules{
		File:     set.File,
		LoadedAt: set.Loaded,
		Rules:    []api.Rule{},
		Default:  apiRuleOf(&set.Default, nil),
		YAML:     allYAML(set),
	}
	when := conditions(set)
	for i := range set.Rules {
		out.Rules = append(out.Rules, apiRuleOf(&set.Rules[i], when[i]))
	}
	return &reply[api.Rules]{out}, nil
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

// testRules returns what rules would have made of stored letters. Says what the rules would have
// made of the newest letters of a query when these last died, beside what became of them, read
// within 2 seconds. Without rules it is said of those in use. Nothing is changed, and nothing is
// kept. What is wrong in rules is answered with 400, and each mistake with its line and column.
func (w *Web) testRules(ctx context.Context, r *struct{ Body api.RuleTestRequest }) (*reply[api.WhatIf], error) {
	in := &r.Body
	most := view.WhatIfLetters
	if in.Limit != nil {
		if most = *in.Limit; most < 1 || most > maxLimit {
			return nil, invalid("limit is a number from 1 to %d", maxLimit)
		}
	}
	set, notes, err := w.triedRules(ctx, in.Rules)
	if err != nil {
		return nil, err
	}
	f, err := w.whatIf(ctx, principal(ctx), set, in.Query, most)
	return answer(api.WhatIf{
		Matching: f.Matching,
		Exact:    f.Exact,
		Looked:   f.Looked,
		Late:     f.Late,
		LeftOut:  f.Left,
		Notes:    notes,
		Fates:    each(f.Fates, apiFate),
	}, err)
}

// apiStep converts the conditions of a rule, and whether the letter meets each of them.
func apiStep(s rules.Step) api.RuleStep {
	return api.RuleStep{
		Rule:    s.Rule,
		Matched: s.Matched,
		Applies: s.Applies,
		Clauses: each(s.Clauses, func(c rules.Clause) api.Clause {
			return api.Clause{Condition: api.Condition{Field: c.Field, Want: c.Want}, Fits: c.Fits}
		}),
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
