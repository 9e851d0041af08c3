// Package web is the face of dlo on HTTP: the pages, the JSON API, live events, health. It turns
// requests into calls of the store and the operation desk, and values into view models and JSON. It
// decides nothing about letters, holds no broker connection, and knows no SQL.
package web

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Store is what web reads. Each part is declared beside the handlers that call it.
type Store interface {
	Lists
	Details
	Operations
	Groups
	Deploys
	Verdicts
	Histograms
	SavedViews
	SavedRedirects
	Picked
	Revisions
	Typed
	Readings
	TrialCounter
	Guarded
	Audit
	Recorder
	Imports
	Health
}

// Actions is what web does to letters and queues.
type Actions interface {
	Desk
	Redirector
	Guardian
	Applier
	Reviser
}

// Options are the parts of a Web. Store and Desk are required; every other zero value is usable.
type Options struct {
	Store     Store
	Desk      Actions
	Picker    Picker                                            // nil: no type can be picked
	Schemas   Schemas                                           // nil: no types can be listed or changed
	Bindings  []payload.Binding                                 // of the configuration
	Digests   Digester                                          // nil: there is no digest
	Reports   Annotator                                         // nil: nothing can be said of letters
	Drains    Drainer                                           // nil: no queue can be drained by request
	Decoder   func() *payload.Decoder                           // how bodies are read now; nil: without types
	Header    func(name, text string) (string, bool)            // masks one header or property; nil: nothing is masked
	Masked    func(path string) bool                            // whether queries may not ask for a path of bodies; nil: for none
	Brokers   func() []deadletter.BrokerStatus                  // what is known of the connections now
	Trials    Trials                                            // nil: there are none
	Connector Connector                                         // nil: nobody can be asked to connect
	Problems  func() []deadletter.Problem                       // what keeps dlo itself from its work now, such as a full disk
	Setup     Setup                                             // for the first run
	Hosts     []string                                          // Host allow list, see Hosts; empty: any host, for tests only
	Metrics   http.Handler                                      // /metrics; nil: 404
	Links     []config.Link                                     // from the page of a letter into other tools
	Fields    []string                                          // paths of bodies that queries can ask for
	MaxBody   int                                               // bytes of a body that is published; 0: 16 MiB
	Restore   time.Duration                                     // how long a discarded letter can be restored; 0: not said
	Told      func() []string                                   // the channels that are told of problems; nil: not said
	Disk      func() string                                     // the room for letters, in words; nil: not said
	Rules     *rules.Book                                       // in use; nil: not said
	RuleFacts func(l *deadletter.Letter) rules.Facts            // what the rules look at in a stored letter, whole; nil: what was stored of it, without headers and fields
	Watch     time.Duration                                     // how long a letter has to stay away to be quiet; 0: not said
	Now       func() time.Time                                  // time.Now when nil
	Log       *slog.Logger                                      // discarded when nil
	Actor     func(*http.Request) (deadletter.Principal, error) // who asks; nil: deadletter.Local

	Facts func(context.Context, deadletter.Origin) deadletter.QueueFacts // what its broker says of a queue; nil: unknown
}

// Setup is where letters come from, as the first run explains it: the broker, its dead-letter
// exchange ("" = none is declared), the first inbox, and their vhost.
type Setup struct{ Broker, Exchange, Inbox, VHost string }

// Web serves everything. Its methods are safe for concurrent use.
type Web struct {
	Options
	router  chi.Router
	heavy   places        // for bodies that are decoded at the moment
	lists   places        // for queries that may look at many letters
	loading places        // for uploads of schemas
	looks   places        // for searches that look through letters
	streams chan struct{} // a place for each open event stream
	drained chan struct{} // closed by Drain
	drain   sync.Once
	pinger  pinger
	depths  depths
	shapes  shapes
	names   fieldNames
	uploads uploads
}

const (
	maxLists   = 2   // half of the readers of the store: the others answer what is asked by number
	maxHeavy   = 4   // decoding is bounded in memory per body, so this times that is what pages can use
	maxLoading = 1   // uploads of schemas are compiled one at a time, and no page waits for them
	maxStreams = 128 // open event streams
)

// New returns the handlers for o.
func New(o Options) *Web {
	if o.Decoder == nil {
		none := &payload.Decoder{}
		o.Decoder = func() *payload.Decoder { return none }
	}
	if o.Header == nil {
		o.Header = func(_, text string) (string, bool) { return text, false }
	}
	if o.Brokers == nil {
		o.Brokers = func() []deadletter.BrokerStatus { return nil }
	}
	if o.Problems == nil {
		o.Problems = func() []deadletter.Problem { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Actor == nil {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return deadletter.Local, nil }
	}
	w := &Web{Options: o, heavy: make(places, maxHeavy), lists: make(places, maxLists), loading: make(places, maxLoading), looks: make(places, 1), streams: make(chan struct{}, maxStreams), drained: make(chan struct{})}
	w.router = w.routes()
	return w
}

// ServeHTTP serves a request.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.router.ServeHTTP(rw, r) }

// Routes lists what is served, for the test that holds openapi.yaml to it.
func (w *Web) Routes() chi.Routes { return w.router }

// Drain begins the end: /readyz says 503, actions are refused, event streams end. Pages can still
// be read.
func (w *Web) Drain() { w.drain.Do(func() { close(w.drained) }) }

func (w *Web) draining() bool {
	select {
	case <-w.drained:
		return true
	default:
		return false
	}
}

// Server returns an http.Server around w with the limits of a server that faces people: slow and
// idle clients are let go. Streams extend their own write deadline.
func (w *Web) Server() *http.Server {
	return &http.Server{
		Handler:           w,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(w.Log.Handler(), slog.LevelDebug), // noise of clients that go away
	}
}

// places bound how much of a kind is done at a time.
type places chan struct{}

// turn waits for a place until ctx ends; done gives it back.
func (p places) turn(ctx context.Context) (done func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// turn waits for a place among what takes much memory, until ctx ends; done gives it back.
func (w *Web) turn(ctx context.Context) (done func(), err error) { return w.heavy.turn(ctx) }

// decode reads a body, at most maxHeavy at a time. It waits for its turn until ctx ends.
func (w *Web) decode(ctx context.Context, l *deadletter.Letter) (*payload.Document, error) {
	return w.decodeBy(ctx, w.Decoder(), l)
}

func (w *Web) decodeBy(ctx context.Context, d *payload.Decoder, l *deadletter.Letter) (*payload.Document, error) {
	var common map[string]float64
	if l.Reading == deadletter.ReadAmbiguous {
		var err error
		if common, err = w.Store.Priors(ctx, l.Origin); err != nil {
			return nil, err
		}
	}
	done, err := w.turn(ctx)
	if err != nil {
		return nil, err
	}
	doc := d.LetterAmong(l, common)
	done()
	if doc.ShapeOnly {
		named, err := w.Store.NamesType(ctx, l.Origin, doc.Type)
		if err != nil {
			return nil, err
		}
		doc.ShapeOnly = !named
	}
	return doc, nil
}

// newKey returns a fresh idempotency key for a form.
func newKey() string { return rand.Text() }
