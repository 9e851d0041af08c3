package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// Desk plans and starts operations. Each of its methods passes the gate, deadletter.Allow.
type Desk interface {
	Plan(ctx context.Context, by deadletter.Principal, action deadletter.Verb, sel query.Selection) (operation.Plan, error)
	// Start begins an operation; the same key by the same principal is the same operation.
	Start(ctx context.Context, by deadletter.Principal, r operation.Request) (deadletter.OperationID, error)
	Cancel(ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error
}

// confirm is POST /letters/confirm: what an action on the chosen letters will do. It changes nothing.
func (w *Web) confirm(r *http.Request) (templ.Component, error) {
	action, ids, err := choice(r)
	if err != nil {
		return nil, err
	}
	p, err := w.confirmPage(r, action, ids)
	if err != nil {
		return nil, err
	}
	p.Key = newKey()
	return view.Confirm(p), nil
}

func (w *Web) confirmPage(r *http.Request, action deadletter.Verb, ids []deadletter.ID) (view.ConfirmPage, error) {
	plan, err := w.Desk.Plan(r.Context(), principal(r), action, query.Selection{IDs: ids})
	if err != nil {
		return view.ConfirmPage{}, err
	}
	p := view.ConfirmPage{
		Shell: w.shell(r, view.VerbWord(action), view.SectionLetters), Action: action, IDs: ids, Eligible: plan.Eligible, Return: localPath(r.PostFormValue("return")), Until: restorable(w.Restore),
	}
	if p.Return == "/" {
		p.Return = "/letters"
	}
	for _, q := range plan.Queues {
		v := view.ConfirmQueue{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue, Letters: q.Letters, Known: q.Facts.Known, Exists: q.Facts.Exists, Consumers: q.Facts.Consumers, Depth: q.Facts.Ready, Warning: q.Warning}
		p.Queues = append(p.Queues, v)
	}
	for _, s := range plan.Skipped {
		p.Skipped = append(p.Skipped, view.ConfirmSkip(s))
	}
	return p, nil
}

func restorable(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return "for " + view.Duration(d)
}

// choice reads an action and the letters that a form chose: id once for each, or ids with spaces between.
func choice(r *http.Request) (deadletter.Verb, []deadletter.ID, error) {
	if err := r.ParseForm(); err != nil {
		return "", nil, formError(err)
	}
	action, err := deadletter.ParseVerb(r.PostFormValue("action"))
	if err != nil {
		return "", nil, err
	}
	ids, err := parseIDs(append(r.PostForm["id"], strings.Fields(r.PostFormValue("ids"))...))
	return action, ids, err
}

// parseIDs reads letter ids, each once, in their order.
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

// startOperation is POST /operations, the button of the confirm page.
func (w *Web) startOperation(r *http.Request) (string, error) {
	action, ids, err := choice(r)
	if err != nil {
		return "", err
	}
	if w.draining() {
		return "", errStopping
	}
	if len(ids) > view.TypedFrom && action == deadletter.VerbDiscard {
		if err := w.countTyped(r, action, ids); err != nil {
			return "", err
		}
	}
	id, err := w.Desk.Start(r.Context(), principal(r), operation.Request{
		Action: action, Selection: query.Selection{IDs: ids}, Reason: strings.TrimSpace(r.PostFormValue("reason")), Through: "page", Key: r.PostFormValue("key"),
	})
	if err != nil {
		return "", err
	}
	return view.OperationURL(id), nil
}

// countTyped refuses a large discard whose count was not typed, and shows the form again.
func (w *Web) countTyped(r *http.Request, action deadletter.Verb, ids []deadletter.ID) error {
	p, err := w.confirmPage(r, action, ids)
	if err != nil {
		return err
	}
	p.Typed = r.PostFormValue("count")
	if !view.MustType(action, p.Eligible) || view.TypedCount(p.Typed, p.Eligible) {
		return nil
	}
	p.Key, p.Reason = r.PostFormValue("key"), r.PostFormValue("reason")
	p.Problem = "Nothing was discarded: type " + view.Count(p.Eligible) + " to discard " + view.LetterCount(p.Eligible) + "."
	return againError{view.Confirm(p), invalid("the count was not typed")}
}

var errStopping = &stoppingError{}

type stoppingError struct{}

func (*stoppingError) Error() string { return "dlo is stopping: nothing new is started" }
func (*stoppingError) Unwrap() error { return deadletter.ErrUnavailable }

// formError is a form that cannot be read: too large, or malformed.
func formError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return invalid("the form cannot be read")
}
