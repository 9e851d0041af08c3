package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Drainer takes letters from queues that are not inboxes. Each drain runs once, when somebody
// requests it.
type Drainer interface {
	// Start starts a drain, which continues after Start returns. The error wraps ErrForbidden,
	// ErrInvalid, ErrNotFound, ErrConflict or ErrUnavailable.
	Start(ctx context.Context, by deadletter.Principal, r deadletter.DrainRequest) (deadletter.Drain, error)
	Stop(ctx context.Context, by deadletter.Principal, id string) error
	List() []deadletter.Drain // newest first
}

func apiDrainOf(d deadletter.Drain) api.Drain {
	return api.Drain{
		ID:        d.ID,
		Broker:    d.Broker,
		VHost:     d.VHost,
		Queue:     d.Queue,
		Origin:    d.Origin,
		Count:     d.Asked,
		Taken:     d.Taken,
		State:     d.State,
		Why:       d.Why,
		By:        d.By,
		StartedAt: api.At(d.StartedAt),
		EndedAt:   api.At(d.EndedAt),
	}
}

// drains returns the component that takes letters out of queues on request. If there is none, it
// returns ErrUnavailable.
func (w *Web) drains() (Drainer, error) {
	if w.Drains == nil {
		return nil, deadletter.ErrUnavailable
	}
	return w.Drains, nil
}

// apiDrains handles GET /queues/drains. It lists the drains that are running, and the last drains
// that have ended since dlo started.
func (w *Web) apiDrains(r *http.Request) (any, error) {
	drains, err := w.drains()
	if err != nil {
		return nil, err
	}
	return api.Drains{Drains: each(drains.List(), apiDrainOf)}, nil
}

// apiStartDrain handles POST /queues/drain {queue, broker, vhost, origin, count}. It returns 202
// with the drain, which continues after the response.
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

// apiStopDrain handles POST /queues/drains/{id}/stop. The drain stores the letters that it has
// already taken. All others stay in their queue.
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
