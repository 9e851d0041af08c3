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
			o := deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.All[i].Name}
			at[o] = len(all)
			all = append(all, view.WatchedQueue{Origin: o, Described: r.All[i]})
		}
	}
	for _, s := range states {
		i, ok := at[s.Origin]
		if !ok {
			i = len(all)
			all = append(all, view.WatchedQueue{
				Origin:    s.Origin,
				Described: topology.Described{Published: -1},
				Gone:      w.lookSucceeded(ctx, s.Origin),
			})
		}
		all[i].Dead, all[i].Scheduled = s.Dead, s.Scheduled
	}
	for i := range all {
		all[i].Week = received[all[i].Origin]
	}
	slices.SortStableFunc(all, func(a, b view.WatchedQueue) int {
		return cmp.Or(
			ownLast(a, b), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue),
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

// addRules adds to each queue the rule that would apply to its rejected letters.
func (w *Web) addRules(shown []view.WatchedQueue) {
	for i := range shown {
		if q := &shown[i]; !q.IsOwn() {
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
		case p.Only == view.OnlyLosing && q.Route.Lost == "", p.Only == view.OnlyLetters &&
			q.Week+q.Dead+q.Scheduled == 0:
			return true
		case strings.ContainsRune(name, '*'):
			return !deadletter.Glob(name, q.Queue, false)
		}
		return !strings.Contains(strings.ToLower(q.Queue), strings.ToLower(name))
	})
	p.Total = len(kept)
	if n, err := strconv.Atoi(offset); err == nil && n > 0 && n < len(kept) {
		p.From = n
	}
	p.Queues = kept[p.From:min(p.From+queuesShown, len(kept))]
	return p
}

// ownLast compares two queues for sorting. The queues of dlo itself come after the others.
func ownLast(a, b view.WatchedQueue) int {
	switch {
	case a.IsOwn() == b.IsOwn():
		return 0
	case a.IsOwn():
		return 1
	}
	return -1
}
