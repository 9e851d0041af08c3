// Package web is the HTTP interface of dlo: the pages, the JSON API, live events and health checks.
// It turns requests into calls to the store and the operation desk. It turns the results into pages
// and JSON. It makes no decisions about letters, has no connection to a broker, and contains no
// SQL.
package web

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web/view"
)

// Options configures a Web. The parts of dlo, down to Facts, are required. The zero value of every
// other field is usable.
type Options struct {
	Store    *store.Store
	Desk     *operation.Desk
	Picker   Picker
	Schemas  *schemas.Library
	Digests  Digester
	Reports  Annotator
	Drains   Drainer
	Trials   Trials
	Topology Topology
	Adoption Adoption
	Channels Channels // channels of the configuration
	Settings Settings
	Rules    *rules.Book
	// all facts of a stored letter that rules use
	RuleFacts func(l *deadletter.Letter) rules.Facts
	// reports whether queries must not name a body path
	Masked    func(path string) bool
	Observed  func(deadletter.Origin) bool // whether letters of a queue are only observed
	Connector Connector
	Told      func() []string // channels notified of problems
	Disk      func() string   // space for letters, in words
	Doctor    func(context.Context) []deadletter.Checkup
	Backups   Backups // nil: none
	// applies the configuration file, or with "dry" says what that would change
	Reload func(ctx context.Context, by string, dry bool) (deadletter.Reload, error)
	// returns the facts that a broker reports about a queue
	Facts func(context.Context, deadletter.Origin) deadletter.QueueFacts

	Bindings []deadletter.Binding                   // from the configuration
	Decoder  func() *payload.Decoder                // current decoder of bodies; nil: no types
	Header   func(name, text string) (string, bool) // masks one header or property; nil: nothing is masked
	Brokers  func() []deadletter.BrokerStatus       // current state of the connections
	// the headers that the configuration maps to the parts of a failure
	FailureHeaders deadletter.FailureHeaders
	// queues whose letters are only observed, in words; "": none
	Observing string
	Problems  func() []deadletter.Problem // current problems of dlo itself, such as a full disk
	Setup     view.Setup                  // for the first run
	// Host allow list, see Hosts; empty: any host, for tests only
	Hosts   []string
	Metrics http.Handler  // /metrics; nil: 404
	Version string        // the version of dlo
	Links   []config.Link // links from letters' pages to other tools
	Fields  []string      // body paths that queries can name
	MaxBody int           // maximum bytes of a published body; 0: 16 MiB
	// how long discarded letters can be restored; 0: not shown
	Restore time.Duration
	// how long after it was sent a letter must not come back to count as quiet; 0: not shown
	Watch    time.Duration
	Now      func() time.Time                                  // nil: time.Now
	Logged   *slog.Logger                                      // gets a line for each request; nil: none
	Log      *slog.Logger                                      // nil: discarded
	Actor    func(*http.Request) (deadletter.Principal, error) // who makes the request; nil: deadletter.Local
	Restrict func(*deadletter.Principal)                       // takes rights away from everybody; nil: it takes none
	Users    *identity.Accounts                                // dlo's own users; nil: none
	TokensOn bool                                              // requests can identify themselves with a token
	// grants of the configuration for a user or a token; nil: none
	Granted   func(name string) []deadletter.Grant
	PublicURL string // where people reach dlo; "": unknown
	Secure    bool   // people reach dlo by https
	// path below which people reach dlo, such as /dlo; "": at the root
	BasePath string
	Requests float64 // limit for one principal per second; 0: no limit
	// address that a request comes from; nil: the other end of the connection
	Address func(*http.Request) string
}

// Web serves all HTTP requests. Its methods are safe for concurrent use.
type Web struct {
	Options
	router  chi.Router
	open    bool   // every caller is local
	heavy   places // limits how many bodies are decoded at the same time
	lists   lists
	loading places // limits how many uploaded schemas are compiled at the same time
	looks   places // limits how many searches read through letters at the same time
	streams streams
	// held from the check of If-Match until the bindings are changed, so that no other change comes
	// between
	picking  sync.Mutex
	drained  chan struct{} // closed by Drain
	drain    sync.Once
	yields   atomic.Bool         // another Web serves in place of this one from now on
	writes   *semaphore.Weighted // held by each request that changes something
	pinger   pinger
	depths   depths
	names    fieldNames
	uploads  uploads
	denials  denials
	throttle throttle
}

const (
	maxHeavy   = 4 // bodies decoded at the same time; each may need as much memory as the limit for one body
	maxLoading = 1 // only one uploaded schema is compiled at a time, and no page waits for that
)

// New returns a Web that serves requests with the options o.
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
	if o.Address == nil {
		o.Address = peer
	}
	open := o.Actor == nil
	if open {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return deadletter.Local, nil }
	}
	if actor := o.Actor; o.Restrict != nil {
		o.Actor = func(r *http.Request) (deadletter.Principal, error) {
			p, err := actor(r)
			o.Restrict(&p)
			return p, err
		}
	}
	w := &Web{
		Options: o,
		open:    open,
		heavy:   make(places, maxHeavy),
		lists:   lists{places: make(places, maxLists), own: map[string]*ownLists{}},
		loading: make(places, maxLoading),
		looks:   make(places, 1),
		drained: make(chan struct{}),
		writes:  semaphore.NewWeighted(maxWrites),
	}
	w.router = w.routes()
	return w
}

func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.Logged != nil {
		w.logRequest(rw, r)
		return
	}
	w.serve(rw, r)
}

func (w *Web) serve(rw http.ResponseWriter, r *http.Request) {
	if w.BasePath != "" {
		w.rebased(rw, r)
		return
	}
	w.router.ServeHTTP(rw, r)
}

// Routes returns the routes, for the tests of who reaches each of them.
func (w *Web) Routes() chi.Routes { return w.router }

const (
	maxWrites = 1 << 30          // more requests than there can be at a time
	writesEnd = 10 * time.Second // how long Drain waits for requests that change something
)

// Drain begins the shutdown: /readyz returns 503, actions are refused, and event streams end. Pages
// can still be read. Drain returns when the actions that had begun have ended, or after 10 s.
func (w *Web) Drain() {
	w.drain.Do(func() {
		close(w.drained)
		ctx, cancel := context.WithTimeout(context.Background(), writesEnd)
		defer cancel()
		if w.writes.Acquire(ctx, maxWrites) != nil {
			w.Log.Warn("a request that changes something takes long; dlo does not wait for it")
		}
	})
}

// Yield does the same as Drain for a Web in whose place another one is about to serve. dlo stays
// ready.
func (w *Web) Yield() {
	w.yields.Store(true)
	w.Drain()
}

// Draining reports whether Drain was called.
func (w *Web) Draining() bool {
	select {
	case <-w.drained:
		return true
	default:
		return false
	}
}

// Server returns an http.Server for w with limits for a server that many people can reach. Slow and
// idle clients are disconnected. A stream extends its own write deadline.
func (w *Web) Server() *http.Server {
	return &http.Server{
		Handler:           w,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		// the server logs only lost connections here
		ErrorLog: slog.NewLogLogger(w.Log.Handler(), slog.LevelDebug),
	}
}

// places limits the number of tasks of one kind that run at the same time.
type places chan struct{}

// waitForPlace waits for a free place. It gives up when ctx ends. The caller must call the returned
// function to give the place back.
func (p places) waitForPlace(ctx context.Context) (release func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waitForPlace waits for a free place among the tasks that need much memory. It gives up when ctx
// ends. The caller must call the returned function to give the place back.
func (w *Web) waitForPlace(ctx context.Context) (release func(), err error) {
	return w.heavy.waitForPlace(ctx)
}

// decode decodes the body of a letter. At most maxHeavy bodies are decoded at the same time. decode
// waits for its turn until ctx ends.
func (w *Web) decode(ctx context.Context, l *deadletter.Letter) (*payload.Document, error) {
	return w.decodeBy(ctx, w.Decoder(), l)
}

func (w *Web) decodeBy(ctx context.Context, d *payload.Decoder, l *deadletter.Letter) (*payload.Document, error) {
	var common map[string]float64
	if l.Reading == deadletter.ReadAmbiguous {
		var err error
		if common, err = w.Store.Priors(ctx, l.Origin()); err != nil {
			return nil, err
		}
	}
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return nil, err
	}
	doc := d.LetterAmong(l, common)
	done()
	if doc.ShapeOnly {
		named, err := w.Store.NamesType(ctx, l.Origin(), doc.Type)
		if err != nil {
			return nil, err
		}
		doc.ShapeOnly = !named
	}
	return doc, nil
}

// newKey returns a new idempotency key for a form.
func newKey() string { return rand.Text() }
