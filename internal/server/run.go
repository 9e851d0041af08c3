package server

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"
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

// Run works until ctx is done, and then stops all components in order. It starts no more actions,
// windows or claims, and waits for every transaction, ack and confirm that has begun. A stop
// therefore causes no duplicates while the broker responds.
func (s *Server) Run(ctx context.Context) error {
	defer s.flushLog()
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
	reporting := start(s.annotationLoops()...)
	reading := start(s.classifier.Run, s.reader.Run, s.indexer.Run)
	sending := start(dispatchers...)
	acting := start(s.desk.Run, s.keeper.Run, s.tender.Run, s.library.Run, s.reloadOnSignal)
	telling := start(
		s.digester.Run, s.notifier.Run, s.repeatAlerts, s.watched.Run, s.inPlace, s.noteProgress, s.survey.Run,
		s.adoption.Run, s.findManagement, s.backups.Run,
	)
	var copying *room
	if s.auditFile != nil {
		copying = start(s.auditFile.run)
	}
	draining := start(append(inboxes, s.Drains.Run, s.trials.Run)...)
	serving := make(chan error, 2+len(s.further))
	for _, l := range append([]net.Listener{s.listener}, s.further...) {
		go func() { serving <- s.http.Serve(l) }()
	}
	if s.opsListener != nil {
		go func() { serving <- s.ops.Serve(s.opsListener) }()
		defer s.ops.Close()
	}
	s.log.Info(
		"dlo is ready", "version", s.version, "url", schemeOf(s.cfg)+s.Addr(), "store", absolutePath(s.store.Path()),
	)

	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.broken:
		// ends immediately: what was written since then is not reliable, and letters that are not
		// stored are still in the broker
		return failure
	case failure = <-serving:
	}
	s.log.Info("stopping")
	s.stopTaking()
	s.web.Drain()
	reporting.stop()
	draining.stop()
	cut := time.AfterFunc(sendingStop, publishing.cancel)
	sending.stop()
	cut.Stop()
	reading.stop()
	acting.stop()
	telling.stop()
	publishing.stop()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.http.Shutdown(closing); err != nil {
		s.http.Close()
	}
	if copying != nil {
		copying.stop() // stops after everything that acts, and before the store is closed
	}
	return errors.Join(failure, s.store.Close())
}

// lookInPlace is the time between two checks that the file of the store is still in its place.
const lookInPlace = time.Second

// inPlace ends dlo if somebody replaces or moves the file of the store. If dlo continued, it would
// write to a file that nobody can find again.
func (s *Server) inPlace(ctx context.Context) error {
	for {
		if err := s.store.InPlace(); err != nil {
			select {
			case s.broken <- err:
			default:
			}
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
