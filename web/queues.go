package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	// the maximum number of queues that the management API is asked about for one page or call
	askedQueues = 100
	askedAtOnce = 4               // the maximum number of requests at the same time
	askedFor    = 2 * time.Second // the time limit for all requests of one page or call
	// the time limit for the requests of a page that is not about queues
	askedBriefly = 300 * time.Millisecond
	askedAgain   = 5 * time.Second // how long a result is used again; the management API updates its counts every 5 s
	queuesShown  = 30              // the maximum number of queues on one page
)

// depths asks brokers for facts about queues, on behalf of pages. It limits the number of requests,
// and it lets several readers share a result. Therefore a page does not hang if the management API
// is slow or if there are many readers.
type depths struct {
	mu    sync.Mutex
	known map[deadletter.Origin]depth
}

type depth struct {
	facts deadletter.QueueFacts
	at    time.Time
}

// factsOf returns the known facts about each queue. If no broker was asked about a queue, because
// there are too many, or if the request for its facts timed out, its facts are
// deadletter.UnknownQueue.
func (d *depths) factsOf(
	ctx context.Context, facts func(context.Context, deadletter.Origin) deadletter.QueueFacts,
	queues []deadletter.Origin, within time.Duration,
) []deadletter.QueueFacts {
	known := make([]deadletter.QueueFacts, len(queues))
	for i := range known {
		known[i] = deadletter.UnknownQueue
	}
	queues = queues[:min(len(queues), askedQueues)]
	d.mu.Lock() // a second reader waits here and then uses the results of the first
	defer d.mu.Unlock()
	now := time.Now()
	fresh := map[deadletter.Origin]depth{}
	for q, known := range d.known {
		if now.Sub(known.at) < askedAgain {
			fresh[q] = known
		}
	}
	var ask []deadletter.Origin
	for _, q := range queues {
		if _, ok := fresh[q]; !ok {
			ask = append(ask, q)
			fresh[q] = depth{deadletter.UnknownQueue, now}
		}
	}
	// Several readers share the answers of the brokers. Therefore the requests continue even if the
	// reader who caused them disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	type answer struct {
		queue deadletter.Origin
		facts deadletter.QueueFacts
	}
	next, answers := make(chan deadletter.Origin, len(ask)), make(chan answer, len(ask))
	for _, q := range ask {
		next <- q
	}
	close(next)
	for range askedAtOnce {
		go func() {
			for q := range next {
				if ctx.Err() == nil {
					answers <- answer{q, facts(ctx, q)}
				}
			}
		}()
	}
	for range ask {
		select {
		case a := <-answers:
			fresh[a.queue] = depth{a.facts, now}
		case <-ctx.Done():
		}
	}
	d.known = fresh
	for i, q := range queues {
		known[i] = fresh[q].facts
	}
	return known
}

// queueStates returns the queues in which letters died, and the queues with retries that are held
// back. The list is sorted by broker, vhost and name. It does not yet contain the facts that
// brokers report.
func (w *Web) queueStates(ctx context.Context) ([]deadletter.Queue, error) {
	counted, err := w.Store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	guards, err := w.guards(ctx)
	if err != nil {
		return nil, err
	}
	counted = slices.DeleteFunc(counted, isEmptyTrial)
	all := make([]deadletter.Queue, len(counted))
	at := map[deadletter.Origin]int{}
	for i, q := range counted {
		all[i], at[q.Origin] = unasked(q.Origin), i
		all[i].Scheduled = q.Counts[deadletter.StateScheduled]
		all[i].Dead = q.Counts[deadletter.StateDead]
		all[i].Held = q.Counts[deadletter.StateHeld]
	}
	for _, g := range guards {
		i, ok := at[g.Origin]
		if !ok { // the queue has no letters left, but its retries are still held back
			i = len(all)
			all, at[g.Origin] = append(all, unasked(g.Origin)), i
		}
		switch {
		case g.Group != 0: // the guard of a group; the guards set by people come first and are kept
			if last := len(all[i].Groups) - 1; last < 0 || all[i].Groups[last].Group != g.Group {
				all[i].Groups = append(all[i].Groups, g)
			}
		case all[i].Retries.State != deadletter.GuardPaused:
			// the pause by a person takes precedence over the circuit breaker
			all[i].Retries = g
		}
	}
	brokers := w.brokers(ctx)
	for i := range all {
		all[i].Away = deadletter.Away(brokers, all[i].Origin)
	}
	slices.SortStableFunc(all, func(a, b deadletter.Queue) int {
		return cmp.Or(
			cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue),
		)
	})
	return all, nil
}

// unasked returns a queue without letters, about which no broker was asked.
func unasked(o deadletter.Origin) deadletter.Queue {
	return deadletter.Queue{Origin: o, Depth: deadletter.UnknownAmount, Consumers: deadletter.UnknownAmount}
}

// isEmptyTrial reports whether lists should omit the queue q, because only dlo uses it for tests.
// One such queue is the temporary queue with which dlo tests a policy that it has set. The other is
// the queue of trial letters, unless a trial letter is left in it.
func isEmptyTrial(q deadletter.QueueCounts) bool {
	return deadletter.IsProbe(q.Origin.Queue) ||
		q.Origin.Queue == deadletter.TrialQueue &&
			q.Counts[deadletter.StateScheduled]+q.Counts[deadletter.StateDead]+q.Counts[deadletter.StateHeld] == 0
}

// askFacts asks the brokers for facts about all inboxes and the given queues. It returns the
// inboxes.
func (w *Web) askFacts(ctx context.Context, queues []deadletter.Queue) []deadletter.Inbox {
	var inboxes []deadletter.Inbox
	var ask []deadletter.Origin
	configured := map[deadletter.Origin]bool{}
	for _, b := range w.brokers(ctx) {
		configured[deadletter.Origin{Broker: b.Name, VHost: b.VHost}] = true
		for _, i := range b.Inboxes {
			o := deadletter.Origin{Broker: b.Name, VHost: b.VHost, Queue: i.Queue}
			inbox := deadletter.Inbox{Origin: o, Connected: b.Connected, Draining: i.Draining, Note: i.Reason}
			if !b.Connected {
				inbox.Why, inbox.Note = b.Reason, cmp.Or(i.Reason, b.Reason)
			}
			inboxes, ask = append(inboxes, inbox), append(ask, o)
		}
	}
	var asked []*deadletter.Queue
	for i, q := range queues {
		// A broker that is no longer configured, or that now has another vhost, must not be asked
		// about the queue. It would answer for a different queue.
		if configured[deadletter.Origin{Broker: q.Broker, VHost: q.VHost}] {
			ask, asked = append(ask, q.Origin), append(asked, &queues[i])
		}
	}
	for i, f := range w.depths.factsOf(ctx, w.Facts, ask, askedFor) {
		depth, gone := deadletter.Amount(f.Ready), f.Known && !f.Exists
		if i < len(inboxes) {
			inboxes[i].Depth, inboxes[i].Gone = depth, gone
			continue
		}
		q := asked[i-len(inboxes)]
		q.Depth, q.Consumers, q.Gone = depth, deadletter.Amount(f.Consumers), gone
	}
	return inboxes
}

// queues handles GET /queues?name=&only=&own=&from=.
func (w *Web) queues(r *http.Request) (templ.Component, error) {
	p, err := w.queuesPage(r)
	if err != nil {
		return nil, err
	}
	return view.Queues(p), nil
}

func (w *Web) queuesPage(r *http.Request) (view.QueuesPage, error) {
	p := view.QueuesPage{Shell: w.shell(r, "Queues", view.SectionQueues)}
	states, err := w.queueStates(r.Context())
	if err != nil {
		return p, err
	}
	all, err := w.watchedQueues(r.Context(), states)
	if err != nil {
		return p, err
	}
	p.Several = w.severalPlaces(r.Context(), all)
	p.Watched = filtered(all, r.URL.Query())
	w.addRules(p.Watched.Queues)
	w.addFaults(r.Context(), &p)
	return p, w.adoptedPolicies(r.Context(), &p)
}

// connection handles GET /connection.
func (w *Web) connection(r *http.Request) (templ.Component, error) {
	p := view.ConnectionPage{Shell: w.shell(r, "Connection", view.SectionQueues)}
	p.Inboxes = w.askFacts(r.Context(), nil)
	return view.Connection(p), nil
}

// queuesAgain shows the page of queues with the reason why a form of it was refused.
func (w *Web) queuesAgain(r *http.Request, err error) (templ.Component, error) {
	p, broken := w.queuesPage(r)
	p.Problem = sentence(err, statusOf(err))
	return view.Queues(p), broken
}

// GroupPath is the id of a group in the path of a request.
type GroupPath struct {
	ID string `path:"id"`
}

func (p GroupPath) group() (deadletter.GroupID, error) {
	return pathAs(p.ID, "group", deadletter.ParseGroupID)
}

// groupIn returns the path of a page.
func groupIn(r *http.Request) GroupPath { return GroupPath{chi.URLParam(r, "id")} }

// listQueues returns the queues that letters died in, with what keeps their retries back, and the
// inboxes. They are sorted by broker, vhost and name. Depth and consumers are what the management
// API of the broker says, a few seconds old, and null where they are unknown: it does not answer
// within 2 s, there is none, or the queue is none of the first 100 inboxes and queues of the
// answer.
func (w *Web) listQueues(ctx context.Context, _ *struct{}) (*reply[api.Queues], error) {
	all, err := w.queueStates(ctx)
	if err != nil {
		return nil, err
	}
	inboxes := w.askFacts(ctx, all)
	return &reply[api.Queues]{api.Queues{Queues: all, Inboxes: inboxes}}, nil
}
