package operation

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Guards keeps what holds automatic retries back.
type Guards interface {
	Guards(ctx context.Context) ([]deadletter.Guard, error)
	// Pause fills in what is known of the queue or the group; ErrNotFound, or ErrConflict when it
	// is paused.
	Pause(ctx context.Context, g deadletter.Guard) (deadletter.Guard, error)
	Resume(ctx context.Context, g deadletter.Guard) error // ErrNotFound, or ErrConflict when nothing keeps them back
}

// PauseRetries keeps the automatic retries of a queue back, or of the group that g names. What
// people requeue still goes. Errors wrap ErrInvalid, ErrForbidden, ErrNotFound or ErrConflict.
func (d *Desk) PauseRetries(ctx context.Context, by deadletter.Principal, g deadletter.Guard) (deadletter.Guard, error) {
	if err := guardable(by, g); err != nil {
		return g, err
	}
	g.By = by.Name
	return d.store.Pause(ctx, g)
}

// ResumeRetries lets them go on, slowly at first where a breaker had tripped. Errors are those of
// PauseRetries.
func (d *Desk) ResumeRetries(ctx context.Context, by deadletter.Principal, g deadletter.Guard) error {
	if err := guardable(by, g); err != nil {
		return err
	}
	g.By = by.Name
	if err := d.store.Resume(ctx, g); err != nil {
		return err
	}
	d.moved()
	return nil
}

func guardable(by deadletter.Principal, g deadletter.Guard) error {
	if err := deadletter.Allow(by, deadletter.VerbGuard, g.Origin); err != nil {
		return err
	}
	switch {
	case g.Group == 0 && g.Origin.Queue == "":
		return fmt.Errorf("%w: the queue whose retries are meant is missing", deadletter.ErrInvalid)
	case len(g.Origin.Queue) > deadletter.MaxQueueName:
		return fmt.Errorf("%w: a queue has a name of at most %d bytes", deadletter.ErrInvalid, deadletter.MaxQueueName)
	case len(g.Why) > maxReason:
		return fmt.Errorf("%w: a reason has at most %d bytes", deadletter.ErrInvalid, maxReason)
	}
	return nil
}
