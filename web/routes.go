package web

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/static"
)

// routes is the map of the house's front door. Every request passes, from outside in: headers, recovery, host, size, cross-origin protection, actor.
func (w *Web) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(w.headers, w.recover, w.hostAllowed, w.sized, w.sameOrigin, middleware.GetHead)

	// Probes and metrics: no actor, no page.
	r.Get("/healthz", w.healthz)
	r.Get("/readyz", w.readyz)
	if w.Metrics != nil {
		r.Method(http.MethodGet, "/metrics", w.Metrics)
	}
	r.Handle(static.Prefix+"*", static.Handler())

	// Pages, for people with a browser, with or without JavaScript.
	r.Group(func(r chi.Router) {
		r.Use(w.actor)
		r.Get("/", w.act(func(*http.Request) (string, error) { return "/letters?q=state%3Adead", nil }))
		r.Get("/jump", w.act(w.jump))
		r.Post("/theme", w.theme)
		r.Get("/letters", w.page(w.letters))
		r.Post("/letters/confirm", w.page(w.confirm))
		r.Get("/letters/{id}", w.page(w.letter))
		r.Get("/letters/{id}/body", w.body)
		r.Get("/operations", w.page(w.operations))
		r.Post("/operations", w.act(w.startOperation))
		r.Get("/operations/{id}", w.page(w.operation))
		r.Post("/operations/{id}/cancel", w.act(w.cancelOperation))
		r.Get("/events", w.events)
	})

	// The API, for scripts and the command line. openapi.yaml describes it; a test holds the two together.
	r.Route("/api/v1", func(r chi.Router) {
		r.Use(w.actor)
		r.Get("/openapi.yaml", openAPI)
		r.Get("/letters", w.api(w.apiLetters))
		r.Get("/letters/count", w.api(w.apiCount))
		r.Get("/letters/facets", w.api(w.apiFacets))
		r.Get("/letters/{id}", w.api(w.apiLetter))
		r.Get("/letters/{id}/body", w.body)
		r.Get("/operations", w.api(w.apiOperations))
		r.Post("/operations", w.api(w.apiStartOperation))
		r.Get("/operations/{id}", w.api(w.apiOperation))
		r.Post("/operations/{id}/cancel", w.api(w.apiCancelOperation))
		r.Get("/events", w.events)
	})

	r.NotFound(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, deadletter.ErrNotFound) })
	r.MethodNotAllowed(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, statusError(http.StatusMethodNotAllowed)) })
	return r
}

// forScripts says whether a request expects problem+json instead of a page.
func forScripts(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
