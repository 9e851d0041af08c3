// Package survey looks at the dead-letter paths of the configured vhosts from time to time, and
// keeps the latest findings.
package survey

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// Every is the interval between two looks at a vhost. The management API is never asked more often,
// because reading thousands of queues costs the broker some work.
const Every = 30 * time.Second

// Place is a vhost to look at.
type Place struct {
	Broker  string
	VHost   string
	Inboxes []string
	// Look reads a snapshot of the vhost.
	Look func(ctx context.Context) (topology.Snapshot, error)
}

// Survey looks at vhosts. Its methods are safe for concurrent use.
type Survey struct {
	places  []Place
	every   time.Duration
	mu      sync.Mutex
	reports []topology.Report
	idle    []map[string]time.Time // for each place: since when a queue has had no consumer
}

// New returns a survey of places.
func New(places []Place) *Survey {
	s := &Survey{places: places, every: Every, reports: make([]topology.Report, len(places)), idle: make([]map[string]time.Time, len(places))}
	for i, p := range places {
		s.reports[i] = topology.Report{Broker: p.Broker, VHost: p.VHost, Failed: "dlo has not looked yet"}
	}
	return s
}

// Run looks at all places until ctx ends.
func (s *Survey) Run(ctx context.Context) error {
	for {
		for i := range s.places {
			s.look(ctx, i)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.every):
		}
	}
}

// look reads one place. After a failure, the findings of the last success stay.
func (s *Survey) look(ctx context.Context, i int) {
	p := s.places[i]
	snapshot, err := p.Look(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.mu.Lock()
		s.reports[i].Failed = err.Error()
		s.mu.Unlock()
		return
	}
	idle := idleSince(s.idle[i], &snapshot)
	s.idle[i] = idle
	report := topology.ReportOn(&snapshot, topology.Options{Inboxes: p.Inboxes, Idle: idle})
	s.mu.Lock()
	defer s.mu.Unlock()
	since(report.Findings, s.reports[i].Findings, snapshot.ReadAt)
	s.reports[i] = report
}

// Reports returns the latest result for each place, in the order of the configuration.
func (s *Survey) Reports() []topology.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reports)
}

// idleSince updates since when queues have had no consumer. A queue whose consumers the broker does
// not report keeps its time.
func idleSince(before map[string]time.Time, s *topology.Snapshot) map[string]time.Time {
	after := map[string]time.Time{}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Consumers.N > 0 {
			continue
		}
		if at, ok := before[q.Name]; ok {
			after[q.Name] = at
		} else if q.Consumers.Known {
			after[q.Name] = s.ReadAt
		}
	}
	return after
}

// since gives findings that were there before their first time.
func since(found, before []topology.Finding, now time.Time) {
	type key struct {
		kind  topology.Kind
		queue string
	}
	first := map[key]time.Time{}
	for _, f := range before {
		first[key{f.Kind, f.Queue}] = f.Since
	}
	for i := range found {
		f := &found[i]
		switch at, ok := first[key{f.Kind, f.Queue}]; {
		case !f.Since.IsZero():
		case ok:
			f.Since = at
		default:
			f.Since = now
		}
	}
}
