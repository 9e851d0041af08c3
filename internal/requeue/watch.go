package requeue

import (
	"context"
	"errors"
	"time"
)

// watch looks after something, again and again: the letters that were requeued, the breakers, the clock. None waits for another.
func (d *Dispatcher) watch(ctx context.Context, look func(context.Context) error) {
	for {
		if err := look(ctx); err != nil && !errors.Is(err, context.Canceled) {
			d.o.Log.Error("watch", "err", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
}

const (
	settleChunk = 1000
	watchMore   = 30 * time.Second // how long letters stay watched whose queue is known not to be drained
)

// Settle settles the requeued letters whose watch window is over, unless their queue is known to have no consumers or to be deeper than when they were sent.
func (d *Dispatcher) Settle(ctx context.Context) error {
	now := d.o.Now()
	origins, err := d.store.Watched(ctx, d.o.Broker, now)
	if err != nil {
		return err
	}
	for _, o := range origins {
		facts := d.broker.Facts(ctx, o.Queue)
		for facts.Consumers != 0 {
			n, err := d.store.SettleQuiet(ctx, o, now, settleChunk, facts)
			if err != nil {
				return err
			}
			if n < settleChunk {
				break
			}
		}
		if err := d.store.WatchOn(ctx, o, now, now.Add(watchMore)); err != nil {
			return err
		}
	}
	return nil
}
