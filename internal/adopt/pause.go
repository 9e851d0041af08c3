package adopt

import (
	"context"
	"errors"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// hasLeft is the reason that dlo records when it pauses the retries of queues that leave dlo.
const hasLeft = "the queue has left dlo, so a letter that fails again would not return to dlo"

// pause pauses the automatic retries of queues before their policy is deleted. Without a policy, a
// letter that fails again does not return to dlo, so dlo would believe that its retry has worked.
func (a *Adoption) pause(ctx context.Context, by deadletter.Principal, p *Place, queues []string) error {
	for _, q := range queues {
		_, err := a.store.Pause(ctx, deadletter.Guard{
			Origin: deadletter.Origin{Broker: p.Broker, VHost: p.VHost, Queue: q},
			Why:    hasLeft,
			By:     by.Name,
		})
		// Two errors are ignored. ErrNotFound means that no letter died in the queue. ErrConflict
		// means that the retries of the queue are paused already.
		if err != nil && !errors.Is(err, deadletter.ErrNotFound) && !errors.Is(err, deadletter.ErrConflict) {
			return err
		}
	}
	return nil
}

// resume is called for queues that left dlo earlier and whose dead letters now go to dlo again. It
// ends the pauses that began when these queues left.
func (a *Adoption) resume(ctx context.Context, by deadletter.Principal, p *Place, queues []string) {
	guards, err := a.store.Guards(ctx)
	for _, g := range guards {
		if g.State != deadletter.GuardPaused || g.Why != hasLeft || g.Origin.Broker != p.Broker ||
			g.Origin.VHost != p.VHost || !slices.Contains(
			queues, g.Origin.Queue,
		) {
			continue
		}
		g.By, g.Why = by.Name, "the queue has come back to dlo"
		err = errors.Join(err, a.store.Resume(ctx, g))
	}
	if err != nil {
		a.log.Warn(
			"the retries of queues that came back may still be paused", "broker", p.Broker, "vhost", p.VHost, "err",
			err,
		)
	}
}
