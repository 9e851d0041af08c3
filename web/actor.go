package web

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

type (
	actorKey struct{}
	hostKey  struct{} // the name under which the client reaches dlo

	// the *http.ResponseController of a request, for calls without a time limit
	controlKey struct{}
)

// actor adds four facts to the context of a request: the principal, the places where the principal
// may see letters, the address of the client, and whether the request came from a page, the API or
// the command line. No other code finds out who makes a request and how.
func (w *Web) actor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r = w.withClient(r)
		p, err := w.Actor(r)
		if err != nil {
			if many := w.tooManyFrom(rw, r); many != nil {
				err = many
			}
			w.deniedUnknown(r, p.Name, err)
			w.refuseUnknown(rw, r, err)
			return
		}
		if err := w.tooMany(rw, "principal "+p.Name, w.Requests); err != nil {
			w.refuseUnknown(rw, r, err)
			return
		}
		if caller, ok := r.Context().Value(callerKey{}).(*string); ok {
			*caller = p.Name
		}
		p = w.viewedAs(r, p)
		// every page shows numbers in its shell, so even an error page would disclose them
		if !p.May(deadletter.VerbView) {
			w.refuseUnknown(rw, r, deadletter.Denied(p, deadletter.VerbView))
			return
		}
		ctx := context.WithValue(deadletter.Within(r.Context(), p.Sees()), actorKey{}, p)
		ctx = context.WithValue(ctx, controlKey{}, http.NewResponseController(rw))
		next.ServeHTTP(rw, r.WithContext(ctx))
	})
}

// withClient adds to the context of a request the address of the client, and whether the request
// came from a page, the API or the command line.
func (w *Web) withClient(r *http.Request) *http.Request {
	ctx := context.WithValue(r.Context(), hostKey{}, r.Host)
	return r.WithContext(deadletter.FromAddress(deadletter.Through(ctx, way(r)), w.Address(r)))
}

// gate returns a handler that passes a request on if the principal may make it, and, for a request
// that changes something, unless dlo is stopping. Drain waits for such requests, but for those that
// may change the configuration: a reload is one of them, and waits for Drain.
func (w *Web) gate(n need) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			p := principal(r.Context())
			err := deadletter.Reach(p, n.verb)
			switch {
			case err != nil:
			case !n.scoped && !p.MayEverywhere(n.verb):
				err = fmt.Errorf(
					"%w: this concerns all queues, but the grants of %s are only for some queues", deadletter.ErrDenied,
					deadletter.Visible(p.Name),
				)
			case r.Method == http.MethodGet || r.Method == http.MethodHead:
			case w.Draining() || n.verb != deadletter.VerbSettings && !w.writes.TryAcquire(1):
				err = errStopping
			case n.verb != deadletter.VerbSettings:
				defer w.writes.Release(1)
			}
			if err != nil {
				w.fail(rw, r, err)
				return
			}
			next.ServeHTTP(rw, r)
		})
	}
}

// refuseUnknown responds to a request whose sender has not signed in, or has no grant. The response
// must tell the sender nothing about the letters, so it has no navigation and no counts.
func (w *Web) refuseUnknown(rw http.ResponseWriter, r *http.Request, err error) {
	code := statusOf(err)
	if code != http.StatusUnauthorized && code != http.StatusForbidden && code != http.StatusTooManyRequests {
		w.Log.Error(
			"the person or token that made a request cannot be determined", "path", deadletter.Visible(r.URL.Path),
			"err", err,
		)
	}
	if code == http.StatusUnauthorized {
		rw.Header().Set("WWW-Authenticate", `Bearer realm="dlo"`)
	}
	if forScripts(r) {
		writeProblem(rw, code, err, "")
		return
	}
	if code == http.StatusUnauthorized && w.Users != nil && r.Method == http.MethodGet &&
		strings.Contains(r.Header.Get("Accept"), "text/html") {
		redirect(rw, "/signin?next="+url.QueryEscape(localPath(r.URL.RequestURI())))
		return
	}
	http.Error(rw, cmp.Or(sentence(err, code), view.ErrorText(code)), code)
}

// peer returns the address from which a request came, without the port.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// way says whether a request came from a page, the API or the command line. The command line of dlo
// identifies itself in the header User-Agent.
func way(r *http.Request) deadletter.Way {
	switch {
	case !forScripts(r):
		return deadletter.WayPage
	case strings.HasPrefix(r.UserAgent(), "dlo/"):
		return deadletter.WayCLI
	}
	return deadletter.WayAPI
}

// principal returns the principal who makes a request. If the handler "actor" has not run, it
// returns the zero Principal, which has no rights.
func principal(ctx context.Context) deadletter.Principal {
	p, _ := ctx.Value(actorKey{}).(deadletter.Principal)
	return p
}
