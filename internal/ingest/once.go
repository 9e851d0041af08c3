package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Bounded is an Inbox for a drain, which ends when the queue is empty or when a limit is reached.
// If the queue is empty, Next and Resume return no letters. If the queue cannot be drained, Open
// returns an error.
type Bounded interface {
	Inbox
	Limit(n int) // limits the next windows to n letters
}

// Once drains a queue once, up to a given number of letters or until the queue is empty. It uses
// the same protocol as an inbox: window, commit, ack, fence and settle. Fetched letters beyond the
// number go back to the queue.
type Once struct {
	*Ingester
	queue Bounded
	count int // number of letters to take; 0 = until the queue is empty
	taken atomic.Int64
}

// NewOnce returns a Once that takes as many letters as "count" says. If "count" is 0, it takes
// letters until the queue is empty. The Once calls the function "report" with the reason why it
// makes no progress, or with "" when it makes progress.
//
// The caller must call either Run or Resolve, and only once. Run drains the queue. Resolve only
// closes the window that an earlier Once left open.
func NewOnce(store Store, queue Bounded, o Options, count int, report func(text string)) *Once {
	once := &Once{Ingester: New(store, queue, o), queue: queue, count: count}
	once.say = report
	return once
}

// Taken returns how many letters were stored so far. If the broker delivers a stored letter again
// after a restart, the letter does not count a second time.
func (o *Once) Taken() int { return int(o.taken.Load()) }

// Run takes letters until it has the wanted number, the queue is empty, or ctx is done. It always
// finishes the letters that are already fetched. If the queue cannot be drained, the error contains
// the reason.
func (o *Once) Run(ctx context.Context) error { return o.runSessions(ctx, o.take) }

// Resolve decides what happened to the window that an earlier process left open in the queue. If
// letters of the window come back, they are already stored, and Resolve acknowledges them. It takes
// no other letters.
func (o *Once) Resolve(ctx context.Context) error {
	err := o.runSessions(ctx, func(context.Context) (bool, error) { return true, nil })
	if !errors.Is(err, deadletter.ErrNotFound) {
		return err
	}
	open, err := o.store.Look(ctx, o.o.Broker, o.o.VHost, o.o.Inbox)
	if err != nil || open == nil {
		return err
	}
	return o.store.SettleWindow(ctx, open.ID) // the queue is gone with its content
}

// runSessions runs one session after another. Each session first decides what happened to the open
// window. It then calls the function "step". When this function reports that it is done,
// runSessions ends.
func (o *Once) runSessions(ctx context.Context, step func(ctx context.Context) (done bool, err error)) error {
	defer o.inbox.Close()
	for ctx.Err() == nil && o.storeBack(ctx) == nil {
		done, err := o.runSession(ctx, step)
		if done || isLasting(err) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			o.log.Warn("session ended", "err", err)
			o.say(err.Error())
		}
	}
	return nil
}

// isLasting reports whether another session would end with the same error.
func isLasting(err error) bool {
	return errors.Is(err, deadletter.ErrNotFound) || errors.Is(err, deadletter.ErrInvalid) ||
		errors.Is(err, deadletter.ErrConflict)
}

func (o *Once) runSession(ctx context.Context, step func(ctx context.Context) (bool, error)) (bool, error) {
	if err := o.begin(ctx); err != nil {
		return false, err
	}
	if err := o.decide(ctx); err != nil {
		return false, err
	}
	return step(ctx)
}

// decide closes the window that the last session left open. If other letters arrived instead of
// this window, decide gives them back to the queue. An inbox would store them, but a drain may want
// only a limited number of letters, so a later window takes them.
func (o *Once) decide(ctx context.Context) error {
	open, err := o.store.Look(ctx, o.o.Broker, o.o.VHost, o.o.Inbox)
	if err != nil || open == nil {
		return err
	}
	arrivals, whole, err := o.queue.Resume(ctx, open.Fingerprints)
	if err != nil {
		return err
	}
	o.o.Crash("ingest: decided")
	o.log.Info("open window decided", "letters", len(open.Fingerprints), "came_back", whole)
	stopping := ctx // if this context is done, the drain ends, but the fetched letters are still decided
	ctx = context.WithoutCancel(ctx)
	if whole {
		return o.finishWindow(
			ctx, o.window(arrivals, 0), func(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
				receipt, err := o.store.RejoinWindow(ctx, *open, w)
				o.taken.Add(int64(len(receipt.New))) // new rows for twins of the letters in the window
				return receipt, err
			},
		)
	}
	if err := o.settle(ctx, open.ID); err != nil || len(arrivals) == 0 {
		return err
	}
	o.inbox.Close()
	return o.begin(stopping)
}

// take stores one window after another. It reports whether the drain is done.
func (o *Once) take(ctx context.Context) (done bool, err error) {
	var empty time.Time // time at which the queue became empty
	for ctx.Err() == nil {
		if err := o.o.Room(); err != nil {
			return false, err
		}
		rest := 0
		if o.count > 0 {
			if rest = o.count - o.Taken(); rest <= 0 {
				return true, nil
			}
		}
		o.queue.Limit(rest)
		arrivals, err := o.inbox.Next(ctx)
		switch {
		case err != nil:
			return false, err
		case len(arrivals) > 0:
			empty = time.Time{}
		case !o.session.Restarted:
			return true, nil
		case empty.IsZero():
			empty = o.o.Now()
			continue
		case o.o.Now().Sub(empty) < calmAfter:
			// after a broker restart, letters whose acks the broker forgot come first
			continue
		default:
			err := o.store.Calm(ctx, o.o.Broker, o.o.VHost, o.o.Inbox, o.session.Marker)
			return err == nil, err
		}
		w := o.window(arrivals, rest)
		if err := o.finishWindow(
			context.WithoutCancel(ctx), w, o.receive,
		); err != nil || len(w.Arrivals) < len(arrivals) {
			return false, err // letters beyond the wanted number go back when the session ends
		}
	}
	return true, nil
}

func (o *Once) receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	receipt, err := o.store.Receive(ctx, w)
	if err == nil {
		o.taken.Add(int64(len(w.Arrivals) - receipt.Merged))
	}
	return receipt, err
}
