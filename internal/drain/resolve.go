package drain

import (
	"context"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Run first finishes windows that an earlier process left open. A window is a batch of letters that
// dlo takes out of a queue. When ctx ends, Run stops all drains and waits until they have finished
// their present windows.
func (d *Drains) Run(ctx context.Context) error {
	if err := d.resolve(ctx); err != nil && ctx.Err() == nil {
		d.log.Error("windows that an earlier process left open could not be closed", "err", err)
	}
	<-ctx.Done()
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.cancel()
	d.running.Wait()
	return nil
}

// resolve closes open windows of queues that are not inboxes. A window is a batch of letters that
// dlo takes out of a queue. It is open if dlo ended before it knew that the broker had removed
// these letters. It belongs to a drain that a crash interrupted, or to an inbox that was removed
// from the configuration. If it stayed open, letters that are already stored would stay in the
// queue, where others could take them a second time.
func (d *Drains) resolve(ctx context.Context) error {
	open, err := d.store.OpenInboxes(ctx)
	if err != nil {
		return err
	}
	for _, name := range open {
		i := slices.IndexFunc(d.brokers, func(b Broker) bool { return b.Name == name.Broker })
		if i < 0 || d.brokers[i].VHost != name.VHost {
			d.log.Warn(
				"stored letters may still be in a queue whose broker is not in the configuration", "broker",
				name.Broker, "vhost", name.VHost, "queue", name.Queue,
			)
			continue
		}
		if slices.Contains(d.brokers[i].Inboxes, name.Queue) {
			continue // the session of the inbox itself begins by closing the window
		}
		if slices.Contains(d.brokers[i].Drained, name.Queue) {
			d.log.Warn(
				"an inbox has moved to another entry of its broker; letters that were stored before may be stored again, and are held",
				"broker", name.Broker, "queue", name.Queue,
			)
			continue
		}
		key := [2]string{d.brokers[i].Place, name.Queue}
		if d.reserve(key) != nil {
			continue // a drain of this queue has started, and it begins by closing the window
		}
		queue := d.brokers[i].Open(name.Queue, "", 0, func(string) {})
		d.running.Go(func() {
			defer d.release(key)
			err := queue.Resolve(d.ctx)
			if err != nil {
				d.log.Warn("an open window is not closed yet", "broker", name.Broker, "queue", name.Queue, "err", err)
			}
			if err != nil || d.ctx.Err() != nil {
				return
			}
			detail := fmt.Sprintf(
				"queue %s of broker %s: the letters that an interrupted drain had stored are now out of the queue; the rest stays there",
				deadletter.Visible(name.Queue), name.Broker,
			)
			act := deadletter.Once(deadletter.ActDrainResolved, deadletter.Service.Name, detail, deadletter.Target{
				Kind: deadletter.TargetQueue,
				Name: name.Queue,
			})
			if err := d.store.Record(context.Background(), act); err != nil {
				d.log.Error("audit", "err", err)
			}
		})
	}
	return nil
}
