package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// confirm handles POST /letters/confirm. It shows what an action would do to the chosen letters. It
// changes nothing.
func (w *Web) confirm(r *http.Request) (templ.Component, error) {
	c, err := choiceIn(r)
	if err != nil {
		return nil, err
	}
	p, err := w.confirmPage(r, c)
	if err != nil {
		return nil, err
	}
	p.Key = newKey()
	return view.Confirm(p), nil
}

// confirmPage returns the page with the plan of an action. If the letters cannot be sent to the
// chosen other queue, the page shows a mistake at the field for this queue. The plan then assumes
// that the letters are sent to their own queues.
func (w *Web) confirmPage(r *http.Request, c choice) (view.ConfirmPage, error) {
	request, err := w.request(&c.call.Body, c.call.Key)
	if err != nil {
		return view.ConfirmPage{}, err
	}
	if c.mistakes["patch"] != "" {
		request.Patch = []byte("[]") // any patch will do, because planning does not use it
	}
	plan, err := w.Desk.Plan(r.Context(), principal(r.Context()), request)
	if err != nil && request.To != "" && errors.Is(err, deadletter.ErrInvalid) {
		c.mistakes["to"] = sentence(err, http.StatusBadRequest)
		request.To = ""
		plan, err = w.Desk.Plan(r.Context(), principal(r.Context()), request)
	}
	if err != nil {
		return view.ConfirmPage{}, err
	}
	sel := request.Selection
	revision, err := w.revision(r.Context(), sel.IDs)
	if err != nil {
		return view.ConfirmPage{}, err
	}
	p := view.ConfirmPage{
		Shell:    w.shell(r, view.VerbWord(plan.Action), view.SectionLetters),
		Plan:     plan,
		Takes:    request.TakesOver,
		IDs:      sel.IDs,
		Except:   sel.Except,
		Typed:    c.form,
		Mistakes: c.mistakes,
		Key:      r.PostFormValue("key"),
		Return:   backTo(r, "/letters"),
		Restore:  restorableWords(w.Restore),
		Revision: revision,
	}
	if sel.Query != nil {
		p.Query = sel.Query.Fixed().String()
		if p.Groups, err = w.groupNames(r.Context(), sel.Query.Values(query.Group)); err != nil {
			return p, err
		}
	}
	if plan.Action == deadletter.VerbEdit && c.mistakes["patch"] == "" {
		if err := w.addSamples(r, &p, sel, request.Patch); err != nil {
			return p, err
		}
	}
	return p, nil
}

// revision returns the number of the revision that would be sent if the only letter in "ids" were
// requeued. It returns 0 if that letter has no revision, or if there are several letters.
func (w *Web) revision(ctx context.Context, ids []deadletter.ID) (int, error) {
	if len(ids) != 1 {
		return 0, nil
	}
	l, err := w.Store.Letter(ctx, ids[0])
	if errors.Is(err, deadletter.ErrNotFound) {
		return 0, nil
	}
	return l.Revision, err
}

func restorableWords(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return "for " + view.Duration(d)
}

var errStopping = fmt.Errorf("%w: dlo is stopping, or loads another configuration: nothing new is started; try again", deadletter.ErrUnavailable)

// formError returns the error for a form that is too large or malformed.
func formError(err error) error { return invalidUnlessTooLarge(err, "the form cannot be read") }

// idsOf parses ids. It keeps their order and removes duplicates.
func idsOf[ID comparable](texts []string, parse func(string) (ID, error)) ([]ID, error) {
	seen := make(map[ID]bool, len(texts))
	var ids []ID
	for _, text := range texts {
		id, err := parse(text)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}
