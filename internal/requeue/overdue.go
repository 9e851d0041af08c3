package requeue

import "context"

// overdueChunk is how many letters are marked as overdue, or given up, in one commit.
const overdueChunk = 500

// Overdue tells people of letters that still wait though their retries should have been over, and
// gives those up that a breaker has held back for too long since. A broker that is away, or takes
// nothing, is told by itself; the letters have their time again once it takes messages.
func (d *Dispatcher) Overdue(ctx context.Context) error {
	status := d.broker.Status()
	if !status.Connected || status.Blocked != "" {
		return nil
	}
	for n := overdueChunk; n == overdueChunk; {
		var err error
		if n, err = d.store.Overdue(ctx, d.o.Broker, status.Since, d.o.Rules.Set().Told, overdueChunk); err != nil {
			return err
		}
	}
	if d.o.Breaker.CameBack <= 0 || d.o.Breaker.GiveUp <= 0 {
		return nil
	}
	for n := overdueChunk; n == overdueChunk; {
		var err error
		if n, err = d.store.GiveUp(ctx, d.o.Broker, d.o.Breaker.GiveUp, overdueChunk); err != nil {
			return err
		}
	}
	return nil
}
