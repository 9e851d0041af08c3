package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type actorKey struct{}

// actor puts the principal and the way on the request: who asks, and how, is decided here and
// nowhere else.
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

// way says how a request came: dlo's own command line names itself.
func way(r *http.Request) deadletter.Way {
	switch {
	case !forScripts(r):
		return deadletter.WayPage
	case strings.HasPrefix(r.UserAgent(), "dlo/"):
		return deadletter.WayCLI
	}
	return deadletter.WayAPI
}

// principal is who asks; the zero Principal, which may do nothing, where no actor was put.
func principal(r *http.Request) deadletter.Principal {
	p, _ := r.Context().Value(actorKey{}).(deadletter.Principal)
	return p
}
