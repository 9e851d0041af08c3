package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type actorKey struct{}

// actor adds two facts to the request's context: the principal, and the way the request arrived. No
// other code determines who makes a request and how.
func (w *Web) actor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p, err := w.Actor(r)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		ctx := deadletter.Through(r.Context(), way(r))
		next.ServeHTTP(rw, r.WithContext(context.WithValue(ctx, actorKey{}, p)))
	})
}

// way returns the way a request arrived. dlo's own command line identifies itself in its requests.
func way(r *http.Request) deadletter.Way {
	switch {
	case !forScripts(r):
		return deadletter.WayPage
	case strings.HasPrefix(r.UserAgent(), "dlo/"):
		return deadletter.WayCLI
	}
	return deadletter.WayAPI
}

// principal returns the principal that makes the request. If actor has not run, it returns the zero
// Principal, which has no rights.
func principal(r *http.Request) deadletter.Principal {
	p, _ := r.Context().Value(actorKey{}).(deadletter.Principal)
	return p
}
