package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web/view"
)

const week = 7 * 24 * time.Hour

// watchedQueues returns all queues that dlo found when it last read the vhosts. It also returns the
// queues in which letters died, which are in "states". The result is sorted by broker, vhost and
// name, and the queues of dlo itself come last.
func (w *Web) watchedQueues(ctx context.Context, states []deadletter.Queue) ([]view.WatchedQueue, error) {
	received, err := w.Store.ReceivedSince(ctx, w.Now().Add(-week))
	if err != nil {
		return nil, err
	}
	var all []view.WatchedQueue
	at := map[deadletter.Origin]int{}
	for _, r := range w.reports(ctx) {
		for i := range r.All {
			q := watchedOf(&r, &r.All[i])
			at[q.Origin] = len(all)
			all = append(all, q)
		}
	}
	for _, s := range states {
		i, ok := at[s.Origin]
		if !ok {
			i = len(all)
			all = append(all, view.WatchedQueue{
				Origin:    s.Origin,
				Gone:      w.lookSucceeded(ctx, s.Origin),
				Ready:     -1,
				Unacked:   -1,
				Consumers: -1,
				Published: -1,
			})
		}
		all[i].Dead, all[i].Scheduled = s.Dead, s.Scheduled
	}
	for i := range all {
		all[i].Week = received[all[i].Origin]
	}
	slices.SortStableFunc(all, func(a, b view.WatchedQueue) int {
		return cmp.Or(
			ownLast(a, b), cmp.Compare(a.Origin.Broker, b.Origin.Broker), cmp.Compare(a.Origin.VHost, b.Origin.VHost),
			cmp.Compare(a.Origin.Queue, b.Origin.Queue),
		)
	})
	return all, nil
}

// lookSucceeded reports whether dlo has read the vhost of a queue, and whether the latest reading
// lacks no part of the vhost.
func (w *Web) lookSucceeded(ctx context.Context, o deadletter.Origin) bool {
	return slices.ContainsFunc(w.reports(ctx), func(r topology.Report) bool {
		return r.Broker == o.Broker && r.VHost == o.VHost && !r.ReadAt.IsZero() && len(r.Gaps) == 0
	})
}

// watchedOf converts a queue in a report on dead-letter paths for the page of queues.
func watchedOf(r *topology.Report, d *topology.Described) view.WatchedQueue {
	q := view.WatchedQueue{
		Origin:    deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: d.Name},
		Kind:      d.Kind,
		Ready:     figure(d.Ready),
		Unacked:   figure(d.Unacked),
		Consumers: figure(d.Consumers),
		Published: d.Published,
		Acked:     d.Acked,
		Chain: view.Chain{
			Known:     d.Route.Known,
			Judged:    d.Route.Judged,
			Set:       d.Route.Set,
			Exchange:  d.Route.Exchange,
			From:      d.Route.From,
			Queues:    d.Route.Queues,
			More:      d.Route.More,
			Lost:      d.Route.Lost,
			Guarantee: d.Route.Guarantee,
		},
	}
	if d.Route.Fixed {
		q.Chain.Key = d.Route.Key
	}
	switch {
	case d.Inbox:
		q.Own = "inbox"
	case d.Own:
		q.Own = "a queue of dlo"
	}
	return q
}

// figure returns the number f, or -1 if the number is unknown.
func figure(f topology.Figure) int {
	if !f.Known {
		return -1
	}
	return int(f.N)
}

// addRules adds to each queue the rule that would apply to its rejected letters.
func (w *Web) addRules(shown []view.WatchedQueue) {
	for i := range shown {
		if q := &shown[i]; q.Own == "" {
			q.Rule, q.Observed = w.ruleOf(q.Origin), w.Observed(q.Origin)
		}
	}
}

// ruleOf returns the name of the rule that would apply if a consumer of the queue rejected a
// letter. It assumes nothing else about the letter.
func (w *Web) ruleOf(o deadletter.Origin) string {
	return w.Rules.Set().Decide(rules.Facts{
		Broker: o.Broker, VHost: o.VHost, Queue: o.Queue, Key: o.Queue, Reason: "rejected",
	}).Rule
}

// filtered returns one page of the queues that match a filter. The parameter "name" is a glob or a
// part of the name. The parameter "offset" is the number of queues on earlier pages.
func filtered(all []view.WatchedQueue, name, only, offset string) view.WatchedQueues {
	p := view.WatchedQueues{Filter: name, PageSize: queuesShown}
	if only == view.OnlyLosing || only == view.OnlyLetters {
		p.Only = only
	}
	kept := slices.DeleteFunc(all, func(q view.WatchedQueue) bool {
		switch {
		case p.Only == view.OnlyLosing && q.Chain.Lost == "", p.Only == view.OnlyLetters &&
			q.Week+q.Dead+q.Scheduled == 0:
			return true
		case strings.ContainsRune(name, '*'):
			return !deadletter.Glob(name, q.Origin.Queue, false)
		}
		return !strings.Contains(strings.ToLower(q.Origin.Queue), strings.ToLower(name))
	})
	p.Total = len(kept)
	if n, err := strconv.Atoi(offset); err == nil && n > 0 && n < len(kept) {
		p.From = n
	}
	p.Queues = kept[p.From:min(p.From+queuesShown, len(kept))]
	return p
}

// ownLast compares two queues for sorting. The queues of dlo itself come after the others.
func ownLast(a, b view.WatchedQueue) int { return min(1, len(a.Own)) - min(1, len(b.Own)) }
