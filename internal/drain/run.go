package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// begin records the start of a drain and runs the drain. The queue stays reserved until the drain
// ends.
func (d *Drains) begin(ctx context.Context, i int, key [2]string, one *drain) error {
	d.mu.Lock()
	if d.stopped {
		d.mu.Unlock()
		return fmt.Errorf("%w: dlo is stopping", deadletter.ErrUnavailable)
	}
	d.running.Add(1) // from now on, dlo does not stop before the drain has ended, so that the audit records the end
	now := d.now()
	// this number is always new, so that the audit never contains the same id twice
	d.number = max(d.number+1, now.UnixMilli())
	one.ID, one.StartedAt = "D-"+strconv.FormatInt(d.number, 36), now
	d.mu.Unlock()
	asked := "until it is empty"
	if one.Asked > 0 {
		asked = fmt.Sprintf("%d letters at most", one.Asked)
	}
	if one.Origin != "" {
		asked += ", origin " + deadletter.Visible(one.Origin)
	}
	start := deadletter.Once(deadletter.ActDrainStarted, one.By, one.words(asked), one.targets()...)
	if err := d.store.Record(ctx, start); err != nil {
		d.running.Done()
		return err
	}
	running, cancel := context.WithCancel(d.ctx)
	one.cancel = cancel
	one.queue = d.brokers[i].Open(one.Queue, one.Origin, one.Asked, func(text string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		one.Why = text
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy[key] = one
	d.list = append(d.list, one)
	if n := len(d.list) - keep; n > 0 {
		d.list = slices.DeleteFunc(d.list, func(o *drain) bool {
			old := n > 0 && o.State != deadletter.DrainRunning
			if old {
				n--
			}
			return old
		})
	}
	go d.run(running, key, one)
	return nil
}

// run runs a drain and records how it ended.
func (d *Drains) run(ctx context.Context, key [2]string, one *drain) {
	defer d.running.Done()
	defer one.cancel()
	err := one.queue.Run(ctx)
	d.mu.Lock()
	ended := drain{Drain: one.state(), stopper: one.stopper}
	d.mu.Unlock()
	switch {
	case err != nil:
		ended.State, ended.Why = deadletter.DrainFailed, err.Error()
	case ended.Asked > 0 && ended.Taken >= ended.Asked:
		ended.State, ended.Why = deadletter.DrainDone, "as many as were asked for"
	case ctx.Err() != nil:
		ended.State, ended.Why = deadletter.DrainStopped, "stopped by "+cmp.Or(ended.stopper, "the end of dlo")
	default:
		ended.State, ended.Why = deadletter.DrainDone, "the queue is empty"
	}
	ended.EndedAt = d.now()
	d.log.Info(
		"drain ended", "drain", ended.ID, "broker", ended.Broker, "queue", ended.Queue, "state", ended.State, "letters",
		ended.Taken, "why", ended.Why,
	)
	end := deadletter.Act{
		Kind:    deadletter.ActDrainEnded,
		Actor:   deadletter.Service.Name,
		Detail:  ended.words(fmt.Sprintf("%s, %d letters taken: %s", ended.State, ended.Taken, ended.Why)),
		Targets: ended.targets(),
		Asked:   deadletter.Amount(cmp.Or(ended.Asked, ended.Taken)),
		Done:    deadletter.Amount(ended.Taken),
	}
	if err := d.store.Record(context.Background(), end); err != nil {
		d.log.Error("audit", "err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one.Drain = ended.Drain
	delete(d.busy, key) // from now on, the queue can be drained again, and List shows this drain as ended
}

// words returns a text for the audit. It names the drain, its queue and its broker.
func (o *drain) words(text string) string {
	return fmt.Sprintf("%s: queue %s of broker %s: %s", o.ID, deadletter.Visible(o.Queue), o.Broker, text)
}

func (o *drain) targets() []deadletter.Target {
	return []deadletter.Target{
		{Kind: deadletter.TargetDrain, Name: o.ID},
		{Kind: deadletter.TargetQueue, Name: o.Queue},
	}
}
