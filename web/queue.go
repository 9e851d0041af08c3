package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web/view"
)

// These are the limits of the page about one queue.
const (
	queueGroups = 10
	queueActs   = 10
	queueBars   = 7 * 8 // each bar stands for three hours
)

// queue handles GET /queues/one?broker=&vhost=&queue=.
func (w *Web) queue(r *http.Request) (templ.Component, error) {
	asked := r.URL.Query()
	o := deadletter.Origin{Broker: asked.Get("broker"), VHost: asked.Get("vhost"), Queue: asked.Get("queue")}
	p := view.QueuePage{Shell: w.shell(r, "Queue "+deadletter.Visible(deadletter.Cut(o.Queue, 60)), view.SectionQueues)}
	if err := w.putQueue(r, &p, o); err != nil {
		return nil, err
	}
	w.putPath(r.Context(), &p, o)
	ctx, q := r.Context(), view.QueueQuery(o, true)
	var err error
	if p.Groups, _, err = w.groups(ctx, q, deadletter.GroupPage{
		Tab:   deadletter.TabAll,
		Limit: queueGroups + 1,
	}); err != nil {
		return nil, err
	}
	p.More = len(p.Groups) > queueGroups
	p.Groups = p.Groups[:min(len(p.Groups), queueGroups)]
	if p.Arrived, err = w.Store.Histogram(ctx, q, p.Now.Add(-week), p.Now, queueBars); err != nil {
		return nil, err
	}
	p.Letters = view.LettersURL(q.String(), "", "")
	p.Triage = view.TriageURL(view.TriageInbox, q.String(), "")
	past := query.Query{}.With(query.Target, o.Queue)
	acts, _, err := w.Store.Audit(ctx, past, "", queueActs)
	if err != nil {
		return nil, err
	}
	p.Past, p.Audit = each(w.hideActs(acts), auditRow), "/audit?"+url.Values{"q": {past.String()}}.Encode()
	return view.Queue(p), nil
}

// putQueue finds the queue o and adds its state to the page. The error wraps ErrNotFound if neither
// a broker nor the store knows the queue.
func (w *Web) putQueue(r *http.Request, p *view.QueuePage, o deadletter.Origin) error {
	states, err := w.queueStates(r.Context())
	if err != nil {
		return err
	}
	all, err := w.watchedQueues(r.Context(), states)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(q view.WatchedQueue) bool { return q.Origin == o })
	if i < 0 {
		return deadletter.NoSuch(
			"queue %s in vhost %s of broker %s", deadletter.Visible(o.Queue), deadletter.Visible(o.VHost),
			deadletter.Visible(o.Broker),
		)
	}
	w.addRules(all[i : i+1])
	p.Queue, p.Several = all[i], w.severalPlaces(r.Context(), all)
	p.Queue.State.Away = deadletter.Away(w.brokers(r.Context()), o)
	return nil
}

// putPath adds facts about the dead-letter path of a queue to the page: the problems that dlo found
// in it, and when dlo last read it.
func (w *Web) putPath(ctx context.Context, p *view.QueuePage, o deadletter.Origin) {
	for _, r := range w.reports(ctx) {
		if r.Broker != o.Broker || r.VHost != o.VHost {
			continue
		}
		p.Look = r
		for _, f := range r.Findings {
			if slices.Contains(f.Queues(), o.Queue) {
				one := w.faultOf(ctx, []topology.Finding{f.Only(o.Queue)})
				one.Queue = view.PlaceOf(o)
				p.Faults = append(p.Faults, one)
			}
		}
	}
}
