package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/deadletteroffice/dlo/internal/adopt"
	"github.com/deadletteroffice/dlo/internal/annotation"
	"github.com/deadletteroffice/dlo/internal/backup"
	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/drain"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/survey"
	"github.com/deadletteroffice/dlo/internal/trial"
	"github.com/deadletteroffice/dlo/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/net/netutil"
)

// Server is a dlo with one configuration. It contains everything that is made again when dlo loads
// another configuration; its process contains the rest.
type Server struct {
	*process
	cfg        config.Config
	Registry   *prometheus.Registry
	links      []*rabbitmq.Link
	decoder    atomic.Pointer[payload.Decoder]     // decodes bodies now
	picked     atomic.Pointer[map[[32]byte]string] // group -> type that people picked for it
	masks      payload.Masks
	library    *schemas.Library
	targets    *rules.Targets
	ingesters  []*ingest.Ingester
	Drains     *drain.Drains
	trials     *trial.Trials
	survey     *survey.Survey
	adoption   *adopt.Adoption
	classifier *classify.Classifier
	dispatch   []*requeue.Dispatcher
	desk       *operation.Desk
	keeper     *operation.Keeper
	indexer    *classify.Indexer
	reader     *classify.Reader
	// true if letters were in groups of an older version when dlo started; people's picks for these
	// groups then move with the letters
	regroups  bool
	web       *web.Web
	probes    http.Handler // probes and metrics, for an address of their own
	backups   *backup.Schedule
	auditFile *auditFile         // copies the audit log to a file; nil = no file
	accounts  *identity.Accounts // users of dlo itself; nil = there are none
	who       *identity.Identity // finds who sends a request; nil = everybody is the local user
	rooms     rooms
}

// process contains what stays the same while dlo runs, whatever the configuration: the store, the
// addresses, what counts for the metrics, and the parts whose settings can be replaced.
type process struct {
	current     atomic.Pointer[Server]
	getenv      func(string) string
	version     string // with the commit and its date
	log         *slog.Logger
	logged      *logSettings
	flushLog    func()
	crash       func(point string)
	hangups     <-chan os.Signal
	store       *store.Store
	space       *store.Space
	lasting     *prometheus.Registry
	counters    counters
	rules       *rules.Book
	annotations *annotation.Intake
	outbox      outbox
	name        string // name of the store, for the receivers of notices
	notifier    *notify.Notifier
	channels    atomic.Pointer[map[string]notify.Channel]
	digester    *notify.Digester
	tender      *operation.Tender
	watched     *notify.Problems
	told        atomic.Pointer[[]string] // names of the channels that get notices about problems
	findStrays  func(ctx context.Context, configured func(broker, vhost string) bool) ([]deadletter.Stray, error)
	history     history
	listener    net.Listener                  // listener of the first address
	further     []net.Listener                // listeners of the other addresses
	opsListener net.Listener                  // listener of probes and metrics; nil = none
	changing    sync.Mutex                    // held while the configuration file is read again or written
	loaded      atomic.Pointer[config.Config] // the configuration that was last loaded
	connected   map[*rabbitmq.Link]*room
	taking      sync.Mutex      // held while a backup is made for a client
	stopping    context.Context // done when dlo stops
	stopTaking  context.CancelFunc
	running     bool // the components of the current server run
	// gets an error if an fsync failed or the file of the store was replaced; dlo then ends
	// immediately
	broken chan error
}

// buildInfo returns the metric that says which dlo runs.
func buildInfo(o Options) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "dlo_build_info",
		Help: "1; the labels say which dlo runs.",
	}, []string{"version", "commit", "goversion"})
	g.WithLabelValues(o.Version, o.Commit, runtime.Version()).Set(1)
	return g
}

// counters are the metrics that survive a reload.
type counters struct {
	ingest   *ingest.Metrics
	classify *classify.Metrics
	requeue  *requeue.Metrics
	reload   prometheus.Gauge // 1 if the configuration file was applied the last time
}

// New opens the store, listens on the addresses, and creates the components. It does not start the
// components.
func New(ctx context.Context, cfg config.Config, o Options) (*Server, error) {
	at, err := allAddresses(ctx, cfg, net.DefaultResolver.LookupNetIP)
	if err != nil {
		return nil, err
	}
	var ops []string
	if cfg.OpsListen != "" {
		if ops, err = addresses(ctx, cfg.OpsListen, missingForOps(cfg), net.DefaultResolver.LookupNetIP); err != nil {
			return nil, err
		}
	}
	var certificate *certificate
	if cfg.TLS.Cert != "" {
		if certificate, err = readCertificate(cfg.TLS); err != nil {
			return nil, wrong("%w", err)
		}
	}
	p := &process{
		getenv:    o.Getenv,
		version:   deadletter.About(o.Version, o.Commit, o.Date),
		crash:     o.Crash,
		hangups:   o.Hangups,
		lasting:   prometheus.NewRegistry(),
		rules:     rules.NewBook(&cfg.Rules),
		connected: map[*rabbitmq.Link]*room{},
		broken:    make(chan error, 1),
	}
	p.stopping, p.stopTaking = context.WithCancel(context.Background())
	s := &Server{process: p, cfg: cfg}
	p.current.Store(s)
	p.loaded.Store(&cfg)
	p.log, p.logged, p.flushLog = newLog(o.Log, cfg.Log)
	if s.links, err = linksOf(cfg, nil, p.log, p.crash); err != nil {
		return nil, err
	}
	p.space = newSpace(&cfg, cfg.Disk.Reserve)
	p.store, err = store.Open(ctx, cfg.Store, store.Options{
		Log:     p.log,
		Space:   p.space,
		Brokers: storeBrokers(cfg.Brokers),
		Broken:  p.end,
	})
	if err != nil {
		return nil, explainStore(err, cfg.Store)
	}
	if o.AcceptStore {
		if err := p.store.Accept(ctx, deadletter.Service.Name); err != nil {
			p.store.Close()
			return nil, err
		}
	}
	p.findStrays, p.history = p.store.Strays, p.store
	p.lasting.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		p.store.Collector(), buildInfo(o),
	)
	p.counters = counters{
		ingest.NewMetrics(p.lasting, nil), classify.NewMetrics(p.lasting), requeue.NewMetrics(p.lasting),
		newReloadMetric(p.lasting),
	}
	for i, list := range at {
		l, err := listen(list, cfg.Auth.On())
		if err != nil {
			p.Close()
			return nil, err
		}
		l = netutil.LimitListener(l, maxConnections)
		// TLS must be outermost, because http.Server looks for HTTP/2 in a connection of crypto/tls
		if certificate != nil && l.Addr().Network() != "unix" {
			l = certificate.listener(l)
		}
		if i == 0 {
			p.listener = l
		} else {
			p.further = append(p.further, l)
		}
	}
	if len(ops) > 0 {
		if p.opsListener, err = listen(ops, true); err != nil {
			p.Close()
			return nil, fmt.Errorf("ops_%w", err)
		}
		p.opsListener = netutil.LimitListener(p.opsListener, maxConnections)
	}
	removeTemporary(cfg.Store, p.log)
	p.annotations = p.newAnnotations()
	if err = p.createNotifiers(cfg); err == nil {
		err = s.create()
	}
	if err == nil {
		err = errors.Join(s.prepare(ctx), p.recordConfiguration(ctx, deadletter.Service.Name, &cfg, nil))
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	s.firstRun(ctx)
	return s, nil
}

// create creates the components of a configuration. They do nothing yet, neither in the store nor
// at a broker.
func (s *Server) create() error {
	s.Registry = prometheus.NewRegistry()
	s.Registry.MustRegister(s.lasting, rabbitmq.Collector(s.links...))
	s.createSchemas()
	s.survey = survey.New(s.places())
	s.createRooms()
	s.createBackups()
	s.createPages()
	if s.cfg.AuditFile == "" {
		return nil
	}
	s.auditFile = &auditFile{
		path:  s.cfg.AuditFile,
		acts:  s.store.ActsAfter,
		mask:  s.masks.Header,
		log:   s.log,
		every: auditEvery,
	}
	if err := s.auditFile.open(); err != nil {
		return wrong("audit.file: %w", err)
	}
	return nil
}

// prepare reads from the store what the components need. If letters are to be read otherwise than
// before, it notes in the store that they have to be read again. Nothing else may read letters
// meanwhile.
func (s *Server) prepare(ctx context.Context) (err error) {
	if s.auditFile != nil { // what was copied until now is noted beside the file
		if err := s.auditFile.open(); err != nil {
			return wrong("audit.file: %w", err)
		}
	}
	if err := errors.Join(s.loadSchemas(ctx), s.usePicks(ctx), s.loadReached(ctx)); err != nil {
		return err
	}
	// encoding cannot fail for texts
	settings, _ := json.Marshal([]any{s.cfg.FailureHeaders, s.cfg.Schemas.TypeHeaders, s.cfg.Schemas.Bindings})
	s.regroups, err = s.store.Regroup(ctx, classify.GroupVersion, string(settings))
	return err
}

// firstRun logs a link for the first user, if dlo has users of its own and none of them has a
// password yet. If there can be no link, dlo starts nevertheless, because it has to take letters
// in.
func (s *Server) firstRun(ctx context.Context) {
	if s.accounts == nil {
		return
	}
	code, err := s.accounts.FirstRun(ctx)
	if err != nil {
		s.log.Warn(
			"dlo could not make a link for the first user: restart dlo to try again, or stop it and add a token for an admin to the store's file (dlo token add NAME --role admin --store FILE)",
			"store", s.cfg.Store, "err", err,
		)
		return
	}
	if code != "" {
		s.log.Warn(
			"nobody has a password yet: open the link, which works once and for 72 hours, to choose the password of "+
				identity.FirstUser,
			"link", web.WelcomeLink(cmp.Or(s.cfg.PublicURL, schemeOf(s.cfg)+s.Addr()+s.cfg.BasePath), code),
		)
	}
}

// Addr returns the first address on which the server listens. This is host:port, or the path of a
// socket after "unix:".
func (p *process) Addr() string {
	if path, ok := socketOf(p.current.Load().cfg.Listen); ok {
		return config.Unix + path
	}
	return p.listener.Addr().String()
}

// addresses returns the addresses of all listeners of pages and API.
func (p *process) addresses() []string {
	var list []string
	for _, l := range append([]net.Listener{p.listener}, p.further...) {
		list = append(list, l.Addr().String())
	}
	return list
}

// Close closes the store and the listeners of a server that was never run.
func (p *process) Close() error {
	var errs []error
	for _, l := range append([]net.Listener{p.listener, p.opsListener}, p.further...) {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(append(errs, p.store.Close())...)
}

// explainStore adds advice to the error of a store that cannot be opened.
func explainStore(err error, path string) error {
	if errors.Is(err, store.ErrLocked) {
		return refusedError{err, 4}
	}
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf(
			"%w. Letters wait in the broker. Restore %s, with its -wal file if there is one, from a copy; or move it away to begin with an empty store",
			err, path,
		)
	}
	return err
}

// createRooms creates the components that work in the background. It connects them with functions
// by which one component wakes another.
func (s *Server) createRooms() {
	cfg := s.cfg
	s.targets = &rules.Targets{}
	for i, b := range cfg.Brokers {
		s.targets.Add(
			b.Name, s.links[i].VHost(), b.RequeueTo,
			append(inboxesAt(cfg.Brokers, b.Place()), annotationsAt(cfg.Brokers, b.Place())...),
		)
		s.targets.Observe(b.Name, b.Observe)
	}
	s.trials = trial.New(s.store, s.trialBrokers(), nil, s.log)
	s.adoption = adopt.New(s.store, s.adoptions(), s.survey.LookAgain, s.crash, s.log)
	wake := func() {
		for _, d := range s.dispatch {
			d.Wake()
		}
	}
	s.classifier = classify.New(s.store, classify.Options{
		Decoder:   s.decoderOfVerdicts,
		Picks:     s.pickedNow,
		FirstName: s.store.FirstName,
		Mask:      s.masks.Header,
		Rules:     s.rules,
		Targets:   s.targets,
		Log:       s.log,
		Crash:     s.crash,
		Done:      func() { wake(); s.indexer.Wake() },
		Busy:      s.hasBacklog,
		Metrics:   s.counters.classify,
		Given:     s.configuredOrigin,
		Onward:    s.onward,
		Made:      s.trials.Made,
		Tried: func(l *deadletter.Letter) {
			s.trials.Arrived(l)
			s.adoption.Arrived(l)
		},
		FailureHeaders: cfg.FailureHeaders,
	})
	s.indexer = classify.NewIndexer(s.store, classify.IndexerOptions{
		Decoder: s.decoderOfVerdicts,
		Mask:    s.masks.Header,
		Hide:    s.masks.Text,
		Masks:   s.masks.Names(),
		Text:    cfg.Search.Text,
		Fields:  cfg.Search.Fields,
		Busy:    s.hasBacklog,
		Types:   s.classifier.Types(),
		Log:     s.log,
	})
	s.reader = classify.NewReader(s.store, s.classifier, s.reread)
	s.keeper = operation.NewKeeper(s.store, operation.Retention(cfg.Retention), nil, s.log)
	s.desk = operation.New(s.store, operation.Options{
		Targets: s.targets,
		Facts:   s.facts,
		Away:    s.whyAway,
		MaxBody: int(cfg.Requeue.MaxBody),
		Log:     s.log,
		Crash:   s.crash,
		Moved:   wake,
		Decider: s.classifier,
		Edit: func(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error) {
			return s.decoderNow().Revise(l, patch, reveal)
		},
	})
	for i, b := range cfg.Brokers {
		link := s.links[i]
		s.dispatch = append(s.dispatch, requeue.New(s.store, link, requeue.Options{
			Broker:   b.Name,
			InFlight: cfg.Requeue.InFlight,
			Rate:     cfg.Requeue.Rate,
			Watch:    cfg.Requeue.Watch,
			InDoubt:  requeue.InDoubt(cfg.Requeue.InDoubt),
			MaxBody:  int(cfg.Requeue.MaxBody),
			Targets:  s.targets,
			Log:      s.log,
			Crash:    s.crash,
			Metrics:  s.counters.requeue,
			Nack:     requeue.Nack(cfg.Requeue.Nack),
			VHost:    link.VHost(),
			Rules:    s.rules,
			Rates:    b.Rates,
			Breaker:  requeue.Breaker(cfg.Requeue.Breaker),
		}))
	}
	s.createIntake()
}

// cameBack tells the dispatchers which letters came back.
func (s *Server) cameBack(letters []deadletter.ID) {
	for _, d := range s.dispatch {
		d.CameBack(letters)
	}
}

// hasBacklog reports whether letters are waiting in the broker to be stored. Work that can wait
// should then pause.
func (s *Server) hasBacklog() bool {
	return slices.ContainsFunc(s.ingesters, (*ingest.Ingester).Busy) || s.Drains.Busy()
}

// facts asks the broker of an origin for the facts about the origin's queue.
func (s *Server) facts(ctx context.Context, o deadletter.Origin) deadletter.QueueFacts {
	for i, b := range s.cfg.Brokers {
		if b.Name == o.Broker {
			return s.links[i].Facts(ctx, o.Queue)
		}
	}
	return deadletter.UnknownQueue
}

// onward asks the broker of an origin about the queue in which a letter expired. The result says
// whether that queue only delays messages.
func (s *Server) onward(ctx context.Context, o deadletter.Origin, route deadletter.Route) deadletter.Onward {
	for i, b := range s.cfg.Brokers {
		if b.Name == o.Broker && s.links[i].VHost() == o.VHost {
			return s.links[i].Onward(ctx, o.Queue, o.RoutingKey, route)
		}
	}
	return deadletter.Onward{Why: "its broker is not in the configuration"}
}

// configuredOrigin returns the queue that the configuration names as the origin of all letters in
// an inbox. If it names none, configuredOrigin returns "".
func (s *Server) configuredOrigin(broker, vhost, inbox string) string {
	for i, b := range s.cfg.Brokers {
		if b.Name == broker && s.links[i].VHost() == vhost {
			return b.Origins[inbox]
		}
	}
	return ""
}
