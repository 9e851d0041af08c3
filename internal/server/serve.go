// Package server puts dlo together: it makes the store, the brokers and every room that works, ties them to each other, and starts and
// stops them in order. It holds the commands that open a file or a broker.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// The rooms fit the adapters.
var (
	_ ingest.Store    = (*store.Store)(nil)
	_ ingest.Inbox    = (*rabbitmq.Inbox)(nil)
	_ classify.Store  = (*store.Store)(nil)
	_ requeue.Store   = (*store.Store)(nil)
	_ requeue.Broker  = (*rabbitmq.Link)(nil)
	_ operation.Store = (*store.Store)(nil)

	_ operation.RetentionStore = (*store.Store)(nil)
	_ classify.IndexStore      = (*store.Store)(nil)
	_ classify.ReaderStore     = (*store.Store)(nil)
)

type Serve struct {
	Config string `name:"config" type:"path" env:"DLO_CONFIG" help:"The configuration file; without one the defaults hold."`
}

// Run drains, retries and shows letters until ctx ends.
func (c Serve) Run(ctx context.Context, o Options) error {
	cfg, err := config.Load(c.Config, o.Getenv)
	if err != nil {
		return err
	}
	tuneMemory(o.Getenv)
	s, err := New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// Options are what a server takes from its process.
type Options struct {
	Getenv  func(string) string
	Log     io.Writer // lines of text, one an event
	Version string
	Crash   func(point string) // called at named points, for tests; nil in the product
}

// refusedError is an error with the exit code that stands for it.
type refusedError struct {
	error
	code int
}

func (e refusedError) ExitCode() int { return e.code }
func (e refusedError) Unwrap() error { return e.error }

// wrong is a mistake in the configuration that only the server finds.
func wrong(format string, args ...any) error {
	return refusedError{fmt.Errorf("usage: "+format, args...), 2}
}

const (
	collectAt   = 300       // per cent of growth: most of what a window allocates is gone with the next
	softCeiling = 200 << 20 // bytes; near it the collector works as hard as it must. A larger body passes it for as long as it is in hand
)

// tuneMemory trades memory that nobody misses for processor time. GOGC and GOMEMLIMIT win.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softCeiling)
	}
}

// Server is every room of a running dlo.
type Server struct {
	cfg        config.Config
	getenv     func(string) string
	version    string
	log        *slog.Logger
	store      *store.Store
	space      *store.Space
	Registry   *prometheus.Registry
	links      []*rabbitmq.Link
	decoder    atomic.Pointer[payload.Decoder]     // how bodies are read now
	picked     atomic.Pointer[map[[32]byte]string] // types that people picked for groups
	masks      payload.Masks
	library    *schemas.Library
	rules      *rules.Book
	targets    *rules.Targets
	ingesters  []*ingest.Ingester
	Drains     *Drains
	classifier *classify.Classifier
	dispatch   []*requeue.Dispatcher
	reports    *annotations
	desk       *operation.Desk
	keeper     *operation.Keeper
	tender     *operation.Tender
	outbox     outbox
	name       string // of the store, towards receivers of notices
	notifier   *notify.Notifier
	channels   atomic.Pointer[map[string]notify.Channel]
	digester   *notify.Digester
	indexer    *classify.Indexer
	reader     *classify.Reader
	regroups   bool // letters were in groups of an older version at the start: what people picked for these goes with them
	listener   net.Listener
	web        *web.Web
	http       *http.Server
	broken     chan error // an fsync failed: end at once
}

// New makes the rooms and takes the store and the address; nothing runs yet.
func New(ctx context.Context, cfg config.Config, o Options) (*Server, error) {
	if err := loopback(cfg.Listen); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, getenv: o.Getenv, version: o.Version, log: slog.New(slog.NewTextHandler(o.Log, nil)), Registry: prometheus.NewRegistry(), broken: make(chan error, 1)}
	s.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, b := range cfg.Brokers {
		link, err := rabbitmq.Connect(rabbitmq.Broker{
			Name: b.Name, URL: b.URL, Management: b.Management, Exchange: b.Exchange, Inboxes: b.Inboxes,
			AcceptLimited: b.AcceptLimited, InFlight: cfg.Requeue.InFlight, ConfirmTimeout: cfg.Requeue.ConfirmTimeout,
		}, s.log)
		if err != nil {
			return nil, wrong("%w", err)
		}
		s.links = append(s.links, link)
	}
	s.Registry.MustRegister(rabbitmq.Collector(s.links...))
	s.space = store.NewSpace(cfg.Store, cfg.Disk.StopBelow, cfg.Disk.StopBelowPercent, cfg.Disk.Reserve)
	var err error
	s.store, err = store.Open(ctx, cfg.Store, store.Options{Log: s.log, Space: s.space, Places: places(cfg.Brokers), Broken: func(err error) {
		select {
		case s.broken <- err:
		default:
		}
	}})
	if err != nil {
		return nil, explainStore(err, cfg.Store)
	}
	s.Registry.MustRegister(s.store.Collector())
	if s.regroups, err = s.store.Regroup(ctx, classify.GroupVersion); err == nil {
		err = errors.Join(s.schemas(ctx), s.picks(ctx))
	}
	if err != nil {
		s.store.Close()
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		s.store.Close()
		return nil, fmt.Errorf("listen: %w; choose another address with listen or DLO_LISTEN", err)
	}
	if err := s.telling(o.Crash); err != nil {
		s.Close()
		return nil, err
	}
	s.rooms(o.Crash)
	s.pages()
	return s, nil
}

// Addr is where the server listens, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close gives up the store and the address of a server that is not to run.
func (s *Server) Close() error { return errors.Join(s.listener.Close(), s.store.Close()) }

// loopback refuses an address that others could reach: there is no sign-in yet.
func loopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return wrong("listen %q: %w; it looks like 127.0.0.1:8672", listen, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return wrong("listen %s: only a loopback address is served, as this version has no sign-in; put an authenticating proxy on this machine before 127.0.0.1:8672", listen)
}

// explainStore says what to do about a store that cannot be opened.
func explainStore(err error, path string) error {
	if errors.Is(err, store.ErrLocked) {
		return refusedError{err, 4}
	}
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%w. Nothing was changed, and letters wait in the broker. Restore %s, with its -wal file if there is one, from a copy; or move it away to begin with an empty store", err, path)
	}
	return err
}

// rooms makes the working rooms and ties their wakes.
func (s *Server) rooms(crash func(point string)) {
	cfg := s.cfg
	s.rules = rules.NewBook(&cfg.Rules)
	s.targets = &rules.Targets{}
	for i, b := range cfg.Brokers {
		s.targets.Add(b.Name, s.links[i].VHost(), b.RequeueTo, append(inboxesAt(cfg.Brokers, b.Place()), annotationsAt(cfg.Brokers, b.Place())...))
	}
	wake := func() {
		for _, d := range s.dispatch {
			d.Wake()
		}
	}
	s.classifier = classify.New(s.store, classify.Options{
		Decoder: s.decoderOfVerdicts, Picks: s.pickedNow, Mask: s.masks.Header, Rules: s.rules, Targets: s.targets, Log: s.log, Crash: crash, Done: func() { wake(); s.indexer.Wake() }, Busy: s.flooded,
		Metrics: classify.NewMetrics(s.Registry),
	})
	s.indexer = classify.NewIndexer(s.store, classify.IndexerOptions{
		Decoder: s.decoderOfVerdicts, Mask: s.masks.Header, Hide: s.masks.Text, Masks: s.masks.Names(), Text: cfg.Search.Text, Fields: cfg.Search.Fields, Busy: s.flooded, Log: s.log,
	})
	s.reader = classify.NewReader(s.store, s.classifier, s.readAnew)
	s.reports = newAnnotations(s, crash)
	s.keeper = operation.NewKeeper(s.store, operation.Retention(cfg.Retention), nil, s.log)
	s.desk = operation.New(s.store, operation.Options{Targets: s.targets, Facts: s.facts, MaxBody: int(cfg.Requeue.MaxBody), Log: s.log, Crash: crash, Moved: wake, Decider: s.classifier, Edit: func(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error) {
		return s.decoderNow().Revise(l, patch, reveal)
	}})
	ingested, attempts := ingest.NewMetrics(s.Registry, nil), requeue.NewMetrics(s.Registry)
	taking := ingest.Options{
		Uncertain: cfg.Ingest.Uncertain, Horizon: cfg.Ingest.Horizon, HorizonRows: cfg.Ingest.HorizonRows, Room: s.space.Room, Stored: s.classifier.Wake, CameBack: s.cameBack, Crash: crash, Log: s.log, Metrics: ingested,
	}
	s.Drains = newDrains(s, taking)
	for i, b := range cfg.Brokers {
		link := s.links[i]
		s.dispatch = append(s.dispatch, requeue.New(s.store, link, requeue.Options{
			Broker: b.Name, InFlight: cfg.Requeue.InFlight, Rate: cfg.Requeue.Rate, Watch: cfg.Requeue.Watch,
			InDoubt: requeue.InDoubt(cfg.Requeue.InDoubt), Lease: cfg.Requeue.Lease, MaxBody: int(cfg.Requeue.MaxBody), Targets: s.targets, Log: s.log, Crash: crash, Metrics: attempts,
			Nack: requeue.Nack(cfg.Requeue.Nack), VHost: link.VHost(), Rules: s.rules, Rates: b.Rates, Breaker: requeue.Breaker(cfg.Requeue.Breaker),
		}))
		for _, q := range b.Inboxes {
			inbox := link.Inbox(q, rabbitmq.Limits{Letters: cfg.Ingest.Letters, Bytes: int(cfg.Ingest.Bytes), Linger: cfg.Ingest.Linger})
			o := taking
			o.Broker, o.VHost, o.Inbox, o.Origin, o.Same = b.Name, link.VHost(), q, b.Origins[q], namesOf(cfg.Brokers, b.Place())
			s.ingesters = append(s.ingesters, ingest.New(s.store, inbox, o))
		}
	}
}

// cameBack tells the dispatchers of letters that came back.
func (s *Server) cameBack(letters []deadletter.ID) {
	for _, d := range s.dispatch {
		d.CameBack(letters)
	}
}

// inboxesAt returns the inboxes of a broker and vhost, whichever entries name them: no letter is requeued to one.
func inboxesAt(brokers []config.Broker, place string) []string {
	var inboxes []string
	for _, b := range brokers {
		if b.Place() == place {
			inboxes = append(inboxes, b.Inboxes...)
		}
	}
	return inboxes
}

// namesOf returns what a broker and vhost is called in the configuration.
func namesOf(brokers []config.Broker, place string) []string {
	var names []string
	for _, b := range brokers {
		if b.Place() == place {
			names = append(names, b.Name)
		}
	}
	return names
}

// flooded says that letters wait in the broker to be stored.
func (s *Server) flooded() bool {
	return slices.ContainsFunc(s.ingesters, (*ingest.Ingester).Busy) || s.Drains.Busy()
}

// facts asks the broker of an origin about its queue.
func (s *Server) facts(ctx context.Context, o deadletter.Origin) deadletter.QueueFacts {
	for i, b := range s.cfg.Brokers {
		if b.Name == o.Broker {
			return s.links[i].Facts(ctx, o.Queue)
		}
	}
	return deadletter.UnknownQueue
}

// room is a loop that works until its context ends, and its owner, who waits for it.
type room struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func start(loops ...func(ctx context.Context) error) *room {
	ctx, cancel := context.WithCancel(context.Background())
	r := &room{cancel: cancel}
	for _, loop := range loops {
		r.done.Go(func() { loop(ctx) })
	}
	return r
}

func (r *room) stop() {
	r.cancel()
	r.done.Wait()
}

// Run works until ctx ends and then stops in order: no more actions, no more windows, no more claims, and every commit, ack and confirm that is under way is waited for. A clean stop
// makes no duplicates.
func (s *Server) Run(ctx context.Context) error {
	var inboxes, dispatchers, links []func(context.Context) error
	for _, i := range s.ingesters {
		inboxes = append(inboxes, i.Run)
	}
	for _, d := range s.dispatch {
		dispatchers = append(dispatchers, d.Run)
	}
	for _, l := range s.links {
		links = append(links, l.Run)
	}
	publishing := start(links...)
	reporting := start(s.reports.loops()...)
	reading := start(s.classifier.Run, s.reader.Run, s.indexer.Run)
	sending := start(dispatchers...)
	acting := start(s.desk.Run, s.keeper.Run, s.tender.Run, s.library.Run, s.reloads)
	telling := start(s.digester.Run, s.notifier.Run, s.repeats)
	draining := start(append(inboxes, s.Drains.Run)...)
	serving := make(chan error, 1)
	go func() { serving <- s.http.Serve(s.listener) }()
	s.log.Info("dlo is ready", "version", s.version, "url", "http://"+s.Addr(), "store", absolute(s.store.Path()))

	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.broken:
		return failure // at once: a failed fsync says that nothing written since can be trusted
	case failure = <-serving:
	}
	s.log.Info("stopping")
	s.web.Drain()
	reporting.stop()
	draining.stop()
	sending.stop()
	reading.stop()
	acting.stop()
	telling.stop()
	publishing.stop()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.http.Shutdown(closing); err != nil {
		s.http.Close()
	}
	return errors.Join(failure, s.store.Close())
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
