package web

import (
	"cmp"
	"context"
	"net/url"
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
// queues in which letters died, which are in "states". The most urgent queues come first. Queues of
// equal urgency are sorted by broker, vhost and name.
func (w *Web) watchedQueues(ctx context.Context, states []deadletter.Queue) ([]view.WatchedQueue, error) {
	received, err := w.Store.ReceivedSince(ctx, w.Now().Add(-week))
	if err != nil {
		return nil, err
	}
	var all []view.WatchedQueue
	at, read, faulty := map[deadletter.Origin]int{}, map[[2]string]bool{}, map[deadletter.Origin]bool{}
	for _, r := range w.reports(ctx) {
		read[[2]string{r.Broker, r.VHost}] = !r.ReadAt.IsZero() && len(r.Gaps) == 0
		for i := range r.All {
			o := deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.All[i].Name}
			at[o] = len(all)
			all = append(all, view.WatchedQueue{Origin: o, Described: r.All[i]})
		}
		for _, f := range r.Findings {
			for _, queue := range f.Queues() {
				o := deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: queue}
				faulty[o] = faulty[o] || f.Severity != deadletter.SeverityDigest
			}
		}
	}
	for _, s := range states {
		i, ok := at[s.Origin]
		if !ok {
			i = len(all)
			all = append(all, view.WatchedQueue{
				Origin:    s.Origin,
				Described: topology.Described{Published: -1},
				Gone:      read[[2]string{s.Broker, s.VHost}],
			})
		}
		all[i].State = s
	}
	for i := range all {
		all[i].Week = received[all[i].Origin]
	}
	slices.SortStableFunc(all, func(a, b view.WatchedQueue) int {
		return cmp.Or(
			cmp.Compare(urgency(b, faulty[b.Origin]), urgency(a, faulty[a.Origin])), cmp.Compare(a.Broker, b.Broker),
			cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue),
		)
	})
	return all, nil
}

// urgency returns a rank by which queues are sorted, so that the queues that need a person come
// first: queues whose retries are held back, queues of which only some groups are held back, queues
// with dead or held letters, and queues with faults or with messages that nobody consumes. The
// queues of dlo itself come last.
func urgency(q view.WatchedQueue, faulty bool) int {
	switch {
	case q.State.Retries.State != "":
		return 4
	case len(q.State.Groups) > 0:
		return 3
	case q.State.Dead+q.State.Held > 0:
		return 2
	case q.IsOwn():
		return -1
	case faulty || q.Ready.N > 0 && q.Consumers.Known && q.Consumers.N == 0:
		return 1
	}
	return 0
}

// severalPlaces reports whether queues are in several vhosts or on several brokers, so that the
// name of a queue alone is ambiguous.
func (w *Web) severalPlaces(ctx context.Context, all []view.WatchedQueue) bool {
	places := map[[2]string]bool{}
	for _, q := range all {
		places[[2]string{q.Broker, q.VHost}] = true
	}
	for _, b := range w.brokers(ctx) {
		places[[2]string{b.Name, b.VHost}] = true
	}
	return len(places) > 1
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

// filtered returns the page of queues that a request asks for. The parameter "name" is a glob or a
// part of the name, and "from" is the number of queues on earlier pages. Queues of dlo itself are
// listed if "own" is 1, or if letters died in them.
func filtered(all []view.WatchedQueue, asked url.Values) view.WatchedQueues {
	p := view.WatchedQueues{
		Filter:   deadletter.Cut(strings.TrimSpace(asked.Get("name")), deadletter.MaxQueueName),
		PageSize: queuesShown,
		ShowOwn:  asked.Get("own") == "1",
	}
	if only := asked.Get("only"); only == view.OnlyLosing || only == view.OnlyLetters {
		p.Only = only
	}
	matches := func(name string) bool {
		if strings.ContainsRune(p.Filter, '*') {
			return deadletter.Glob(p.Filter, name, false)
		}
		return strings.Contains(strings.ToLower(name), strings.ToLower(p.Filter))
	}
	kept := slices.DeleteFunc(all, func(q view.WatchedQueue) bool {
		switch {
		case !matches(q.Queue), p.Only == view.OnlyLosing && q.Route.Lost == "",
			p.Only == view.OnlyLetters && q.Week+q.State.Dead+q.State.Held+q.State.Scheduled == 0:
			return true
		case q.IsOwn() && q.State.Queue == "":
			p.Own++
			return !p.ShowOwn
		}
		return false
	})
	p.Total = len(kept)
	if n, err := strconv.Atoi(asked.Get("from")); err == nil && n > 0 && n < len(kept) {
		p.From = n
	}
	p.Queues = kept[p.From:min(p.From+queuesShown, len(kept))]
	return p
}
