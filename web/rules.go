package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// rules handles GET /rules?rule=. It changes nothing.
func (w *Web) rules(r *http.Request) (templ.Component, error) {
	p, err := w.rulesPage(r)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("rule")); err == nil && n >= 1 && n <= len(p.Set.Rules)+1 {
		p.Chosen = n - 1
	}
	return view.Rules(p), nil
}

func (w *Web) rulesPage(r *http.Request) (view.RulesPage, error) {
	p := view.RulesPage{Shell: w.shell(r, "Rules", view.SectionRules), Mistakes: map[string]string{}}
	p.Set = w.Rules.Set()
	if p.Try.Text = allYAML(p.Set); len(p.Try.Text) > config.MaxPasted {
		p.Try.Text, p.Try.Unshown = "", len(p.Try.Text)
	}
	var err error
	if p.Guards, err = w.guards(r.Context()); err != nil {
		return p, err
	}
	p.Overrides, err = w.Store.Overrides(r.Context())
	return p, err
}

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

type testIn struct{ Body api.RuleTestRequest }

// testRules returns what rules would have made of stored letters. Says what the rules would have
// made of the newest letters of a query when these last died, beside what became of them, read
// within 2 seconds. Without rules it is said of those in use. Nothing is changed, and nothing is
// kept. What is wrong in rules is answered with 400, and each mistake with its line and column.
func (w *Web) testRules(ctx context.Context, r *testIn) (*reply[rules.WhatIf], error) {
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

// readTest reads the form of the page Rules. Without a text, the rules in use are tested.
func readTest(_ *http.Request, in *testIn) error {
	if text := in.Body.Rules; text != nil && strings.TrimSpace(*text) == "" {
		in.Body.Rules = nil
	}
	in.Body.Query = strings.TrimSpace(in.Body.Query)
	return nil
}

// testedPage returns the page Rules with the form as it was sent.
func (w *Web) testedPage(r *http.Request) (view.RulesPage, error) {
	p, err := w.rulesPage(r)
	p.Try.Query = strings.TrimSpace(r.PostForm.Get("q"))
	if text := r.PostForm.Get("rules"); strings.TrimSpace(text) != "" {
		p.Try.Text, p.Try.Unshown = text, 0
	}
	return p, err
}

// showTested returns the page with what would have become of letters.
func (w *Web) showTested(r *http.Request, out *reply[rules.WhatIf]) (templ.Component, error) {
	p, err := w.testedPage(r)
	p.WhatIf = &out.Body
	return view.Rules(p), err
}

// testAgain shows the form again: mistakes in rules beside their text, and any other beside the
// query.
func (w *Web) testAgain(r *http.Request, wrong error) (templ.Component, error) {
	p, err := w.testedPage(r)
	if in, ok := errors.AsType[*config.Error](wrong); ok {
		p.Try.Mistakes = in.Mistakes
	} else {
		p.Mistakes["try-q"] = sentence(wrong, statusOf(wrong))
	}
	return view.Rules(p), err
}
