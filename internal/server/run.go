package server

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/web"
)

// room is a group of background loops. They run until the context of the room is done. The owner of
// the room then waits until all loops have ended.
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

// sendingStop is how long a stopping dlo waits for letters that are being sent. A broker under an
// alarm accepts nothing from publishers, possibly for hours. Letters that the broker has not
// accepted or confirmed in this time are sent again after the next start. If such a letter may have
// arrived, it may be held instead.
const sendingStop = 5 * time.Second

// rooms are the background loops of a server, by what they do.
type rooms struct{ reporting, reading, sending, acting, telling, draining, copying *room }

// startWork starts the components. Connections to brokers that are already open stay open.
func (s *Server) startWork() {
	var inboxes, dispatchers []func(context.Context) error
	for _, i := range s.ingesters {
		inboxes = append(inboxes, i.Run)
	}
	for _, d := range s.dispatch {
		dispatchers = append(dispatchers, d.Run)
	}
	for _, l := range s.links {
		if s.connected[l] == nil {
			s.connected[l] = start(l.Run)
		}
	}
	s.rooms = rooms{
		reporting: start(s.annotationLoops()...),
		reading:   start(s.classifier.Run, s.reader.Run, s.indexer.Run),
		sending:   start(dispatchers...),
		acting:    start(s.desk.Run, s.keeper.Run, s.library.Run),
		telling:   start(s.survey.Run, s.adoption.Run, s.findManagement, s.backups.Run),
		draining:  start(append(inboxes, s.Drains.Run, s.trials.Run)...),
	}
	if s.auditFile != nil {
		s.rooms.copying = start(s.auditFile.run)
	}
}

// stopWork stops the components in order. It starts no more actions, windows or claims, and waits
// for every transaction, ack and confirm that has begun.
func (s *Server) stopWork() {
	s.web.Drain()
	r := &s.rooms
	r.reporting.stop()
	r.draining.stop()
	open := maps.Clone(s.connected)
	cut := time.AfterFunc(sendingStop, func() {
		for _, connection := range open {
			connection.cancel()
		}
	})
	r.sending.stop()
	if !cut.Stop() {
		s.disconnectAllBut(nil)
	}
	r.reading.stop()
	r.acting.stop()
	r.telling.stop()
	if r.copying != nil {
		r.copying.stop() // stops after everything that acts, and before the store is closed
	}
}

// disconnectAllBut closes the connections to brokers that are not among the given ones.
func (p *process) disconnectAllBut(links []*rabbitmq.Link) {
	for l, connection := range p.connected {
		if !slices.Contains(links, l) {
			connection.stop()
			delete(p.connected, l)
		}
	}
}

// Run works until ctx is done, and then stops all components in order. A stop causes no duplicates
// while the broker responds.
func (s *Server) Run(ctx context.Context) error {
	p := s.process
	defer p.flushLog()
	p.changing.Lock()
	p.current.Load().startWork()
	p.running = true
	p.changing.Unlock()
	telling := start(p.digester.Run, p.notifier.Run, s.repeatAlerts, p.watched.Run, s.inPlace, s.noteProgress)
	acting := start(p.tender.Run, p.reloadOnSignal)
	pages, ops := s.web.Server(), s.web.Server()
	pages.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.webFor(r).ServeHTTP(rw, r)
	})
	ops.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.current.Load().probes.ServeHTTP(rw, r)
	})
	serving := make(chan error, 2+len(p.further))
	for _, l := range append([]net.Listener{p.listener}, p.further...) {
		go func() { serving <- pages.Serve(l) }()
	}
	if p.opsListener != nil {
		go func() { serving <- ops.Serve(p.opsListener) }()
		defer ops.Close()
	}
	p.log.Info(
		"dlo is ready", "version", p.version, "url", schemeOf(s.cfg)+p.Addr(), "store", absolutePath(p.store.Path()),
	)

	var failure error
	select {
	case <-ctx.Done():
	case failure = <-p.broken:
		// ends immediately: what was written since then is not reliable, and letters that are not
		// stored are still in the broker
		return failure
	case failure = <-serving:
	}
	p.log.Info("stopping")
	p.stopTaking()
	p.changing.Lock()
	p.running = false
	p.current.Load().stopWork()
	p.changing.Unlock()
	acting.stop()
	telling.stop()
	p.disconnectAllBut(nil)
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := pages.Shutdown(closing); err != nil {
		pages.Close()
	}
	return errors.Join(failure, p.store.Close())
}

// webFor returns the Web that serves a request. A request that changes something waits while dlo
// loads another configuration.
func (p *process) webFor(r *http.Request) *web.Web {
	for {
		w := p.current.Load().web
		if r.Method == http.MethodGet || r.Method == http.MethodHead || !w.Draining() || p.stopping.Err() != nil {
			return w
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
			return w
		}
	}
}

// end lets Run end with an error. The first error counts.
func (p *process) end(err error) {
	select {
	case p.broken <- err:
	default:
	}
}

// lookInPlace is the time between two checks that the file of the store is still in its place.
const lookInPlace = time.Second

// inPlace ends dlo if somebody replaces or moves the file of the store. If dlo continued, it would
// write to a file that nobody can find again.
func (s *Server) inPlace(ctx context.Context) error {
	for {
		if err := s.store.InPlace(); err != nil {
			s.end(err)
			return err
		}
		select {
		case <-time.After(lookInPlace):
		case <-ctx.Done():
			return nil
		}
	}
}

func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
