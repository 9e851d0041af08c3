package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	deniedEvery = time.Minute // minimum time between two audit entries about the same principal and route
	maxDenied   = 1000        // maximum number of pairs of principal and route that are remembered
)

// denials remembers which denied requests the audit already has. A script that tries again and
// again therefore does not fill the audit.
type denials struct {
	mu   sync.Mutex
	last map[string]time.Time // time of the newest entry by principal and route
}

// shouldRecord reports whether the audit should get an entry about a denied request now.
func (d *denials) shouldRecord(key string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.last[key]).Abs() < deniedEvery {
		return false
	}
	if d.last == nil || len(d.last) >= maxDenied {
		d.last = map[string]time.Time{}
	}
	d.last[key] = now
	return true
}

// auditDenied records in the audit a request that dlo has denied to a known principal.
func (w *Web) auditDenied(r *http.Request, err error) {
	p, route := principal(r.Context()), r.Method+" "+cmp.Or(chi.RouteContext(r.Context()).RoutePattern(), r.URL.Path)
	if p.Name == "" || !w.denials.shouldRecord(p.Name+" "+route, w.Now()) {
		return
	}
	w.recordDenied(r.Context(), p.Name, err, deadletter.Target{Kind: deadletter.TargetRoute, Name: route})
}

// deniedUnknown records in the audit that dlo has denied a request without a known principal.
// Either dlo does not accept the token or the name in the request, or the person has no grant. The
// entry contains the address of the client, but no part of the request, because anybody can send
// such requests. A request that contains neither a token nor a name is not recorded.
func (w *Web) deniedUnknown(r *http.Request, name string, err error) {
	if name == "" && !errors.Is(err, deadletter.ErrCredentials) ||
		name != "" && !errors.Is(err, deadletter.ErrForbidden) {
		return
	}
	name = cmp.Or(name, deadletter.Unknown)
	if !w.denials.shouldRecord(name+" from "+deadletter.Network(deadletter.AddressOf(r.Context())), w.Now()) {
		return
	}
	w.recordDenied(r.Context(), name, err)
}

func (w *Web) recordDenied(ctx context.Context, name string, err error, targets ...deadletter.Target) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	act := deadletter.Act{
		Kind:    deadletter.ActDenied,
		Actor:   name,
		Detail:  deadletter.Cut(sentence(err, http.StatusForbidden), 300),
		Targets: targets,
		Asked:   1,
	}
	if err := w.Store.Record(ctx, act); err != nil {
		w.Log.Warn("a denied request was not recorded", "who", deadletter.Visible(name), "targets", targets, "err", err)
	}
}
