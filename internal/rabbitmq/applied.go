package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// live is the query with which a list of queues says which policy applies to each of them now, on
// brokers with and without statistics. Other answers are statistics: with RabbitMQ's defaults, they
// show a new policy after 4 s for a classic queue and 9 s for a quorum queue (3.10.8, 4.0.5,
// 4.3.6).
const live = "&disable_stats=true&enable_queue_totals=true"

const (
	policyReads = 3 // how often dlo reads the policies of a vhost to find out what applies
	// pause between these readings, in which the broker applies a policy that was just set
	policyPause = 500 * time.Millisecond
)

// applied asks which policies apply to the queues of a snapshot, and replaces what the statistics
// said. The parameter "query" can limit the request to some queues, which then are the queues of
// the snapshot. A policy may change between two requests, so applied asks again if the answers do
// not agree. If they still differ after that, the broker in fact applies something else than dlo
// computes.
func (m *Management) applied(ctx context.Context, vhost, query string, s *topology.Snapshot) error {
	for n := 1; ; n++ {
		items, _, err := m.allPages(ctx, vhost, live+query)
		if err != nil {
			return err
		}
		if query != "" {
			s.Queues, s.Gaps = nil, nil
			addQueues(items, map[string]bool{}, s)
		}
		now := map[string]topology.Queue{}
		for _, item := range items {
			var q topology.Queue
			if json.Unmarshal(item, &q) == nil {
				now[q.Name] = q
			}
		}
		differs := false
		for i := range s.Queues {
			q := &s.Queues[i]
			if is, ok := now[q.Name]; ok {
				q.Policy = is.Policy
				if q.Policy == nil {
					q.Policy = new(string)
				}
				if is.Effective != nil {
					q.Effective = is.Effective
				}
			}
			e := s.EffectOf(q)
			differs = differs || e.Difference() != ""
		}
		if !differs || n == policyReads {
			m.dropLate(vhost, s, now)
			return nil
		}
		if err := sleep(ctx, policyPause); err != nil {
			return err
		}
		for _, p := range policyParts(vhost, s) {
			if err := m.get(ctx, p.path, p.into); err != nil {
				return err
			}
		}
	}
}

// difference is what the broker reports about a queue and what dlo computes for it, in words.
type difference struct {
	text  string
	since time.Time
}

// dropLate removes the settings that the statistics report for a queue if they differ from its
// policies, unless they have differed in the same way for longer than statistics can be late. The
// parameter "now" has the queues as they are now, with their settings if the broker tells them.
func (m *Management) dropLate(vhost string, s *topology.Snapshot, now map[string]topology.Queue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.differs == nil {
		m.differs = map[string]difference{}
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		e, key := s.EffectOf(q), vhost+"/"+q.Name
		text := e.Difference()
		switch {
		case text == "":
			delete(m.differs, key)
			continue
		case m.differs[key].text != text:
			m.differs[key] = difference{text, time.Now()}
		}
		if time.Since(m.differs[key].since) < lag && now[q.Name].Effective == nil {
			q.Effective = nil
		}
	}
}

// late reports whether the statistics of a vhost differ from its policies, and may only be late.
func (m *Management) late() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.differs {
		if time.Since(d.since) < lag {
			return true
		}
	}
	return false
}

// settings returns how the broker treats some queues of a vhost now: the snapshot has those queues
// that exist, and all policies. The parameter "names" is a regular expression for their names.
func (m *Management) settings(ctx context.Context, vhost, names string) (*topology.Snapshot, error) {
	s, in := &topology.Snapshot{VHost: vhost}, url.PathEscape(vhost)
	for _, p := range policyParts(in, s) {
		if err := m.get(ctx, p.path, p.into); err != nil {
			return nil, err
		}
	}
	return s, m.applied(ctx, in, "&use_regex=true&name="+url.QueryEscape(names), s)
}

// effectOn returns how the broker treats a queue now.
func (m *Management) effectOn(ctx context.Context, vhost, queue string) (*topology.Effect, error) {
	if !canAsk(queue) {
		return nil, errNotAsked
	}
	s, err := m.settings(ctx, vhost, "^"+regexp.QuoteMeta(queue)+"$")
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(s.Queues, func(q topology.Queue) bool { return q.Name == queue })
	if at < 0 {
		return nil, errNoQueue
	}
	e := s.EffectOf(&s.Queues[at])
	return &e, nil
}

// awaitEffect asks like effectOn until the management API answers. It gives up after 15 s (lag), or
// earlier if the API does not respond at all, unless the parameter "patient" is true.
func (m *Management) awaitEffect(ctx context.Context, vhost, queue string, patient bool) (*topology.Effect, error) {
	for began := time.Now(); ; {
		e, err := m.effectOn(ctx, vhost, queue)
		if err == nil || errors.Is(err, errNotAsked) || time.Since(began) > lag || m.isResting() && !patient {
			return e, err
		}
		if err := sleep(ctx, lag/50); err != nil {
			return nil, err
		}
	}
}
