package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// facts returns what rules need to know about a stored letter. The facts are not masked. To read
// the body, facts may have to decode it. It then waits for its turn to decode until ctx ends.
func (w *Web) facts(ctx context.Context, l *deadletter.Letter) (rules.Facts, error) {
	var f rules.Facts
	if w.RuleFacts != nil {
		done, err := w.waitForPlace(ctx)
		if err != nil {
			return f, err
		}
		defer done()
		f = w.RuleFacts(l)
	} else {
		serial, _, _ := l.ID.Split()
		f = rules.Facts{
			Broker:   l.Origin.Broker,
			VHost:    l.Origin.VHost,
			Queue:    l.Origin.Queue,
			Exchange: l.Origin.Exchange,
			Key:      l.Origin.RoutingKey,
			Reason:   l.Reason,
			Type:     l.Type,
			Error:    l.Error,
			Attempts: l.Attempts,
			Reset:    l.Reset,
			Age:      w.Now().Sub(l.ReceivedAt),
			Serial:   serial,
		}
	}
	if f.Header == nil {
		f.Header = noHeader
	}
	if f.Field == nil {
		f.Field = noField
	}
	return f, nil
}

// ruling is the decision of a rule set on given facts.
type ruling struct {
	rules.Decision
	steps     []rules.Step
	number    int           // the number of the retry, which is 1 for the first
	retries   int           // the number of retries that the rule allows
	low, high time.Duration // the shortest and the longest delay of the retry
}

func rule(set *rules.Set, f rules.Facts) ruling {
	v := ruling{Decision: set.Decide(f), steps: set.Explain(f)}
	if v.Outcome == deadletter.RuleRetry {
		used := max(0, f.Attempts-f.Reset)
		decider, _ := set.Named(v.Rule)
		retry := set.Retries(decider, f.Reason)
		v.number, v.retries = used+1, retry.Count()
		v.low, v.high = retry.Band(used)
	}
	return v
}

// testLetter finds the rule that applies to a letter. The parameter "text" is the id of the letter
// as somebody typed it. If the id is wrong, the page shows the mistake beside the field.
func (w *Web) testLetter(r *http.Request, set *rules.Set, t *view.Tester, text string) error {
	t.Letter = strings.TrimSpace(text)
	l, err := w.letterNamed(r, t.Letter)
	if errors.Is(err, deadletter.ErrNotFound) || errors.Is(err, deadletter.ErrInvalid) {
		t.Mistakes["letter"] = "There is no letter with this id."
		return fmt.Errorf("%w: there is no letter with this id", deadletter.ErrNotFound)
	}
	if err != nil {
		return err
	}
	f, err := w.facts(r.Context(), &l)
	if err != nil {
		return err
	}
	v := rule(set, f)
	a := answerOf(f, v)
	a.Letter, a.State, a.Was, a.Delay = l.ID, l.State, l.Rule, v.Delay
	a.Notes = letterNotes(&l)
	t.Answer = &a
	return nil
}

// letterNamed reads a letter by its id, or by the 8 digits that pages show. It returns an error if
// the caller must not see the letter.
func (w *Web) letterNamed(r *http.Request, text string) (deadletter.Letter, error) {
	id, err := deadletter.ParseID(text)
	if err != nil && len(text) == 8 && strings.Trim(strings.ToLower(text), "0123456789abcdef") == "" {
		q, err := query.Parse("id:"+text, w.queryOptions())
		if err != nil {
			return deadletter.Letter{}, err
		}
		rows, _, _, err := w.Store.Letters(r.Context(), q, deadletter.Page{Limit: 2, Order: deadletter.OrderReceived})
		switch {
		case err != nil:
			return deadletter.Letter{}, err
		case len(rows) == 0:
			return deadletter.Letter{}, noSuch("letter", text)
		case len(rows) > 1:
			return deadletter.Letter{}, invalid("several letters have the short id %s: use the whole id", text)
		}
		id = rows[0].ID
	} else if err != nil {
		return deadletter.Letter{}, err
	}
	return w.letterFor(r.Context(), principal(r), id)
}

// letterNotes returns notes for a letter to which the rules do not apply, for example because it is
// held or was imported.
func letterNotes(l *deadletter.Letter) []string {
	var notes []string
	if l.Undecodable() {
		notes = append(notes, "It cannot be decoded, so no rule applies when it arrives: it is dead at once.")
	}
	if l.Imported != "" {
		notes = append(
			notes, "It was imported: it kept the state that it had when it was exported, and no rule decided.",
		)
	}
	if l.State == deadletter.StateHeld {
		notes = append(notes, "It is held: guards and people override the rules.")
	}
	return notes
}

// testFacts finds the rule that applies to the facts that a person entered in a form.
func testFacts(set *rules.Set, t *view.Tester, form url.Values) error {
	t.Facts = view.FactsForm{
		Queue:    form.Get("queue"),
		Reason:   form.Get("reason"),
		Type:     form.Get("type"),
		Error:    form.Get("error"),
		Exchange: form.Get("exchange"),
		Key:      form.Get("key"),
		Attempts: form.Get("attempts"),
		Headers:  form.Get("headers"),
	}
	in := api.Facts{
		Queue:    t.Facts.Queue,
		Reason:   t.Facts.Reason,
		Type:     t.Facts.Type,
		Error:    t.Facts.Error,
		Exchange: t.Facts.Exchange,
		Key:      t.Facts.Key,
		Headers:  map[string]string{},
	}
	if text := strings.TrimSpace(t.Facts.Attempts); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxAttempts {
			t.Mistakes["attempts"] = "Attempts must be a number, 0 or more."
		}
		in.Attempts = n
	}
	for line := range strings.Lines(t.Facts.Headers) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); line != "" && (!ok || name == "") {
			t.Mistakes["headers"] = "A header is written as name: value, each on its own line."
		}
		if name != "" {
			in.Headers[name] = strings.TrimSpace(value)
		}
	}
	if len(t.Mistakes) > 0 {
		return invalid("the form has a mistake")
	}
	f, err := readFacts(&in)
	if err != nil {
		return err
	}
	a := answerOf(f, rule(set, f))
	t.Answer = &a
	return nil
}

// answerOf converts a decision for the page. It omits the random delay, which differs for each
// letter.
func answerOf(f rules.Facts, v ruling) view.RuleAnswer {
	a := view.RuleAnswer{
		Rule:     v.Rule,
		Outcome:  v.Outcome,
		Number:   v.number,
		Low:      v.low,
		High:     v.high,
		Severity: v.Severity,
		Why:      v.Why,
	}
	a.Known = view.Known([][2]string{
		{"queue", f.Queue},
		{"reason", f.Reason},
		{"type", f.Type},
		{"error", f.Error},
		{"exchange", f.Exchange},
		{"key", f.Key},
	}, f.Attempts)
	a.Steps = each(v.steps, func(s rules.Step) view.RuleStep {
		return view.RuleStep{Rule: s.Rule, Matched: s.Matched, Applies: s.Applies, Clauses: clausesOf(s)}
	})
	return a
}
