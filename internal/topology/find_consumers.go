package topology

import (
	"time"
)

// stormRate is the lowest rate, in redeliveries per second, that is reported as a storm.
const stormRate = 5

// checkConsumers checks that a queue has a consumer, and that the consumer makes progress.
func (in *inspector) checkConsumers(v *view) {
	in.checkStorm(v)
	// a queue that delays messages needs no consumer
	if _, waits := v.Least("message-ttl"); !waits || len(v.Queues) == 0 {
		in.checkIdle(v)
	}
}

// checkIdle reports a queue that holds messages and has had no consumer for longer than
// Options.IdleAfter.
func (in *inspector) checkIdle(v *view) {
	since, idle := in.idleSince(v)
	if !idle || !v.Ready.Known || v.Ready.N == 0 {
		return
	}
	minutes := int(in.s.ReadAt.Sub(since) / time.Minute)
	f := Finding{
		Kind: NoConsumers, Queue: v.Name, Since: since,
		Title: textf("%s has had no consumer for %d min", v.Name, minutes),
	}
	switch {
	case in.s.Passive || in.s.NoRates:
		unknown := "Without the management API,"
		if in.s.NoRates {
			unknown = "The broker reports no rates (rates_mode none), so"
		}
		f.Loses = "nothing yet: messages wait"
		f.Why = textf("%d messages wait. %s dlo does not know whether more arrive.", v.Ready.N, unknown)
		f.Cure = "Start a consumer, or take the messages over with `dlo queues drain`."
	case v.Rates.Publish.PerSecond > 0:
		f.Loses = "nothing yet: messages pile up"
		f.Why = textf("%d messages wait, and %.3g a second arrive.", v.Ready.N, v.Rates.Publish.PerSecond)
		f.Cure = "Start a consumer."
		if limit, ok := v.Least("max-length"); ok && v.dropsOld() {
			f.Loses = textf("the oldest message for each new one, from %d messages on", limit.N)
			if v.Set {
				f.Loses += "; they become dead letters"
			}
		}
	default:
		f.Kind = LeftBehind
		f.Title = textf("%s was left behind with %d messages", v.Name, v.Ready.N)
		f.Loses = "nothing, but nobody handles these messages"
		f.Why = textf("It has had no consumer for %d min, and no message arrives.", minutes)
		f.Cure = "Start a consumer, or take the messages over with `dlo queues drain`, and delete the queue."
	}
	in.add(f)
}

// idleSince reports since when a queue has had no consumer, if that is longer than
// Options.IdleAfter.
func (in *inspector) idleSince(v *view) (since time.Time, idle bool) {
	since, idle = in.o.Idle[v.Name]
	return since, idle && v.Consumers.Known && v.Consumers.N == 0 && in.s.ReadAt.Sub(since) >= in.o.IdleAfter
}

// checkStorm reports consumers that requeue messages that they cannot handle. The messages go back
// to the head of the queue, so the broker delivers the same few messages again and again.
func (in *inspector) checkStorm(v *view) {
	again, done := v.Rates.Redeliver.PerSecond, v.Rates.Done()
	if again < stormRate || again <= done {
		return
	}
	in.add(Finding{
		Kind: RedeliveryStorm, Queue: v.Name, Sure: Likely,
		Title: textf("%s delivers the same messages again, %.0f times a second", v.Name, again),
		Loses: "no message, but time: new messages wait behind those that fail",
		Why: textf(
			"Its consumers requeue messages that they cannot handle (%.0f redeliveries and %.0f acknowledgements a second). The broker puts a requeued message back to the head of the queue, and delivers it again immediately.",
			again, done,
		),
		Cure: "Have consumers reject failed messages without requeue, and dead-letter the queue to dlo. dlo requeues a letter to the tail, after a growing delay, and stops after the last attempt of its rule.",
	})
}
