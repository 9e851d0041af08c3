package web

import (
	"context"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type actorKey struct{}

// actor puts the principal on the request: who asks is decided here and nowhere else.
func (w *Web) actor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p, err := w.Actor(r)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		next.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), actorKey{}, p)))
	})
}

// principal is who asks; the zero Principal, which may do nothing, where no actor was put.
func principal(r *http.Request) deadletter.Principal {
	p, _ := r.Context().Value(actorKey{}).(deadletter.Principal)
	return p
}
