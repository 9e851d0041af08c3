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
		Rules:    each(set.Rules, api.NewRule),
		Default:  api.NewRule(set.Default),
		YAML:     allYAML(set),
	}
	return &reply[api.Rules]{out}, nil
}

// testRules returns what rules would have made of stored letters. Says what the rules would have
// made of the newest letters of a query when these last died, beside what became of them, read
// within 2 seconds. Without rules it is said of those in use. Nothing is changed, and nothing is
// kept. What is wrong in rules is answered with 400, and each mistake with its line and column.
func (w *Web) testRules(ctx context.Context, r *struct{ Body api.RuleTestRequest }) (*reply[rules.WhatIf], error) {
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
	f.Notes = notes
	return answer(f, err)
}
