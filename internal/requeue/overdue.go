package requeue

import "context"

// overdueChunk is how many letters are marked as overdue, or given up, in one transaction.
const overdueChunk = 500

// Overdue reports letters that still wait although their retries should be over. It gives up a
// letter that a breaker has held back for too long after such a report. A broker that is
// unreachable or accepts nothing is reported separately. Its letters get their full time again once
// the broker accepts messages.
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
