package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type actorKey struct{}

// actor adds the principal and the way of access to the request's context. No other code decides
// who makes a request and how.
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

// way returns how a request arrived. dlo's own command line identifies itself.
func way(r *http.Request) deadletter.Way {
	switch {
	case !forScripts(r):
		return deadletter.WayPage
	case strings.HasPrefix(r.UserAgent(), "dlo/"):
		return deadletter.WayCLI
	}
	return deadletter.WayAPI
}

// principal returns who makes the request. Without an actor, it returns the zero Principal, which
// may do nothing.
func principal(r *http.Request) deadletter.Principal {
	p, _ := r.Context().Value(actorKey{}).(deadletter.Principal)
	return p
}
