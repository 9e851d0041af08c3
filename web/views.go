package web

import (
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// addViewForm handles POST /views. The form contains the query "q" and a name. If the name is
// empty, the view is named after its query.
func (w *Web) addViewForm(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	text, name := strings.TrimSpace(r.PostFormValue("q")), strings.TrimSpace(r.PostFormValue("name"))
	if _, err := query.Parse(text, w.lookOptions()); err != nil {
		return "", err
	}
	if name == "" {
		if name = deadletter.Cut(text, maxViewName); name == "" {
			name = "All letters"
		}
	}
	if len(name) > maxViewName {
		return "", invalid("the name of a view has at most %d bytes", maxViewName)
	}
	owner, err := viewOwner(r.Context(), r.PostFormValue("for") == "me")
	if err != nil {
		return "", err
	}
	_, err = w.Store.AddView(r.Context(), deadletter.View{Name: name, Query: text, Owner: owner, By: principal(r.Context()).Name})
	return view.LettersURL(text, "", ""), err
}

// removeViewForm handles POST /views/{id}/remove.
func (w *Web) removeViewForm(r *http.Request) (string, error) {
	id, err := numberIn(r).number("view")
	if err != nil {
		return "", err
	}
	return backTo(r, "/letters"), w.unsave(r.Context(), id)
}

// backTo returns the local path in the form field "return". If the field is empty, it returns the
// given fallback.
func backTo(r *http.Request, fallback string) string {
	if to := localPath(r.PostFormValue("return")); to != "/" {
		return to
	}
	return fallback
}
