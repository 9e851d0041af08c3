package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// addBindingForm handles POST /schemas/bindings. If the form has mistakes, it shows them in the
// form.
func (w *Web) addBindingForm(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	field := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	f := view.BindForm{Queue: field("queue"), Key: field("key"), Type: field("type"), Reason: field("reason")}
	picked, err := w.pick(r.Context(), Matching{}, nil, deadletter.Pick{Queue: f.Queue, Key: f.Key, Type: f.Type, Reason: f.Reason})
	if errors.Is(err, deadletter.ErrInvalid) {
		p, broken := w.schemasView(r, "")
		if broken != nil {
			return "", err
		}
		f.Problem = sentence(err, statusOf(err))
		p.Bind = f
		return "", againError{view.Schemas(p), err}
	}
	return "/schemas?bound=" + strconv.FormatInt(picked.ID, 10), err
}

// boundWords describes the effect of the binding with the given id. It returns "" if no such
// binding exists.
func boundWords(picks []deadletter.Pick, id string) string {
	for _, p := range picks {
		if strconv.FormatInt(p.ID, 10) == id {
			return view.BoundWords(p)
		}
	}
	return ""
}

// removePick handles POST /schemas/picks/{id}/remove.
func (w *Web) removePick(r *http.Request) (string, error) {
	id, err := numberIn(r).number("pick")
	if err != nil {
		return "", err
	}
	return backTo(r, "/schemas"), w.unpick(r.Context(), Matching{}, id)
}
