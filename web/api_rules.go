package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// apiRetry is a back-off; delays and jitter say all of it.
type apiRetry struct {
	Delays []string     `json:"delays"` // before each retry, such as 1m40s
	Jitter float64      `json:"jitter"`
	Waiter rules.Waiter `json:"waiter"`
}

type apiRule struct {
	Name         string              `json:"name"`
	When         []apiCondition      `json:"when"` // all of them; none = every letter
	Retry        *apiRetry           `json:"retry"`
	Discard      bool                `json:"discard"`
	Severity     deadletter.Severity `json:"severity"`
	InDoubt      string              `json:"in_doubt,omitempty"`
	Watch        string              `json:"watch,omitempty"`
	Rate         *float64            `json:"rate,omitempty"`
	MirrorXDeath bool                `json:"mirror_x_death,omitempty"`
	YAML         string              `json:"yaml"`
}

type apiCondition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
}

type apiClause struct {
	apiCondition
	Fits bool `json:"fits"`
}

type apiStep struct {
	Rule    string      `json:"rule"`
	Matched bool        `json:"matched"`
	Applies bool        `json:"applies"`
	Clauses []apiClause `json:"clauses"`
}

type apiDecision struct {
	Action   string              `json:"action"` // retry, dead or discard
	Retry    int                 `json:"retry,omitempty"`
	Delay    string              `json:"delay,omitempty"` // of a letter; facts draw none
	Earliest string              `json:"earliest,omitempty"`
	Latest   string              `json:"latest,omitempty"`
	Severity deadletter.Severity `json:"severity"`
	Why      string              `json:"why"`
}

// errNoRules is the answer of a server that was not given its rules.
var errNoRules = deadletter.ErrNotFound

// apiRules is GET /rules: the rules in use.
func (w *Web) apiRules(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	if w.Rules == nil {
		return nil, errNoRules
	}
	set := w.Rules.Set()
	out := struct {
		File     string    `json:"file"` // "" = none: the defaults
		LoadedAt time.Time `json:"loaded_at,omitzero"`
		Rules    []apiRule `json:"rules"` // in order: the first that matches wins
		Default  apiRule   `json:"default"`
		YAML     string    `json:"yaml"` // of all of them, to be pasted
	}{set.File, utc(set.Loaded), []apiRule{}, apiRuleOf(&set.Default, nil), allYAML(set)}
	when := conditions(set)
	for i := range set.Rules {
		out.Rules = append(out.Rules, apiRuleOf(&set.Rules[i], when[i]))
	}
	return out, nil
}

func apiRuleOf(r *rules.Rule, when []view.Clause) apiRule {
	v := apiRule{Name: r.Name, When: []apiCondition{}, Discard: r.Discard, Severity: r.Severity, InDoubt: r.InDoubt, Rate: r.Rate, MirrorXDeath: r.MirrorXDeath, YAML: r.YAML}
	for _, c := range when {
		v.When = append(v.When, apiCondition{c.Field, c.Want})
	}
	if r.Watch > 0 {
		v.Watch = r.Watch.String()
	}
	if r.Retry != nil {
		v.Retry = &apiRetry{[]string{}, r.Retry.Jitter, r.Retry.Waiter}
		for n := range r.Retry.Count() {
			v.Retry.Delays = append(v.Retry.Delays, r.Retry.Delay(n).String())
		}
	}
	return v
}

const maxAttempts = 1_000_000 // of facts that somebody writes

// factsIn are facts that somebody writes; what is left out is empty.
type factsIn struct {
	Broker   string              `json:"broker"`
	VHost    string              `json:"vhost"`
	Queue    string              `json:"queue"`
	Exchange string              `json:"exchange"`
	Key      string              `json:"key"`
	Reason   string              `json:"reason"`
	Type     string              `json:"type"`
	Error    string              `json:"error"`
	Headers  map[string]string   `json:"headers"`
	Fields   map[string][]string `json:"fields"` // of the body, by path
	Attempts int                 `json:"attempts"`
	Age      string              `json:"age"` // such as 2h
}

func (in factsIn) facts() (rules.Facts, error) {
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

// apiTestRules is POST /rules/test {letter}, {facts} or {q, limit}: which rule applies and why, or what each rule would do with the newest letters of a query.
func (w *Web) apiTestRules(r *http.Request) (any, error) {
	var in struct {
		Letter *string  `json:"letter"`
		Facts  *factsIn `json:"facts"`
		Query  *string  `json:"q"`
		Limit  *int     `json:"limit"`
	}
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	if w.Rules == nil {
		return nil, errNoRules
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
	out := struct {
		Rule     string        `json:"rule"`
		Was      string        `json:"was,omitempty"`    // the rule that decided about the letter last
		Letter   deadletter.ID `json:"letter,omitempty"` // absent for facts
		Decision apiDecision   `json:"decision"`
		Steps    []apiStep     `json:"steps"`
	}{}
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
	} else if f, err = in.Facts.facts(); err != nil {
		return nil, err
	}
	v := rule(set, f)
	out.Rule, out.Decision = v.Rule, apiDecision{Action: "dead", Severity: v.Severity, Why: v.Why}
	switch {
	case v.Discard:
		out.Decision.Action = "discard"
	case v.Retry:
		out.Decision.Action, out.Decision.Retry, out.Decision.Earliest, out.Decision.Latest = "retry", v.number, v.low.String(), v.high.String()
		if in.Letter != nil {
			out.Decision.Delay = v.Delay.String()
		} else { // what Why says of the delay is drawn for one letter
			out.Decision.Why = "retry " + strconv.Itoa(v.number) + " of " + strconv.Itoa(v.retries)
		}
	}
	out.Steps = apiSteps(v.steps)
	return out, nil
}

// apiSteps are what every rule says to a letter: what it wants and whether that fits, never what the letter holds.
func apiSteps(steps []rules.Step) []apiStep {
	out := []apiStep{}
	for _, s := range steps {
		step := apiStep{s.Rule, s.Matched, s.Applies, []apiClause{}}
		for _, c := range s.Clauses {
			step.Clauses = append(step.Clauses, apiClause{apiCondition{c.Field, c.Want}, c.Fits})
		}
		out = append(out, step)
	}
	return out
}

// letterSteps are the rules in use, asked about a letter that nothing is hidden of yet; nil where they are not known.
func (w *Web) letterSteps(ctx context.Context, l *deadletter.Letter) ([]apiStep, error) {
	if w.Rules == nil {
		return nil, nil
	}
	f, err := w.facts(ctx, l)
	if err != nil {
		return nil, err
	}
	return apiSteps(w.Rules.Set().Explain(f)), nil
}

type apiRuleCount struct {
	Rule    string `json:"rule"`
	Letters int    `json:"letters"`
	Retry   int    `json:"retry"`
	Dead    int    `json:"dead"`
	Discard int    `json:"discard"`
}

func (w *Web) apiWhatIf(r *http.Request, set *rules.Set, q string, most int) (any, error) {
	f, err := w.whatIf(r.Context(), principal(r), set, q, most)
	if err != nil {
		return nil, err
	}
	out := struct {
		Matching int            `json:"matching"`
		Exact    bool           `json:"exact"`
		Looked   int            `json:"looked"`   // at the newest so many
		Late     int            `json:"late"`     // not looked at, since the time was up
		LeftOut  int            `json:"left_out"` // gone meanwhile, or of queues of others
		Rules    []apiRuleCount `json:"rules"`
	}{f.Matching, f.Exact, f.Looked, f.Late, f.Left, nil}
	for i, n := range f.Counts {
		name := set.Default.Name
		if i < len(set.Rules) {
			name = set.Rules[i].Name
		}
		out.Rules = append(out.Rules, apiRuleCount{name, n.Letters, n.Retry, n.Dead, n.Discard})
	}
	return out, nil
}
