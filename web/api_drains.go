package web

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Drainer takes letters out of queues that are no inboxes, once and by request.
type Drainer interface {
	// Start begins, and goes on without the caller. The error wraps ErrForbidden, ErrInvalid, ErrNotFound, ErrConflict or ErrUnavailable.
	Start(ctx context.Context, by deadletter.Principal, r deadletter.DrainRequest) (deadletter.Drain, error)
	Stop(by deadletter.Principal, id string) error
	List() []deadletter.Drain // newest first
}

type apiDrain struct {
	ID        string                `json:"id"`
	Broker    string                `json:"broker"`
	VHost     string                `json:"vhost"`
	Queue     string                `json:"queue"`
	Origin    string                `json:"origin"`
	Count     int                   `json:"count"`
	Taken     int                   `json:"taken"`
	State     deadletter.DrainState `json:"state"`
	Why       string                `json:"why"`
	By        string                `json:"by"`
	StartedAt time.Time             `json:"started_at"`
	EndedAt   time.Time             `json:"ended_at,omitzero"`
}

func apiDrainOf(d deadletter.Drain) apiDrain {
	return apiDrain{d.ID, d.Broker, d.VHost, d.Queue, d.Origin, d.Asked, d.Taken, d.State, d.Why, d.By, d.StartedAt.UTC(), utc(d.EndedAt)}
}

// drains is where drains are, if there is any way to drain.
func (w *Web) drains() (Drainer, error) {
	if w.Drains == nil {
		return nil, deadletter.ErrUnavailable
	}
	return w.Drains, nil
}

// apiDrains is GET /queues/drains: those that run, and the newest of those that ended since dlo was started.
func (w *Web) apiDrains(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	drains, err := w.drains()
	if err != nil {
		return nil, err
	}
	out := struct {
		Drains []apiDrain `json:"drains"`
	}{[]apiDrain{}}
	for _, d := range drains.List() {
		out.Drains = append(out.Drains, apiDrainOf(d))
	}
	return out, nil
}

// apiStartDrain is POST /queues/drain {queue, broker, vhost, origin, count}: 202 and the drain, which goes on.
func (w *Web) apiStartDrain(r *http.Request) (any, error) {
	var in struct {
		Broker string `json:"broker"`
		VHost  string `json:"vhost"`
		Queue  string `json:"queue"`
		Origin string `json:"origin"`
		Count  int    `json:"count"`
	}
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
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

// apiStopDrain is POST /queues/drains/{id}/stop: what it has in hand is finished, and the rest stays in its queue.
func (w *Web) apiStopDrain(r *http.Request) (any, error) {
	drains, err := w.drains()
	if err != nil {
		return nil, err
	}
	id := chi.URLParam(r, "id")
	if err := drains.Stop(principal(r), id); err != nil {
		return nil, err
	}
	for _, d := range drains.List() {
		if d.ID == id {
			return apiDrainOf(d), nil
		}
	}
	return nil, deadletter.ErrNotFound
}
