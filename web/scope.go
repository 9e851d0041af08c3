package web

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// The store shows each caller only what is within the caller's scope. The scope consists of the
// queues that the caller may see. This file limits facts that are not in the store to the same
// scope: connections, problems, and what dlo last read about the dead-letter paths.

// brokers returns the state of the connections within the caller's scope. If the caller may see
// only some queues, it omits the permissions and the inboxes, because they concern the letters of
// everybody.
func (w *Web) brokers(ctx context.Context) []deadletter.BrokerStatus {
	all, scope := w.Brokers(), deadletter.ScopeOf(ctx)
	if scope.Everywhere() {
		return all
	}
	all = slices.DeleteFunc(
		slices.Clone(all), func(b deadletter.BrokerStatus) bool { return !scope.Touches(b.Name, b.VHost) },
	)
	for i := range all {
		all[i].Rights, all[i].Inboxes = nil, nil
	}
	return all
}

// problems returns the problems that currently prevent dlo or its brokers from working. If the
// caller may see only some queues, it returns only the connections that are down within the scope,
// because other problems can name any queue.
func (w *Web) problems(ctx context.Context) []deadletter.Problem {
	var list []deadletter.Problem
	whole := deadletter.ScopeOf(ctx).Everywhere()
	for _, b := range w.brokers(ctx) {
		for _, p := range b.Problems() {
			if whole || p.Kind == deadletter.ProblemBrokerAway {
				list = append(list, p)
			}
		}
	}
	if whole {
		list = append(list, w.Problems()...)
	}
	return list
}

// reports returns what dlo last found out about the dead-letter paths. It contains only the queues
// that the caller may see and the queues of dlo itself.
func (w *Web) reports(ctx context.Context) []topology.Report {
	all, scope := w.Topology.Reports(), deadletter.ScopeOf(ctx)
	if scope.Everywhere() {
		return all
	}
	all = slices.DeleteFunc(
		slices.Clone(all), func(r topology.Report) bool { return !scope.Touches(r.Broker, r.VHost) },
	)
	for i := range all {
		r := &all[i]
		outside := func(queue string) bool {
			return queue == "" || !scope.Includes(deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: queue})
		}
		hidden := func(queue string) bool { return outside(queue) && !deadletter.OwnQueue(queue) }
		r.All = slices.DeleteFunc(slices.Clone(r.All), func(d topology.Described) bool { return outside(d.Name) })
		for i := range r.All {
			way := &r.All[i].Route
			all := len(way.Queues)
			way.Queues = slices.DeleteFunc(slices.Clone(way.Queues), hidden)
			way.More += all - len(way.Queues)
			if way.Exchange == "" && hidden(way.Key) { // the default exchange delivers to the queue that the key names
				way.Key = ""
			}
		}
		var found []topology.Finding
		for _, f := range r.Findings {
			queues := f.Queues()
			visible := slices.DeleteFunc(slices.Clone(queues), outside)
			if len(visible) == 0 {
				continue
			}
			if len(visible) < len(queues) {
				f = f.Only(visible...)
			}
			if slices.ContainsFunc(f.Others, hidden) {
				f = f.Apart()
			}
			found = append(found, f)
		}
		r.Findings = found
		r.Queues, r.Gaps = len(r.All), nil
	}
	return all
}
