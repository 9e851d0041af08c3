package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// confirm handles POST /letters/confirm. It shows what an action would do to the chosen letters. It
// changes nothing.
func (w *Web) confirm(r *http.Request) (templ.Component, error) {
	c, err := w.choice(r)
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
	if c.request.Action == deadletter.VerbEdit && len(c.request.Patch) == 0 {
		c.mistakes["patch"] = "Write what to change."
		c.request.Patch = []byte("[]") // any patch will do, because planning does not use it
	}
	plan, err := w.Desk.Plan(r.Context(), principal(r.Context()), c.request)
	if err != nil && c.request.To != "" && errors.Is(err, deadletter.ErrInvalid) {
		c.mistakes["to"] = sentence(err, http.StatusBadRequest)
		c.request.To = ""
		plan, err = w.Desk.Plan(r.Context(), principal(r.Context()), c.request)
	}
	if err != nil {
		return view.ConfirmPage{}, err
	}
	sel := c.request.Selection
	revision, err := w.revision(r.Context(), sel.IDs)
	if err != nil {
		return view.ConfirmPage{}, err
	}
	p := view.ConfirmPage{
		Shell:    w.shell(r, view.VerbWord(plan.Action), view.SectionLetters),
		Plan:     plan,
		Takes:    c.request.TakesOver,
		IDs:      sel.IDs,
		Except:   sel.Except,
		Options:  c.options,
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
		if err := w.addSamples(r, &p, sel, c.request.Patch); err != nil {
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

// startForm handles POST /operations, which the button of the confirm page sends. If there are
// mistakes, the form is shown again with them.
func (w *Web) startForm(r *http.Request) (string, error) {
	c, err := w.choice(r)
	if err != nil {
		return "", err
	}
	if len(c.mistakes) == 0 && (view.MustType(c.request.Action, 1) ||
		view.MustType(c.request.Action, view.TypedFrom+1)) {
		plan, err := w.Desk.Plan(r.Context(), principal(r.Context()), c.request)
		if err != nil {
			return "", err
		}
		n := view.TakenOf(plan.Eligible, plan.First)
		if view.MustType(c.request.Action, n) && !view.TypedCount(c.options.Typed, n) {
			c.mistakes["count"] = "Type " + view.Count(n) + " to " + string(c.request.Action) + " " +
				view.LetterCount(n) + "."
		}
	}
	if len(c.mistakes) > 0 {
		return "", w.showFormAgain(r, c, nil)
	}
	id, err := w.Desk.Start(r.Context(), principal(r.Context()), c.request)
	if errors.Is(err, deadletter.ErrInvalid) || errors.Is(err, deadletter.ErrConflict) {
		return "", w.showFormAgain(r, c, err)
	}
	return view.OperationFrom(id, backTo(r, "")), err
}

// showFormAgain shows the form of a plan again, with its mistakes. For this, it returns an error
// that contains the page.
func (w *Web) showFormAgain(r *http.Request, c choice, refused error) error {
	p, err := w.confirmPage(r, c)
	if err != nil {
		if refused != nil {
			return refused
		}
		return err
	}
	p.Problem = "Nothing was " + c.request.Action.Past() + ": see the marked field."
	if refused != nil && len(p.Mistakes) == 0 {
		p.Problem = "Nothing was " + c.request.Action.Past() + ": " + sentence(refused, statusOf(refused)) + "."
	}
	if p.Key == "" || errors.Is(refused, deadletter.ErrConflict) {
		p.Key = newKey() // more letters match than were shown, or the key belongs to another operation
	}
	if refused == nil {
		refused = invalid("the form has a mistake")
	}
	return againError{view.Confirm(p), refused}
}

var errStopping = fmt.Errorf("%w: dlo is stopping: nothing new is started", deadletter.ErrUnavailable)

// formError returns the error for a form that is too large or malformed.
func formError(err error) error { return invalidUnlessTooLarge(err, "the form cannot be read") }

// parseIDs parses the ids of letters. It keeps their order and removes duplicates.
func parseIDs(texts []string) ([]deadletter.ID, error) {
	seen := make(map[deadletter.ID]bool, len(texts))
	ids := make([]deadletter.ID, 0, len(texts))
	for _, text := range texts {
		id, err := deadletter.ParseID(text)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, invalid("no letter is selected")
	}
	return ids, nil
}

// selection parses which letters a form selects. Usually, these are the ticked letters. With
// scope=all, these are all letters that match q and were there at the time in the field "until".
// The letters in the field "except" are left out.
func (w *Web) selection(r *http.Request) (query.Selection, error) {
	if r.PostFormValue("scope") != "all" {
		ids, err := parseIDs(append(r.PostForm["id"], strings.Fields(r.PostFormValue("ids"))...))
		return query.Selection{IDs: ids}, err
	}
	q, err := query.Parse(r.PostFormValue("q"), w.queryOptions())
	if err != nil {
		return query.Selection{}, err
	}
	sel := query.Selection{Query: &q, Until: moment(r.PostFormValue("until"))}
	if sel.Until.IsZero() {
		return sel, invalid("the form does not say when its letters were selected: open the list again")
	}
	if except := strings.Fields(strings.Join(r.PostForm["except"], " ")); len(except) > 0 {
		sel.Except, err = parseIDs(except)
	}
	return sel, err
}
