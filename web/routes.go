package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/static"
)

// routes returns the router with all routes. Every request first passes through handlers in this
// order: headers, compression, recovery, host, cross-origin protection, size, actor, gate. The
// first five of them do not read the store.
func (w *Web) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(w.setHeaders, compress, w.recover, w.hostAllowed, w.sameOrigin, w.limitBody, middleware.GetHead)

	// Anybody may request the health probes. A request for metrics needs a known caller, because
	// metrics contain names of queues.
	r.Get("/healthz", w.healthz)
	r.Get("/readyz", w.readyz)
	if w.Metrics != nil {
		r.With(w.actor, w.gate(everywhere(deadletter.VerbView))).Method(http.MethodGet, "/metrics", w.Metrics)
	}
	r.HandleFunc(static.Prefix+"*", files)

	if w.Users != nil {
		r.Group(w.signInRoutes)
	}

	w.pages(r)
	r.Route(apiPath, func(api chi.Router) { w.mount(api, r) })

	r.NotFound(w.answerKnown(func(r *http.Request) error { return noSuchAddress(r) }))
	r.MethodNotAllowed(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Allow", strings.Join(w.methods(cmp.Or(r.URL.RawPath, r.URL.Path)), ", "))
		w.answerKnown(func(*http.Request) error { return statusError(http.StatusMethodNotAllowed) })(rw, r)
	})
	return r
}

// answerKnown returns a handler that responds to known callers with the error that errorOf returns.
// Unknown callers get the usual response for unknown callers.
func (w *Web) answerKnown(errorOf func(*http.Request) error) http.HandlerFunc {
	return w.actor(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, errorOf(r)) })).ServeHTTP
}

// methods returns the HTTP methods that a path accepts.
func (w *Web) methods(path string) []string {
	var list []string
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete,
	} {
		asked := method
		if method == http.MethodHead {
			asked = http.MethodGet
		}
		if w.router.Match(chi.NewRouteContext(), asked, path) {
			list = append(list, method)
		}
	}
	return list
}

// forScripts reports whether errors for a request are sent as problem+json instead of a page.
func forScripts(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
