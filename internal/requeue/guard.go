package requeue

import (
	"cmp"
	"context"

	"github.com/deadletteroffice/dlo/internal/rules"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// CameBack must be called for letters that came back after they were sent. It passes them to the
// breakers, which count them.
func (d *Dispatcher) CameBack(ids []deadletter.ID) { d.breakers.countReturned(ids, d.o.Now()) }

// Guard records the changes of the breakers in the store. It then takes over the states in the
// store, which include the decisions of people.
func (d *Dispatcher) Guard(ctx context.Context) error {
	changes := d.breakers.tick(d.o.Now(), d.highestRate)
	for i, c := range changes {
		var err error
		if c.breaker.State == "" {
			err = d.store.CloseBreaker(ctx, c.breaker)
		} else {
			if c.notice != nil {
				c.notice.Channels = d.o.Rules.Set().Told(rules.DefaultName)
			}
			err = d.store.SetBreaker(ctx, c.breaker, c.notice)
		}
		if err != nil {
			d.breakers.restoreChanges(changes[i:])
			return err
		}
		d.o.Log.Info(
			"breaker", "queue", c.breaker.Origin.Queue, "group", c.breaker.Group, "state",
			cmp.Or(string(c.breaker.State), "closed"), "why", c.breaker.Why,
		)
	}
	recorded, err := d.store.Breakers(ctx, d.o.Broker)
	if err != nil {
		return err
	}
	if d.o.Breaker.CameBack <= 0 {
		for _, b := range recorded {
			b.Why = "the configuration has no breaker any more"
			if err := d.store.CloseBreaker(ctx, b); err != nil {
				return err
			}
		}
		return nil
	}
	d.breakers.adopt(recorded, d.o.Now())
	return nil
}
