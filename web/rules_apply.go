package web

import (
	"context"
	"errors"
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

type applyIn struct{ Body api.ApplyRequest }

// applyRules decides again, by the rules in use, about letters that wait for their retry. A changed
// configuration decides by itself about letters only that are not decided yet. This applies it to
// those that wait. Due times count from the death that a letter waits for, and are never in the
// past. Letters whose due time a person chose, and those that an operation has released, are left
// alone. It takes as long as it needs; when the caller goes away, it stops, and what was not
// reached is as it was. One call works at a time, the next waits.
func (w *Web) applyRules(ctx context.Context, r *applyIn) (*reply[rules.Applied], error) {
	q, err := query.Parse(r.Body.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
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
	a, err := w.Desk.Apply(ctx, principal(ctx), operation.ApplyRequest{
		Query: q, DryRun: r.Body.DryRun, Reason: r.Body.Reason,
	})
	if err == nil {
		control.SetWriteDeadline(time.Now().Add(stalled))
	}
	return answer(a, err)
}

// previewApply reads the form that asks what would change. The page that answers has the query with
// fixed times, so that its button is about the same letters.
func (w *Web) previewApply(r *http.Request, in *applyIn) error {
	q, err := query.Parse(in.Body.Q, w.queryOptions())
	if err != nil {
		return err
	}
	in.Body.Q, in.Body.DryRun = q.Fixed().String(), true
	r.PostForm.Set("q", in.Body.Q)
	return nil
}

// readApply reads the form whose button applies the rules. The rules must be those that the page
// was about, and the number of a large discard must have been typed.
func (w *Web) readApply(r *http.Request, in *applyIn) error {
	if err := w.previewApply(r, in); err != nil {
		return err
	}
	in.Body.DryRun, in.Body.Reason = false, strings.TrimSpace(in.Body.Reason)
	if r.PostForm.Get("loaded") != view.Stamp(w.Rules.Set().Loaded) {
		return errRulesChanged
	}
	n, _ := strconv.Atoi(r.PostForm.Get("discards"))
	if view.MustType(deadletter.VerbDiscard, n) && !view.TypedCount(r.PostForm.Get("count"), n) {
		why := "type " + view.Count(n) + " to discard " + view.LetterCount(n)
		return deadletter.FieldErrors{{Field: "count", Why: why}}
	}
	return nil
}

// errRulesChanged is the error if the rules have changed since they were shown.
var errRulesChanged = fmt.Errorf(
	"%w: the rules have been reloaded since; below is what they would change now", deadletter.ErrConflict,
)

// showApplied returns the page with what the rules have changed, or would change.
func (w *Web) showApplied(r *http.Request, out *reply[rules.Applied]) (templ.Component, error) {
	return view.Apply(w.applyPage(r, out)), nil
}

func (w *Web) applyPage(r *http.Request, out *reply[rules.Applied]) view.ApplyPage {
	return view.ApplyPage{
		Shell:    w.shell(r, "Apply the rules", view.SectionRules),
		Query:    r.PostForm.Get("q"),
		Loaded:   w.Rules.Set().Loaded,
		Restore:  restorableWords(w.Restore),
		Applied:  out.Body,
		Mistakes: map[string]string{},
	}
}

// applyAgain shows a form for applying the rules again. A mistake in the query is shown on the page
// Rules, and any other with what the rules would change now.
func (w *Web) applyAgain(r *http.Request, wrong error) (templ.Component, error) {
	if errors.As(wrong, new(*query.Error)) {
		p, err := w.rulesPage(r)
		p.Apply, p.Mistakes["q"] = r.PostForm.Get("q"), sentence(wrong, statusOf(wrong))
		return view.Rules(p), err
	}
	out, err := w.applyRules(r.Context(), &applyIn{api.ApplyRequest{Q: r.PostForm.Get("q"), DryRun: true}})
	if err != nil {
		return nil, err
	}
	p := w.applyPage(r, out)
	p.Reason, p.Typed = r.PostForm.Get("reason"), r.PostForm.Get("count")
	p.Problem = "Nothing was changed: " + sentence(wrong, statusOf(wrong)) + "."
	if fields, ok := errors.AsType[deadletter.FieldErrors](wrong); ok {
		p.Problem = "Nothing was changed: see the marked field."
		for _, f := range fields {
			p.Mistakes[f.Field] = mistakeText(f)
		}
	}
	return view.Apply(p), nil
}
