package web

import (
	"context"

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

// listDrains returns the drains that run, and the newest of those that ended since dlo was started
// or reloaded. The newest comes first.
func (w *Web) listDrains(context.Context, *struct{}) (*reply[api.Drains], error) {
	return &reply[api.Drains]{api.Drains{Drains: w.Drains.List()}}, nil
}

// startDrain takes letters out of a queue that is no inbox, once. It goes on by itself until the
// queue is empty, or the count is reached. 409 for an inbox, or a queue that is drained already.
func (w *Web) startDrain(
	ctx context.Context, in *struct{ Body deadletter.DrainRequest },
) (*accepted[deadletter.Drain], error) {
	d, err := w.Drains.Start(ctx, principal(ctx), in.Body)
	return &accepted[deadletter.Drain]{"/api/v1/queues/drains", d}, err
}

// stopDrain stops a drain. What it has in hand is finished, and the rest stays in its queue. 409
// when it has ended.
func (w *Web) stopDrain(ctx context.Context, in *struct {
	ID string `path:"id"`
},
) (*reply[deadletter.Drain], error) {
	if err := w.Drains.Stop(ctx, principal(ctx), in.ID); err != nil {
		return nil, err
	}
	for _, d := range w.Drains.List() {
		if d.ID == in.ID {
			return &reply[deadletter.Drain]{d}, nil
		}
	}
	return nil, noSuch("drain", in.ID)
}
