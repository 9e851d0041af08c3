package web

import (
	"context"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// retriesRunning is the state of retries that nothing keeps back.
const retriesRunning = "running"

type apiRetries struct {
	State string    `json:"state"` // running, or that of the guard
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // tripped: when the queue is probed
}

func apiRetriesOf(g deadletter.Guard) apiRetries {
	if g.State == "" {
		return apiRetries{State: retriesRunning}
	}
	return apiRetries{string(g.State), g.Why, g.By, utc(g.Since), utc(g.Until)}
}

type apiGroupPaused struct {
	Group string    `json:"group"`
	Title string    `json:"title"`
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

type apiQueue struct {
	Broker       string           `json:"broker"`
	VHost        string           `json:"vhost"`
	Queue        string           `json:"queue"`
	Scheduled    int              `json:"scheduled"`
	Dead         int              `json:"dead"`
	Held         int              `json:"held"`
	Depth        *int             `json:"depth"`     // null = unknown
	Consumers    *int             `json:"consumers"` // null = unknown
	Retries      apiRetries       `json:"retries"`
	GroupsPaused []apiGroupPaused `json:"groups_paused"`
}

type apiInbox struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Connected bool   `json:"connected"` // to its broker
	Draining  bool   `json:"draining"`
	Depth     *int   `json:"depth"` // null = unknown
	Note      string `json:"note"`  // why it is not drained, or what may go wrong with it
}

// known is a number that a broker said; nil where it said none.
func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// apiQueues is GET /queues: those that letters died in, with what keeps their retries back, and the inboxes.
func (w *Web) apiQueues(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	all, err := w.queueStates(r.Context())
	if err != nil {
		return nil, err
	}
	out := struct {
		Queues  []apiQueue `json:"queues"`
		Inboxes []apiInbox `json:"inboxes"`
	}{[]apiQueue{}, []apiInbox{}}
	inboxes, _ := w.askFacts(r.Context(), all)
	for _, q := range all {
		v := apiQueue{
			q.origin.Broker, q.origin.VHost, q.origin.Queue, q.counts[deadletter.StateScheduled], q.counts[deadletter.StateDead], q.counts[deadletter.StateHeld],
			known(q.facts.Ready), known(q.facts.Consumers), apiRetriesOf(q.guard),
			[]apiGroupPaused{},
		}
		for _, g := range q.groups {
			v.GroupsPaused = append(v.GroupsPaused, apiGroupPaused{g.Group.String(), g.Title, g.Why, g.By, utc(g.Since)})
		}
		out.Queues = append(out.Queues, v)
	}
	for _, i := range inboxes {
		note := i.inbox.Reason
		if note == "" && !i.broker.Connected {
			note = i.broker.Reason
		}
		out.Inboxes = append(out.Inboxes, apiInbox{i.broker.Name, i.broker.VHost, i.inbox.Queue, i.broker.Connected, i.inbox.Draining, known(i.facts.Ready), note})
	}
	return out, nil
}

// apiQueueRetries is how the retries of a queue stand after a call, and apiGroupRetries how those of a group do.
type apiQueueRetries struct {
	Broker  string     `json:"broker"`
	VHost   string     `json:"vhost"`
	Queue   string     `json:"queue"`
	Retries apiRetries `json:"retries"`
}

type apiGroupRetries struct {
	Group   string     `json:"group"`
	Retries apiRetries `json:"retries"`
}

type guarding = func(context.Context, deadletter.Principal, deadletter.Guard) error

// apiPauseQueue is POST /queues/pause {queue, broker, vhost, reason}, and apiResumeQueue POST /queues/resume. The broker may be left out where there is one only, and the vhost where the
// broker has one only.
func (w *Web) apiPauseQueue(r *http.Request) (any, error)  { return w.apiGuardQueue(r, w.pause) }
func (w *Web) apiResumeQueue(r *http.Request) (any, error) { return w.apiGuardQueue(r, w.resume) }

func (w *Web) apiGuardQueue(r *http.Request, do guarding) (any, error) {
	var in struct {
		Broker string `json:"broker"`
		VHost  string `json:"vhost"`
		Queue  string `json:"queue"`
		Reason string `json:"reason"`
	}
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	if err := w.place(&in.Broker, &in.VHost); err != nil {
		return nil, err
	}
	g := deadletter.Guard{Origin: deadletter.Origin{Broker: in.Broker, VHost: in.VHost, Queue: in.Queue}, Why: in.Reason}
	if err := do(r.Context(), principal(r), g); err != nil {
		return nil, err
	}
	now, err := w.guardOf(r.Context(), g)
	return apiQueueRetries{in.Broker, in.VHost, in.Queue, apiRetriesOf(now)}, err
}

// apiPauseGroup is POST /groups/{id}/pause {reason}, and apiResumeGroup POST /groups/{id}/resume.
func (w *Web) apiPauseGroup(r *http.Request) (any, error)  { return w.apiGuardGroup(r, w.pause) }
func (w *Web) apiResumeGroup(r *http.Request) (any, error) { return w.apiGuardGroup(r, w.resume) }

func (w *Web) apiGuardGroup(r *http.Request, do guarding) (any, error) {
	id, err := pathGroup(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		Reason string `json:"reason"`
	}
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	g := deadletter.Guard{Group: id, Why: in.Reason}
	if err := do(r.Context(), principal(r), g); err != nil {
		return nil, err
	}
	now, err := w.guardOf(r.Context(), g)
	return apiGroupRetries{id.String(), apiRetriesOf(now)}, err
}

// guardOf is what keeps the retries of a queue back now, or of a group; a guard without a state where nothing does.
func (w *Web) guardOf(ctx context.Context, of deadletter.Guard) (deadletter.Guard, error) {
	guards, err := w.guards(ctx)
	var now deadletter.Guard
	for _, g := range guards {
		if g.Group == of.Group && (of.Group != 0 || g.Origin == of.Origin) && now.State != deadletter.GuardPaused {
			now = g
		}
	}
	return now, err
}
