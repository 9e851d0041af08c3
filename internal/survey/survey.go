// Package survey reads the dead-letter paths of the configured vhosts at regular intervals, and
// keeps the latest findings.
package survey

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Every is the time after which dlo reads a vhost again. dlo does not read the management API more
// often, because a report on thousands of queues is work for the broker.
const Every = 30 * time.Second

// Place is a vhost whose dead-letter paths a Survey checks.
type Place struct {
	Broker   string
	VHost    string
	Inboxes  []string
	Exchange string // the exchange to which planned policies route dead letters; "" = the configuration has none
	Intents  []topology.IntentOf
	// IdleAfter is how long a queue may be without a consumer before dlo reports a finding. 0 = 15
	// minutes.
	IdleAfter time.Duration
	// Ready waits until dlo has declared its own exchange and queues in this vhost. If Ready is nil,
	// they already exist.
	Ready func(ctx context.Context) error
	// Look reads a snapshot of the vhost.
	Look func(ctx context.Context) (topology.Snapshot, error)
	// Applied returns the policies that dlo has set in this vhost. If Applied is nil, there are none.
	Applied func(ctx context.Context) ([]topology.Planned, error)
}

// Survey reads the queues, exchanges and policies of vhosts, and looks for faults that lose dead
// letters. Its methods are safe for concurrent use.
type Survey struct {
	places  []Place
	every   time.Duration
	again   []chan struct{} // for each place, a channel that receives requests to read the vhost immediately
	mu      sync.Mutex
	began   []time.Time     // for each place: when dlo last began to read the vhost
	looked  []time.Time     // for each place: when the latest reading that has ended began; it may have failed
	changed []time.Time     // for each place: when LookAgain was last called
	ended   []chan struct{} // for each place: closed when dlo has next read the vhost, or has failed to
	reports []topology.Report
	read    []*topology.Snapshot   // the latest snapshot of each place; nil = there is none yet
	idle    []map[string]time.Time // for each place, the times since which its queues have had no consumer
}

// New returns a Survey that checks the given vhosts.
func New(places []Place) *Survey {
	s := &Survey{
		places:  places,
		every:   Every,
		reports: make([]topology.Report, len(places)),
		began:   make([]time.Time, len(places)),
		looked:  make([]time.Time, len(places)),
		changed: make([]time.Time, len(places)),
		read:    make([]*topology.Snapshot, len(places)),
		idle:    make([]map[string]time.Time, len(places)),
	}
	for i, p := range places {
		s.again, s.ended = append(s.again, make(chan struct{}, 1)), append(s.ended, make(chan struct{}))
		s.reports[i] = topology.Report{
			Broker:       p.Broker,
			VHost:        p.VHost,
			Failed:       "dlo has not looked yet",
			UnknownSince: time.Now(),
		}
	}
	return s
}

// Run reads all vhosts at regular intervals, until ctx ends. A broker that responds slowly does not
// delay the others.
func (s *Survey) Run(ctx context.Context) error {
	var places sync.WaitGroup
	for i := range s.places {
		places.Go(func() { s.watch(ctx, i) })
	}
	places.Wait()
	return ctx.Err()
}

// watch reads one vhost again and again until ctx ends. Before the first reading, it waits until
// dlo's own exchange exists, because it would otherwise report that the exchange is missing. It
// waits for the exchange at most as long as the time between two readings.
func (s *Survey) watch(ctx context.Context, i int) {
	if ready := s.places[i].Ready; ready != nil {
		patience, cancel := context.WithTimeout(ctx, s.every)
		_ = ready(patience) // continue in any case: the management API may respond although the AMQP connection is down
		cancel()
	}
	for ctx.Err() == nil {
		s.mu.Lock()
		select {
		case <-s.again[i]: // the reading that follows answers the request
		default:
		}
		s.began[i] = time.Now()
		s.mu.Unlock()
		s.lookAt(ctx, i)
		s.mu.Lock()
		s.looked[i] = s.began[i]
		close(s.ended[i])
		s.ended[i] = make(chan struct{})
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(s.every):
		case <-s.again[i]:
		}
	}
}

// LookAgain requests that dlo read a vhost immediately, because dlo has changed the vhost or has
// seen a change.
func (s *Survey) LookAgain(broker, vhost string) {
	for i, p := range s.places {
		if p.Broker == broker && p.VHost == vhost {
			s.mu.Lock()
			s.changed[i] = time.Now()
			s.mu.Unlock()
			s.request(i)
		}
	}
}

// request asks the goroutine that reads a vhost to read it immediately.
func (s *Survey) request(i int) {
	select {
	case s.again[i] <- struct{}{}:
	default: // an earlier request is still waiting
	}
}

// These are the time limits of the method Refresh, which reads vhosts again.
const (
	newEnough   = 5 * time.Second  // a vhost that dlo began to read within this time is not read again
	refreshWait = 10 * time.Second // maximum time that Refresh waits for the reading of all vhosts
)

// Refresh reads vhosts again and waits until they have been read. An empty broker means all
// brokers, and an empty vhost means all vhosts.
//
// Refresh does not read a vhost again if it was read shortly before. However, the earlier reading
// must have begun after the latest call of LookAgain. Otherwise a plan could repeat keys that a
// policy no longer has, and somebody may copy that plan.
func (s *Survey) Refresh(ctx context.Context, broker, vhost string) {
	ctx, cancel := context.WithTimeout(ctx, refreshWait)
	defer cancel()
	enough := time.Now().Add(-newEnough)
	var places sync.WaitGroup
	for i, p := range s.places {
		if (broker == "" || broker == p.Broker) && (vhost == "" || vhost == p.VHost) {
			places.Go(func() { s.refresh(ctx, i, enough) })
		}
	}
	places.Wait()
}

// refresh waits until a vhost has been read. A reading does not count if it began too early: before
// the time in the parameter "enough", or before dlo last changed the vhost.
func (s *Survey) refresh(ctx context.Context, i int, enough time.Time) {
	for ctx.Err() == nil {
		s.mu.Lock()
		ended, need := s.ended[i], enough
		if s.changed[i].After(need) {
			need = s.changed[i]
		}
		done, underway := !s.looked[i].Before(need), !s.began[i].Before(need)
		if !done && !underway { // with the lock, so that no reading begins in between, which would answer the request
			s.request(i)
		}
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

// lookAt reads one vhost. If it cannot read the vhost, the report keeps the findings of the last
// reading that succeeded.
func (s *Survey) lookAt(ctx context.Context, i int) {
	p := s.places[i]
	snapshot, err := p.Look(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.mu.Lock()
		r := &s.reports[i]
		r.Failed, r.UnknownSince = err.Error(), cmp.Or(r.UnknownSince, r.ReadAt)
		s.mu.Unlock()
		return
	}
	snapshot.AverageRates(s.read[i])
	idle := idleSince(s.idle[i], &snapshot)
	s.idle[i] = idle
	o := topology.Options{Inboxes: p.Inboxes, Idle: idle, IdleAfter: p.IdleAfter, Intents: p.Intents}
	if p.Applied != nil {
		if o.Applied, err = p.Applied(ctx); err != nil {
			snapshot.Gaps = append(snapshot.Gaps, topology.Gap{What: "policies that dlo has set", Why: err.Error()})
		}
	}
	report := topology.ReportOn(&snapshot, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := &s.reports[i]
	if isIncomplete(&snapshot) {
		report.Findings = keepUnchecked(report.Findings, before.Findings, &snapshot)
		report.UnknownSince = cmp.Or(before.UnknownSince, before.ReadAt)
	}
	keepFirstTimes(report.Findings, before.Findings, snapshot.ReadAt)
	s.reports[i], s.read[i] = report, &snapshot
}

// Reports returns the latest report on each vhost, in the order of the configuration.
func (s *Survey) Reports() []topology.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reports)
}

// Plan plans policies that route dead letters to the configured exchange. It uses what was last
// read of each vhost. The error wraps ErrNotFound if the Survey has no such vhost. It wraps
// ErrUnavailable if a vhost has not been read yet, or is read without a management API.
func (s *Survey) Plan(w topology.Wish) ([]topology.Plan, error) {
	s.mu.Lock() // for the whole plan, because the patterns of a snapshot are evaluated by one at a time
	defer s.mu.Unlock()
	places, read, found, err := s.chosenPlaces(w)
	if err != nil {
		return nil, err
	}
	var plans []topology.Plan
	for i, globs := range topology.GlobsFor(read, w.Queues) {
		var queues []string
		if len(globs) > 0 || len(w.Queues) == 0 {
			queues = topology.Choose(read[i], found[i], globs, w.AtLeastOnce)
		}
		plans = append(plans, topology.MakePlan(read[i], topology.Want{
			Queues:        queues,
			Exchange:      places[i].Exchange,
			AtLeastOnce:   w.AtLeastOnce,
			BrokerRetries: w.BrokerRetries,
			Intents:       places[i].Intents,
		}))
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf(
			"%w: dlo looks at no vhost %s of a broker %s: it is not in the configuration, or has no management URL there",
			deadletter.ErrNotFound, deadletter.Visible(w.VHost), deadletter.Visible(w.Broker),
		)
	}
	return plans, nil
}

// chosenPlaces returns the vhosts for which a caller wants a plan. For each of them, it also
// returns the latest snapshot and the findings. The caller holds the lock.
func (s *Survey) chosenPlaces(
	w topology.Wish,
) (places []Place, read []*topology.Snapshot, found [][]topology.Finding, err error) {
	for i, p := range s.places {
		if w.Broker != "" && w.Broker != p.Broker || w.VHost != "" && w.VHost != p.VHost {
			continue
		}
		if s.read[i] == nil {
			return nil, nil, nil, fmt.Errorf(
				"%w: broker %s, vhost %s: %s", deadletter.ErrUnavailable, p.Broker, deadletter.Visible(p.VHost),
				s.reports[i].Failed,
			)
		}
		if s.read[i].Passive {
			return nil, nil, nil, fmt.Errorf(
				"%w: dlo can plan nothing at broker %s, because the configuration has no management URL for it",
				deadletter.ErrUnavailable, p.Broker,
			)
		}
		places, read, found = append(places, p), append(read, s.read[i]), append(found, s.reports[i].Findings)
	}
	return places, read, found, nil
}

// isIncomplete reports whether a part of a vhost could not be read. If there is no management API,
// dlo reads only queues. In that case, isIncomplete returns true only if a queue could not be read.
func isIncomplete(s *topology.Snapshot) bool {
	return len(s.Gaps) > 0 && !s.Passive || queuesUnread(s)
}

// queuesUnread reports whether the snapshot may lack queues because they could not be read.
func queuesUnread(s *topology.Snapshot) bool {
	return slices.ContainsFunc(s.Gaps, func(g topology.Gap) bool {
		return g.What == topology.PartQueues || strings.HasPrefix(g.What, "queue ")
	})
}

// idleSince returns, for each queue without a consumer, since when it has had none. The parameter
// "previous" holds these times from the last time that the vhost was read. If the broker does not
// report the consumers of a queue, or if the queue could not be read, the queue keeps its time.
func idleSince(previous map[string]time.Time, s *topology.Snapshot) map[string]time.Time {
	after := map[string]time.Time{}
	if queuesUnread(s) {
		maps.Copy(after, previous)
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		delete(after, q.Name)
		if q.Consumers.N > 0 {
			continue
		}
		if at, ok := previous[q.Name]; ok {
			after[q.Name] = at
		} else if q.Consumers.Known {
			after[q.Name] = s.ReadAt
		}
	}
	return after
}

// keepUnchecked is used if dlo could not read a part of the vhost. To the new findings, it adds the
// earlier findings that dlo could not check again. If they were dropped, a fault would seem to be
// fixed while a part of the management API does not respond.
func keepUnchecked(found, before []topology.Finding, s *topology.Snapshot) []topology.Finding {
	for _, old := range before {
		if slices.ContainsFunc(
			found, func(f topology.Finding) bool { return f.Kind == old.Kind && slices.Contains(about(f), old.Queue) },
		) {
			continue
		}
		left := slices.DeleteFunc(old.Queues(), func(queue string) bool {
			read := slices.ContainsFunc(s.Queues, func(q topology.Queue) bool { return q.Name == queue })
			if s.Passive {
				return read // a passive look of a queue reads everything that the findings about that queue need
			}
			return !read && !queuesUnread(s) // the queue is gone
		})
		switch {
		case len(left) == len(old.Queues()):
			found = append(found, old)
		case len(left) > 0:
			found = append(found, old.Only(left...))
		}
	}
	return found
}

// keepFirstTimes sets the time at which each finding was first found. If dlo also found it for one
// of its queues when it read the vhost before, the finding keeps its time.
func keepFirstTimes(found, before []topology.Finding, now time.Time) {
	type key struct {
		kind  topology.Kind
		queue string
	}
	first := map[key]time.Time{}
	for _, f := range before {
		for _, queue := range about(f) {
			first[key{f.Kind, queue}] = f.Since
		}
	}
	for i := range found {
		f := &found[i]
		if !f.Since.IsZero() {
			continue
		}
		f.Since = now
		for _, queue := range about(*f) {
			if at, ok := first[key{f.Kind, queue}]; ok && at.Before(f.Since) {
				f.Since = at
			}
		}
	}
}

// about returns the queues of a finding. The name of a queue is "" if there is none.
func about(f topology.Finding) []string { return append([]string{f.Queue}, f.More...) }
