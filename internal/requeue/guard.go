package requeue

import (
	"cmp"
	"context"

	"github.com/deadletteroffice/dlo/internal/rules"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// CameBack tells the breakers of letters that came back.
func (d *Dispatcher) CameBack(ids []deadletter.ID) { d.breakers.back(ids, d.o.Now()) }

// Guard records what the breakers have come to, and takes over what a person decided about them.
func (d *Dispatcher) Guard(ctx context.Context) error {
	changes := d.breakers.tick(d.o.Now(), d.highest)
	for i, c := range changes {
		var err error
		if c.breaker.State == "" {
			err = d.store.CloseBreaker(ctx, c.breaker.Origin, c.breaker.Why)
		} else {
			if c.notice != nil {
				c.notice.Channels = d.o.Rules.Set().Told(rules.DefaultName)
			}
			err = d.store.SetBreaker(ctx, c.breaker, c.notice)
		}
		if err != nil {
			d.breakers.again(changes[i:])
			return err
		}
		d.o.Log.Info("breaker", "queue", c.breaker.Origin.Queue, "state", cmp.Or(string(c.breaker.State), "closed"), "why", c.breaker.Why)
	}
	recorded, err := d.store.Breakers(ctx, d.o.Broker)
	if err != nil {
		return err
	}
	if d.o.Breaker.CameBack <= 0 {
		for _, b := range recorded {
			if err := d.store.CloseBreaker(ctx, b.Origin, "the configuration has no breaker any more"); err != nil {
				return err
			}
		}
		return nil
	}
	d.breakers.adopt(recorded)
	return nil
}
