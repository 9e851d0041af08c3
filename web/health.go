package web

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// pinger pings the store for probes. It does so at most once a second, because each ping costs a
// transaction.
type pinger struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

func (p *pinger) ping(ctx context.Context, store *store.Store) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) > time.Second {
		p.err = store.Ping(ctx)
		p.at = time.Now()
	}
	return p.err
}

// healthz responds that the process is alive. It checks nothing else.
func (w *Web) healthz(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	rw.Write([]byte(`{"status":"alive"}` + "\n"))
}

type readiness struct {
	Ready    bool                 `json:"ready"`
	Reason   string               `json:"reason,omitempty"`
	Store    readyPart            `json:"store"`
	Brokers  []readyBroker        `json:"brokers"`
	Problems []deadletter.Problem `json:"problems"`
}

type readyPart struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

type readyBroker struct {
	Name      string                   `json:"name"`
	VHost     string                   `json:"vhost"`
	Connected bool                     `json:"connected"`
	Reason    string                   `json:"reason,omitempty"`
	Blocked   string                   `json:"blocked,omitempty"`
	Inboxes   []deadletter.InboxStatus `json:"inboxes"`
}

// readyz responds with 200 if the store responds and at least one broker is connected. Otherwise,
// it responds with 503. For principals who may see all letters, the response lists the state of the
// store and of each broker, with reasons.
func (w *Web) readyz(rw http.ResponseWriter, r *http.Request) {
	p, err := w.Actor(w.withClient(r))
	w.answerReady(rw, r, err == nil && p.MayEverywhere(deadletter.VerbView))
}

// answerReady responds to a readiness probe. If the parameter "details" is false, the response does
// not name any broker.
func (w *Web) answerReady(rw http.ResponseWriter, r *http.Request, details bool) {
	out := w.readiness(r.Context())
	code := http.StatusOK
	if !out.Ready {
		code = http.StatusServiceUnavailable
	}
	if !details {
		w.writeJSON(rw, r, code, map[string]bool{"ready": out.Ready})
		return
	}
	w.writeJSON(rw, r, code, out)
}

// Operations returns the handler for an address that serves only probes and metrics. The handler
// does not ask who makes a request. If "open" is true, other machines may use the address.
//
// If "open" is false, the handler accepts only requests whose Host is an IP address or localhost.
// Otherwise a web page of an attacker could send requests with a name that the attacker's DNS
// resolves to the address of dlo.
func (w *Web) Operations(open bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", w.healthz)
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, r *http.Request) { w.answerReady(rw, r, true) })
	if w.Metrics != nil {
		mux.Handle("GET /metrics", w.Metrics)
	}
	return w.setHeaders(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && !open && host != "localhost" {
			w.turnAway(rw, r, statusError(http.StatusMisdirectedRequest))
			return
		}
		mux.ServeHTTP(rw, r)
	}))
}

// Ready reports whether /readyz responds with 200.
func (w *Web) Ready(ctx context.Context) bool { return w.readiness(ctx).Ready }

func (w *Web) readiness(ctx context.Context) readiness {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	out := readiness{Store: readyPart{OK: true}, Brokers: []readyBroker{}}
	if err := w.pinger.ping(ctx, w.Store); err != nil {
		out.Store = readyPart{Reason: "the store does not answer"}
		w.Log.Warn("readiness: the store does not answer", "err", err)
	}
	connected := false
	for _, b := range w.Brokers() {
		out.Brokers = append(out.Brokers, readyBroker{
			Name: b.Name, VHost: b.VHost, Connected: b.Connected, Reason: b.Reason, Blocked: b.Blocked,
			Inboxes: b.Inboxes,
		})
		connected = connected || b.Connected
	}
	for _, p := range w.problems(ctx) {
		p.Since = p.Since.Truncate(time.Second)
		out.Problems = append(out.Problems, p)
	}
	switch {
	case w.Draining() && !w.yields.Load():
		out.Reason = "stopping"
	case !out.Store.OK:
		out.Reason = out.Store.Reason
	case !connected:
		out.Reason = "no broker is connected"
	default:
		out.Ready = true
	}
	return out
}
