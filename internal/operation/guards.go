package operation

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Guards stores the pauses and the breakers that hold back automatic retries.
type Guards interface {
	Guards(ctx context.Context) ([]deadletter.Guard, error)
	// Pause stores a pause and returns it with the known facts about its queue or group. It returns
	// ErrNotFound if the queue or group does not exist, and ErrConflict if it is already paused.
	Pause(ctx context.Context, g deadletter.Guard) (deadletter.Guard, error)
	// returns all queues in which letters of the groups died, even those outside the caller's scope
	GroupPlaces(ctx context.Context, groups ...deadletter.GroupID) ([]deadletter.Origin, error)
	// returns ErrNotFound if the queue or group does not exist, and ErrConflict if nothing holds
	// its retries back
	Resume(ctx context.Context, g deadletter.Guard) error
}

// PauseRetries pauses the automatic retries of a queue, or only of a group if g names one. People
// can still requeue letters. Errors wrap ErrInvalid, ErrForbidden, ErrNotFound or ErrConflict.
func (d *Desk) PauseRetries(
	ctx context.Context, by deadletter.Principal, g deadletter.Guard,
) (deadletter.Guard, error) {
	if err := d.checkGuardable(ctx, by, g); err != nil {
		return g, err
	}
	g.By = by.Name
	return d.store.Pause(ctx, g)
}

// ResumeRetries resumes the automatic retries of a queue or group. If a breaker had tripped, their
// rate rises slowly. ResumeRetries returns the same errors as PauseRetries.
func (d *Desk) ResumeRetries(ctx context.Context, by deadletter.Principal, g deadletter.Guard) error {
	if err := d.checkGuardable(ctx, by, g); err != nil {
		return err
	}
	g.By = by.Name
	if err := d.store.Resume(ctx, g); err != nil {
		return err
	}
	d.moved()
	return nil
}

func (d *Desk) checkGuardable(ctx context.Context, by deadletter.Principal, g deadletter.Guard) error {
	places := []deadletter.Origin{g.Origin}
	if g.Group != 0 && !by.MayToAll(deadletter.VerbGuard) {
		var err error
		if places, err = d.store.GroupPlaces(ctx, g.Group); err != nil {
			return err
		}
	}
	for _, o := range places {
		if err := deadletter.Allow(by, deadletter.VerbGuard, o); err != nil {
			return err
		}
	}
	switch {
	case g.Group == 0 && g.Origin.Queue == "":
		return fmt.Errorf("%w: name the queue whose retries are to be paused or resumed", deadletter.ErrInvalid)
	case len(g.Origin.Queue) > deadletter.MaxQueueName:
		return fmt.Errorf("%w: a queue has a name of at most %d bytes", deadletter.ErrInvalid, deadletter.MaxQueueName)
	case len(g.Why) > maxReason:
		return fmt.Errorf("%w: a reason has at most %d bytes", deadletter.ErrInvalid, maxReason)
	}
	return nil
}
