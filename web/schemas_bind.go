package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// bindAgain shows the form for a binding again, with its mistake.
func (w *Web) bindAgain(r *http.Request, err error) (templ.Component, error) {
	p, broken := w.schemasView(r, "")
	form := r.PostForm
	p.Bind = view.BindForm{
		Queue:   strings.TrimSpace(form.Get("queue")),
		Key:     form.Get("key"),
		Path:    form.Get("path"),
		Type:    form.Get("type"),
		Reason:  form.Get("reason"),
		Problem: sentence(err, statusOf(err)),
	}
	return view.Schemas(p), broken
}

// afterBinding returns the page that says what the new binding does.
func afterBinding(_ *http.Request, p *created[api.Pick]) string {
	return "/schemas?bound=" + strconv.FormatInt(p.Body.ID, 10)
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
