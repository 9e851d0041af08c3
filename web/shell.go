package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const themeCookie = "theme"

// shell returns the frame around the content of a page. It omits whatever cannot be read now,
// because the frame of an error page must not fail.
func (w *Web) shell(r *http.Request, title string, section view.Section) view.Shell {
	s := view.Shell{
		Title:   title,
		Section: section,
		Build:   w.Version,
		Path:    r.URL.RequestURI(),
		Actor:   principal(r.Context()).Name,
		As:      principal(r.Context()).As,
		Live:    true,
		Now:     w.Now(),
	}
	if seen, err := w.Store.Position(r.Context()); err == nil {
		s.Seen = strconv.FormatInt(seen, 10)
	}
	s.Bounded = !deadletter.ScopeOf(r.Context()).Everywhere()
	if s.Observing = w.Observing; s.Bounded && s.Observing != "" {
		s.Observing = "some queues"
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.Path = "/schemas" // an upload has a fixed path, because its body must not be read to find the path
		if r.URL.Path != uploadPath {
			s.Path = localPath(r.PostFormValue("return"))
		}
		s.Live = false // the page responds to a form, so it cannot be fetched again
	}
	if c, err := r.Cookie(themeCookie); err == nil {
		s.Theme = view.ParseTheme(c.Value)
	}
	if counts, err := w.Store.GroupCounts(r.Context(), principal(r.Context()).Name); err == nil {
		s.Groups = counts
	}
	if running, err := w.Store.RunningOperations(r.Context()); err == nil {
		s.Running = len(running)
	}
	if queues, err := w.Store.Unmatched(r.Context()); err == nil {
		s.Schemaless = queues
	}
	s.SchemasBad = len(schemaProblems(w.Schemas.Status())) > 0
	s.Brokers = w.brokers(r.Context())
	for _, p := range w.problems(r.Context()) {
		if p.Kind != deadletter.ProblemBrokerAway { // an unavailable broker has its own banner
			s.Problems = append(s.Problems, p)
		}
	}
	return s
}

func (w *Web) glossary(r *http.Request) (templ.Component, error) {
	return view.Glossary(w.shell(r, "Glossary", "")), nil
}

// theme stores the chosen theme in a cookie. With the cookie, the server renders every page in that
// theme, so that no page flashes.
func (w *Web) theme(r *http.Request) (templ.Component, error) {
	chosen := view.ParseTheme(r.PostFormValue("theme"))
	age := 365 * 24 * 60 * 60
	if chosen == view.ThemeSystem {
		age = -1
	}
	return nil, cookieError{movedError{r.PostFormValue("return")}, &http.Cookie{
		Name:     themeCookie,
		Value:    string(chosen),
		MaxAge:   age,
		Secure:   r.TLS != nil,
		SameSite: http.SameSiteStrictMode,
	}}
}
