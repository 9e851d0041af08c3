package requeue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// waiter lets letters wait in the broker for their retry. dlo claims such letters before they are
// due, and publishes them to a wait queue of the waiter. When they leave the wait queue, the
// default exchange routes them to their own queue. A letter that no waiter accepts stays in the
// store until it is due.
type waiter interface {
	// place returns the wait queue, with its exchange, in which letters with the given delay wait.
	place(delay time.Duration) deadletter.Wait
	// address prepares a message for its wait in the place of this waiter, for example by an
	// expiration or a header. The parameter "rest" is how much of the delay is left. The method
	// returns how long the message waits in this place, which is a queue or a delayed exchange.
	address(p *deadletter.Publishing, delay, rest time.Duration) time.Duration
}

var waiters = map[rules.Waiter]waiter{
	rules.WaiterQueue:   waitQueue{},
	rules.WaiterTTL:     messageTTL{},
	rules.WaiterDelayed: delayedExchange{},
}

// places is a cache of the wait queues in the broker in which letters wait under the active rules.
type places struct {
	of  *rules.Set
	all map[rules.Waiter][]deadletter.Wait
}

// usableWaiters returns the names of the waiters that the active rules need and that can be used
// now. A waiter is a way to let letters wait in the broker until their retry.
func (d *Dispatcher) usableWaiters(set *rules.Set) []string {
	if d.places.of != set {
		d.places = places{set, map[rules.Waiter][]deadletter.Wait{}}
		for name, delays := range set.Waits() {
			for _, delay := range delays {
				place := waiters[name].place(delay)
				if all := d.places.all[name]; delay >= time.Millisecond && !slices.Contains(all, place) {
					d.places.all[name] = append(all, place)
				}
			}
		}
	}
	var list []string
	for name, all := range d.places.all {
		if d.broker.Takes(all...) {
			list = append(list, string(name))
		}
	}
	return list
}

// divert makes a message that was claimed early wait in the broker. If the message is already due,
// it goes directly to its queue.
func (d *Dispatcher) divert(p *deadletter.Publishing, due *deadletter.Due) {
	w := waiters[rules.Waiter(due.Waiter)]
	rest := due.Letter.DueAt.Sub(d.o.Now())
	if w == nil || rest < time.Millisecond { // the broker measures time in milliseconds
		return
	}
	place := w.place(due.Wait)
	// an expiration from a revision would end the wait; the broker removes the expiration when it
	// passes the message on
	p.Properties.Expiration = ""
	p.Wait, p.WaitFor = &place, w.address(p, due.Wait, rest)
}

const waitEndChunk = 500

// EndWaits handles the letters whose time in a wait queue is over. The broker passes such letters
// on to their target queue without a confirm. It drops a letter if the target queue no longer
// exists or has no room. If the broker is killed, it loses the letters that it is passing on.
//
// The arrival of a letter therefore counts as verified only if the management API knows both the
// wait queue and the target queue, the target queue has no length limit, and the connection was
// never interrupted.
func (d *Dispatcher) EndWaits(ctx context.Context) error {
	for {
		now := d.o.Now()
		list, err := d.store.Waited(ctx, d.o.Broker, now, waitEndChunk)
		if err != nil || len(list) == 0 {
			return err
		}
		status, facts := d.broker.Status(), map[string]deadletter.QueueFacts{}
		ends := make([]deadletter.WaitEnd, len(list))
		ask := func(queue string) deadletter.QueueFacts {
			f, ok := facts[queue]
			if !ok {
				f = d.broker.Facts(ctx, queue)
				facts[queue] = f
			}
			return f
		}
		for i, w := range list {
			f, waited := ask(w.Queue), ask(w.In)
			l := deadletter.WaitEnd{
				Letter:   w.Letter,
				DueAt:    now.Add(d.watchTime(w.Rule)),
				Depth:    d.depth.readyIn(w.Queue, now),
				Channels: d.o.Rules.Set().Told(w.Rule),
			}
			queue := deadletter.Visible(w.Queue)
			switch {
			case f.Known && !f.Exists:
				d.breakers.uncount(w.Letter)
				l.Lost = fmt.Sprintf(
					"no target: queue %s does not exist; the broker dropped the copy that waited in %s, but dlo still has the letter",
					queue, w.In,
				)
			case f.Known && waited.Known && !waited.Exists:
				l.InDoubt = true
				l.Lost = fmt.Sprintf(
					"in doubt: %s, in which it waited, is gone, so it is unknown whether it was passed on; requeue it only if a second arrival does no harm",
					w.In,
				)
			case f.MaxLength > 0 && f.Ready >= f.MaxLength:
				l.InDoubt = true
				l.Lost = fmt.Sprintf(
					"in doubt: queue %s is full, and drops messages that the broker passes on to it from %s; requeue it only if a second arrival does no harm",
					queue, w.In,
				)
			case !f.Known || !waited.Known:
				l.Doubt = fmt.Sprintf("no management API shows whether queue %s exists", queue)
			case f.MaxLength != 0 || f.MaxBytes != 0:
				l.Doubt = fmt.Sprintf(
					"queue %s has a length limit, or may have one, and messages that the broker passes on to a full queue are dropped",
					queue,
				)
			case !status.Connected || status.Since.After(w.Since):
				l.Doubt = "the connection to the broker was lost while it waited, and a broker that stops loses the messages that it is passing on"
			}
			ends[i] = l
		}
		if err := d.store.RecordWaitEnds(ctx, ends); err != nil || len(list) < waitEndChunk {
			return err
		}
	}
}
