package web

import (
	"context"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// retriesRunning is the state of a queue or a group if nothing holds its retries back.
const retriesRunning = "running"

func apiRetriesOf(g deadletter.Guard) api.Retries {
	if g.State == "" {
		return api.Retries{State: retriesRunning}
	}
	return api.Retries{State: string(g.State), Why: g.Why, By: g.By, Since: api.At(g.Since), Until: api.At(g.Until)}
}

// knownNumber returns a number that a broker has reported. If the broker has not reported it, it
// returns nil.
func knownNumber(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// apiQueues handles GET /queues. It returns the inboxes, and the queues in which letters died. If
// the retries of a queue are held back, the response contains the reason.
func (w *Web) apiQueues(r *http.Request) (any, error) {
	all, err := w.queueStates(r.Context())
	if err != nil {
		return nil, err
	}
	out := api.Queues{Queues: []api.Queue{}, Inboxes: []api.Inbox{}}
	inboxes, _ := w.askFacts(r.Context(), all)
	for _, q := range all {
		v := api.Queue{
			Broker:    q.origin.Broker,
			VHost:     q.origin.VHost,
			Queue:     q.origin.Queue,
			Scheduled: q.counts[deadletter.StateScheduled],
			Dead:      q.counts[deadletter.StateDead],
			Held:      q.counts[deadletter.StateHeld],
			Depth:     knownNumber(q.facts.Ready),
			Consumers: knownNumber(q.facts.Consumers),
			Retries:   apiRetriesOf(q.guard),
			Away:      q.away,
			GroupsPaused: each(q.groups, func(g deadletter.Guard) api.GroupPaused {
				return api.GroupPaused{
					Group: g.Group.String(),
					Title: g.Title,
					State: string(g.State),
					Why:   g.Why,
					By:    g.By,
					Since: api.At(g.Since),
					Until: api.At(g.Until),
				}
			}),
		}
		out.Queues = append(out.Queues, v)
	}
	for _, i := range inboxes {
		note := i.inbox.Reason
		if note == "" && !i.broker.Connected {
			note = i.broker.Reason
		}
		out.Inboxes = append(out.Inboxes, api.Inbox{
			Broker:    i.broker.Name,
			VHost:     i.broker.VHost,
			Queue:     i.inbox.Queue,
			Connected: i.broker.Connected,
			Draining:  i.inbox.Draining,
			Depth:     knownNumber(i.facts.Ready),
			Note:      note,
		})
	}
	return out, nil
}

type guarding = func(context.Context, deadletter.Principal, deadletter.Guard) error

// apiPauseQueue handles POST /queues/pause {queue, broker, vhost, reason}. apiResumeQueue handles
// POST /queues/resume with the same fields. The broker may be missing if there is only one. The
// vhost may be missing if the broker has only one.
func (w *Web) apiPauseQueue(r *http.Request) (any, error)  { return w.apiGuardQueue(r, w.pause) }
func (w *Web) apiResumeQueue(r *http.Request) (any, error) { return w.apiGuardQueue(r, w.resume) }

func (w *Web) apiGuardQueue(r *http.Request, do guarding) (any, error) {
	var in api.QueueRequest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	if err := w.fillPlace(r.Context(), &in.Broker, &in.VHost); err != nil {
		return nil, err
	}
	g := deadletter.Guard{
		Origin: deadletter.Origin{Broker: in.Broker, VHost: in.VHost, Queue: in.Queue},
		Why:    in.Reason,
	}
	if err := do(r.Context(), principal(r), g); err != nil {
		return nil, err
	}
	now, err := w.guardOf(r.Context(), g)
	return api.QueueRetries{Broker: in.Broker, VHost: in.VHost, Queue: in.Queue, Retries: apiRetriesOf(now)}, err
}

// apiPauseGroup handles POST /groups/{id}/pause {reason}. apiResumeGroup handles POST
// /groups/{id}/resume.
func (w *Web) apiPauseGroup(r *http.Request) (any, error)  { return w.apiGuardGroup(r, w.pause) }
func (w *Web) apiResumeGroup(r *http.Request) (any, error) { return w.apiGuardGroup(r, w.resume) }

func (w *Web) apiGuardGroup(r *http.Request, do guarding) (any, error) {
	id, err := pathGroup(r)
	if err != nil {
		return nil, err
	}
	var in api.ReasonRequest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	g := deadletter.Guard{Group: id, Why: in.Reason}
	if err := do(r.Context(), principal(r), g); err != nil {
		return nil, err
	}
	now, err := w.guardOf(r.Context(), g)
	return api.GroupRetries{Group: id.String(), Retries: apiRetriesOf(now)}, err
}

// guardOf returns what holds back the retries of a queue or a group now. This is a pause by a
// person, or a breaker. If nothing holds them back, the state of the returned guard is empty.
func (w *Web) guardOf(ctx context.Context, wanted deadletter.Guard) (deadletter.Guard, error) {
	guards, err := w.guards(ctx)
	var now deadletter.Guard
	for _, g := range guards {
		if g.Group == wanted.Group && (wanted.Group != 0 || g.Origin == wanted.Origin) &&
			now.State != deadletter.GuardPaused {
			now = g
		}
	}
	return now, err
}
