package web

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// rules handles GET /rules?rule=. It changes nothing.
func (w *Web) rules(r *http.Request) (templ.Component, error) {
	p, err := w.rulesPage(r)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("rule")); err == nil && n >= 1 && n <= len(p.Rules) {
		p.Chosen = n - 1
	}
	return view.Rules(p), nil
}

func (w *Web) rulesPage(r *http.Request) (view.RulesPage, error) {
	p := view.RulesPage{Shell: w.shell(r, "Rules", view.SectionRules), Mistakes: map[string]string{}}
	set := w.Rules.Set()
	p.File, p.Loaded, p.Rules = set.File, set.Loaded, rulesOf(set)
	if p.Try.Text = allYAML(set); len(p.Try.Text) > config.MaxPasted {
		p.Try.Text, p.Try.Unshown = "", len(p.Try.Text)
	}
	for _, b := range w.brokers(r.Context()) {
		p.Places = append(p.Places, view.RulesPlace{Broker: b.Name, VHost: b.VHost})
	}
	var err error
	if p.Guards, err = w.guards(r.Context()); err != nil {
		return p, err
	}
	p.Overrides, err = w.Store.Overrides(r.Context())
	return p, err
}

// rulesOf converts the rules of a set for the page. The default rule comes last.
func rulesOf(set *rules.Set) []view.Rule {
	list := make([]view.Rule, 0, len(set.Rules)+1)
	for i := range set.Rules {
		list = append(list, ruleOf(&set.Rules[i], set))
	}
	rule := ruleOf(&set.Default, set)
	rule.Default = true
	return append(list, rule)
}

func ruleOf(rule *rules.Rule, set *rules.Set) view.Rule {
	v := view.Rule{
		Rule:   *rule,
		When:   rule.Match.Conditions(),
		Delays: delaysOf(set, rule, deadletter.ReasonRejected),
	}
	v.Further = waiterWords(cmp.Or(rule.Retry, set.Default.Retry, &rules.Retry{}))
	if rule.InDoubt != "" {
		v.Further = append(v.Further, "If the broker does not answer a requeue: "+rule.InDoubt+".")
	}
	if rule.Watch > 0 {
		v.Further = append(v.Further, "Watched for "+view.Duration(rule.Watch)+" before it is quiet.")
	}
	if rule.Rate != nil {
		v.Further = append(v.Further, rateWords(*rule.Rate))
	}
	if rule.MirrorXDeath {
		v.Further = append(v.Further, "Retries carry an x-death for workers that read it.")
	}
	return v
}

// waiterWords describes where the letters of a rule wait for their retry, and the limits of that
// place. It returns nil if they wait in the store, as by default.
func waiterWords(retry *rules.Retry) []string {
	const hands = " dlo cannot edit, pause or discard them there, and they are retried even while dlo is down."
	if retry.Count() == 0 {
		return nil
	}
	switch retry.Waiter {
	case rules.WaiterQueue:
		return []string{"Letters wait in the broker, in a queue for each delay." + hands}
	case rules.WaiterTTL:
		return []string{
			"Letters wait in the broker, in one queue for all delays: a letter cannot leave before the letters ahead of it, even if they wait longer." + hands,
		}
	case rules.WaiterDelayed:
		return []string{
			"Letters wait in the broker, in an exchange of type x-delayed-message. If the broker has no such exchange, they wait in the store." + hands,
		}
	}
	return nil
}

func rateWords(rate float64) string {
	if rate == 0 {
		return "Its retries have no limit of their own by queue and second."
	}
	return "At most " + strconv.FormatFloat(rate, 'g', 6, 64) + " retries per queue and second."
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
