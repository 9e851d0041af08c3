package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// confirmApply handles POST /rules/apply/confirm. It shows which decisions about waiting letters
// would change if the current rules were applied to them. It changes nothing and has no time limit.
func (w *Web) confirmApply(r *http.Request) (templ.Component, error) {
	q, again, err := w.applyQuery(r)
	if err != nil {
		return again, err
	}
	p, err := w.applyPage(r, operation.ApplyRequest{Query: q, DryRun: true})
	if err != nil {
		return nil, err
	}
	return view.Apply(p), nil
}

// applyWaiting handles POST /rules/apply, which the button on the confirmation page sends. If the
// form has mistakes, it shows the form again.
func (w *Web) applyWaiting(r *http.Request) (templ.Component, error) {
	q, again, err := w.applyQuery(r)
	if err != nil {
		return again, err
	}
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	mistakes, problem := w.applyMistakes(r, reason)
	asked := operation.ApplyRequest{Query: q, Reason: reason}
	if problem != nil {
		asked = operation.ApplyRequest{Query: q, DryRun: true}
	}
	p, err := w.applyPage(r, asked)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		p.Reason, p.Typed, p.Mistakes = reason, r.PostFormValue("count"), mistakes
		p.Problem = "Nothing was changed: " + sentence(problem, statusOf(problem)) + "."
	}
	return view.Apply(p), problem
}

// applyQuery parses the query that selects the letters to which the rules are applied. If the query
// has a mistake, applyQuery returns the Rules page with the mistake in the form.
func (w *Web) applyQuery(r *http.Request) (query.Query, templ.Component, error) {
	if err := r.ParseForm(); err != nil {
		return query.Query{}, nil, formError(err)
	}
	text := strings.TrimSpace(r.PostFormValue("q"))
	q, mistake := query.Parse(text, w.queryOptions())
	if mistake == nil {
		return q, nil, nil
	}
	p, err := w.rulesPage(r)
	if err != nil {
		return q, nil, err
	}
	p.Apply, p.Mistakes["q"] = text, sentence(mistake, statusOf(mistake))
	return q, view.Rules(p), mistake
}

// applyMistakes returns the mistakes in the form by field. If the rules cannot be applied now, the
// reason is also among them. Without mistakes, it returns nil.
func (w *Web) applyMistakes(r *http.Request, reason string) (map[string]string, error) {
	mistakes := map[string]string{}
	if len(reason) > maxReasonText {
		mistakes["reason"] = fmt.Sprintf("A reason has at most %d bytes.", maxReasonText)
	}
	discards, _ := strconv.Atoi(r.PostFormValue("discards"))
	if view.MustType(deadletter.VerbDiscard, discards) && !view.TypedCount(r.PostFormValue("count"), discards) {
		mistakes["count"] = "Type " + view.Count(discards) + " to discard " + view.LetterCount(discards) + "."
	}
	switch {
	case r.PostFormValue("loaded") != view.Stamp(w.Rules.Set().Loaded):
		return mistakes, errRulesChanged
	case len(mistakes) > 0:
		return mistakes, invalid("see the marked field")
	}
	return nil, nil
}

// errRulesChanged is the error if the rules have changed since they were shown.
var errRulesChanged = fmt.Errorf(
	"%w: the rules have been reloaded since; below is what they would change now", deadletter.ErrConflict,
)

// applyPage applies the current rules, or only finds out what they would change. It returns the
// page with the result.
func (w *Web) applyPage(r *http.Request, asked operation.ApplyRequest) (view.ApplyPage, error) {
	p := view.ApplyPage{
		Shell:   w.shell(r, "Apply the rules", view.SectionRules),
		Query:   asked.Query.Fixed().String(),
		Loaded:  w.Rules.Set().Loaded,
		Restore: restorableWords(w.Restore),
	}
	var err error
	p.Applied, err = w.decideAgain(r.Context(), asked)
	return p, err
}

// applyRules decides again, by the rules in use, about letters that wait for their retry. A changed
// configuration decides by itself about letters only that are not decided yet. This applies it to
// those that wait. Due times count from the death that a letter waits for, and are never in the
// past. Letters whose due time a person chose, and those that an operation has released, are left
// alone. It takes as long as it needs; when the caller goes away, it stops, and what was not
// reached is as it was. One call works at a time, the next waits.
func (w *Web) applyRules(ctx context.Context, r *struct{ Body api.ApplyRequest }) (*reply[rules.Applied], error) {
	in := &r.Body
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	return answer(w.decideAgain(ctx, operation.ApplyRequest{Query: q, DryRun: in.DryRun, Reason: in.Reason}))
}

// decideAgain applies the rules in use to letters that wait for a retry, so that they get a new
// decision. It ends when the caller disconnects or dlo stops.
func (w *Web) decideAgain(ctx context.Context, asked operation.ApplyRequest) (rules.Applied, error) {
	// if the writer does not support deadlines, the server's own deadlines apply
	control := ctx.Value(controlKey{}).(*http.ResponseController)
	control.SetReadDeadline(time.Time{})
	control.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.drained:
			cancel()
		case <-ctx.Done():
		}
	}()
	a, err := w.Desk.Apply(ctx, principal(ctx), asked)
	if err == nil {
		control.SetWriteDeadline(time.Now().Add(stalled))
	}
	return a, err
}
