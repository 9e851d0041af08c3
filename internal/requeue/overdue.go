package requeue

import "context"

// overdueChunk is the maximum number of letters that one transaction marks as overdue or gives up.
const overdueChunk = 500

// Overdue reports letters that still wait although their retries should have ended. If a breaker
// holds back such a letter, and the letter has been overdue for longer than Breaker.GiveUp, Overdue
// gives the letter up.
//
// While the broker is unreachable or accepts no messages, Overdue does nothing, because dlo reports
// that problem separately. Once the broker accepts messages again, the waiting letters get the full
// time for their retries once more, and Overdue reports only letters that exceed it.
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
