package requeue

import (
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// everySecond runs the function "check" once a second until ctx is done. Each check, for example of
// requeued letters, breakers or the clock, has its own goroutine, so checks do not wait for each
// other.
func (d *Dispatcher) everySecond(ctx context.Context, check func(context.Context) error) {
	for {
		if err := check(ctx); err != nil && !errors.Is(err, context.Canceled) {
			d.o.Log.Error("a check of requeued letters, breakers or the clock failed", "err", err)
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
	watchMore   = 30 * time.Second // further watch time if it is known that nobody consumes the queue
)

// EndWatches handles requeued letters that dlo has watched for long enough without seeing them come
// back. Usually, it settles them. It does not settle them if it is known that their queue has no
// consumers, or that more messages are in the queue than when the letters were sent. If dlo can no
// longer observe what happens to the letters in a queue, EndWatches holds them with the reason.
func (d *Dispatcher) EndWatches(ctx context.Context) error {
	now := d.o.Now()
	origins, err := d.store.Watched(ctx, d.o.Broker, now)
	if err != nil {
		return err
	}
	for _, o := range origins {
		if err := d.settle(ctx, o, now); err != nil {
			return err
		}
	}
	d.sights.forget(now)
	return nil
}

func (d *Dispatcher) settle(ctx context.Context, o deadletter.Origin, now time.Time) error {
	facts, replaced := d.depth.look(ctx, o.Queue, now)
	// the broker may be starting and may not show its queues yet
	if facts.Known && !facts.Exists && !d.broker.Status().Connected {
		return d.store.WatchOn(ctx, o, now, now.Add(lookAgain))
	}
	endWatch := func(u deadletter.Unseen) func() (int, error) {
		return func() (int, error) { return d.store.EndWatch(ctx, o, now, settleChunk, u, d.o.Rules.Set().Told) }
	}
	var before func() (int, error) // ends the watch over letters that were in another queue of that name
	if !replaced.IsZero() {
		before = endWatch(replacedReason(o.Queue, replaced))
	}
	u, again := d.sights.look(o.Queue, facts, now)
	end, until := func() (int, error) {
		return d.store.SettleQuiet(
			ctx, o, now, settleChunk, facts,
		)
	}, now.Add(watchMore)
	switch {
	case u.Why != "" && !again:
		end, until = nil, now.Add(lookAgain)
	case u.Why != "":
		end, until = endWatch(u), now.Add(lookAgain)
	case facts.Consumers == 0:
		end = nil
	}
	for _, end := range []func() (int, error){before, end} {
		for n := settleChunk; end != nil && n == settleChunk; {
			var err error
			if n, err = end(); err != nil {
				return err
			}
		}
	}
	return d.store.WatchOn(ctx, o, now, until)
}
