package requeue

import (
	"context"
	"time"
)

// clock detects that somebody sets the clock of the machine while the process runs.
type clock struct {
	wall   time.Time
	steady time.Time
	began  bool // true once the clock was compared with the last time in the store
	back   bool // true while the clock was set back and waiting letters were not moved forward yet
}

const jump = time.Minute // smaller changes of the clock are ignored

// jumpedBy detects that the clock of the machine was set since the last call. It returns how far
// the clock was moved, or 0 if it was moved by less than the constant "jump".
func (c *clock) jumpedBy(wall time.Time) time.Duration {
	steady := time.Now()
	was := *c
	c.wall, c.steady = wall.Round(0), steady
	if was.wall.IsZero() {
		return 0
	}
	by := c.wall.Sub(was.wall) - steady.Sub(was.steady)
	if by.Abs() < jump {
		return 0
	}
	return by
}

// OnTime makes letters due earlier if the clock was set back, whether dlo was running then or not.
// Without this, such letters would wait longer than any rule allows. The letters are sent at the
// rate of their queue, as after any downtime.
func (d *Dispatcher) OnTime(ctx context.Context) error {
	now := d.o.Now()
	by := d.clock.jumpedBy(now)
	if !d.clock.began {
		seen, err := d.store.LastSeen(ctx)
		if err != nil {
			return err
		}
		d.clock.began = true
		by = min(by, now.Sub(seen))
	}
	if by.Abs() >= jump && (by < 0 || !d.clock.wall.IsZero()) {
		d.o.Log.Warn("the clock was set", "by", by)
	}
	d.clock.back = d.clock.back || by <= -jump
	if !d.clock.back {
		return nil
	}
	n, err := d.store.DrawNear(ctx, now.Add(max(d.o.Rules.Set().Longest(), d.o.Nack.Max)))
	if n > 0 {
		d.o.Log.Warn("retries that were due too late are now due earlier", "letters", n)
	}
	d.clock.back = err != nil
	return err
}
