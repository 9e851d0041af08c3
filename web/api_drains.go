package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Drainer takes letters out of queues that are no inboxes, once and by request.
type Drainer interface {
	// Start begins, and goes on without the caller. The error wraps ErrForbidden, ErrInvalid,
	// ErrNotFound, ErrConflict or ErrUnavailable.
	Start(ctx context.Context, by deadletter.Principal, r deadletter.DrainRequest) (deadletter.Drain, error)
	Stop(ctx context.Context, by deadletter.Principal, id string) error
	List() []deadletter.Drain // newest first
}

func apiDrainOf(d deadletter.Drain) api.Drain {
	return api.Drain{ID: d.ID, Broker: d.Broker, VHost: d.VHost, Queue: d.Queue, Origin: d.Origin, Count: d.Asked, Taken: d.Taken, State: d.State, Why: d.Why, By: d.By, StartedAt: d.StartedAt.UTC(), EndedAt: utc(d.EndedAt)}
}

// drains is where drains are, if there is any way to drain.
func (w *Web) drains() (Drainer, error) {
	if w.Drains == nil {
		return nil, deadletter.ErrUnavailable
	}
	return w.Drains, nil
}

// apiDrains is GET /queues/drains: those that run, and the newest of those that ended since dlo was
// started.
func (w *Web) apiDrains(r *http.Request) (any, error) {
	drains, err := w.drains()
	if err != nil {
		return nil, err
	}
	return api.Drains{Drains: each(drains.List(), apiDrainOf)}, nil
}

// apiStartDrain is POST /queues/drain {queue, broker, vhost, origin, count}: 202 and the drain,
// which goes on.
func (w *Web) apiStartDrain(r *http.Request, in api.DrainRequest) (any, error) {
	drains, err := w.drains()
	if err != nil {
		return nil, err
	}
	if w.draining() {
		return nil, errStopping
	}
	d, err := drains.Start(r.Context(), principal(r), deadletter.DrainRequest(in))
	if err != nil {
		return nil, err
	}
	return accepted{apiDrainOf(d), "/api/v1/queues/drains"}, nil
}

// apiStopDrain is POST /queues/drains/{id}/stop: what it has in hand is finished, and the rest
// stays in its queue.
func (w *Web) apiStopDrain(r *http.Request) (any, error) {
	drains, err := w.drains()
	if err != nil {
		return nil, err
	}
	id := chi.URLParam(r, "id")
	if err := drains.Stop(r.Context(), principal(r), id); err != nil {
		return nil, err
	}
	for _, d := range drains.List() {
		if d.ID == id {
			return apiDrainOf(d), nil
		}
	}
	return nil, noSuch("drain", id)
}
