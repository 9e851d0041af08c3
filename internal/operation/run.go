package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Runs is the part of the store that advances operations, which means that it acts on their next
// letters. Each method is one transaction. If the operation has changed in the meantime, the method
// changes nothing.
type Runs interface {
	// ActiveOperations returns the operations that are not finished, oldest first. It includes
	// operations that an earlier process started.
	ActiveOperations(ctx context.Context) ([]deadletter.Operation, error)
	LayOut(ctx context.Context, id deadletter.OperationID) (more bool, err error)
	// Advance acts on the next n letters and returns how many it took. Before it releases a letter
	// to a queue, it calls the function "allow" with this queue. If "allow" returns an error,
	// Advance skips the letter, and the text of the error is the reason.
	Advance(
		ctx context.Context, id deadletter.OperationID, n int, allow func(to deadletter.Origin) error,
	) (taken int, err error)
	// ChooseCanary chooses the letters that the next canary sends first, one of each of at most n
	// causes.
	ChooseCanary(ctx context.Context, id deadletter.OperationID, n int) error
	// PendingLetters returns the next n letters on which Advance would act, complete with their
	// bodies. The caller then makes revisions of these letters, and Revised acts on each letter
	// that has a revision, as Advance would. Revised skips a letter without a revision.
	PendingLetters(ctx context.Context, id deadletter.OperationID, n int) ([]deadletter.Letter, error)
	Revised(
		ctx context.Context, id deadletter.OperationID, list []deadletter.Edited,
		allow func(to deadletter.Origin) error,
	) (taken int, err error)
	Sweep(ctx context.Context, id deadletter.OperationID, n int) error
	EnterPhase(
		ctx context.Context, id deadletter.OperationID, from, to deadletter.OperationPhase, until time.Time, why string,
	) error
	StopOperation(ctx context.Context, id deadletter.OperationID, why string) error
	PauseOperation(ctx context.Context, id deadletter.OperationID, by string) error
	ResumeOperation(ctx context.Context, id deadletter.OperationID, by string) error
	CancelOperation(ctx context.Context, id deadletter.OperationID, by string) error
	RateOperation(ctx context.Context, id deadletter.OperationID, by string, rate float64) error
}

const (
	chunk    = 500 // maximum number of letters in one transaction, so that ingest never waits long
	inFlight = 1000
	tick     = 100 * time.Millisecond // pause while an operation is active
	idle     = time.Second
	judged   = 10 // minimum number of sent letters at which too many returns stop an operation, except for a canary
)

// Run advances all active operations until ctx is done. The operations take turns: in its turn,
// each operation works on one chunk of its letters. Run also continues operations that an earlier
// process started.
func (d *Desk) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		busy, active, err := d.Step(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Error("an operation could not advance", "err", err)
		}
		if busy && err == nil {
			continue
		}
		pause := idle
		if active && err == nil {
			pause = tick
		}
		select {
		case <-d.wake:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return nil
}

// Step advances each active operation by one chunk. The result "busy" is true if an operation has
// more to do immediately. The result "active" is true if an operation is not yet finished with its
// letters, so that it may have more to do soon.
func (d *Desk) Step(ctx context.Context) (busy, active bool, err error) {
	list, err := d.store.ActiveOperations(ctx)
	if err != nil {
		return false, false, err
	}
	known := map[deadletter.OperationID]bool{}
	var failed []error
	for i := range list {
		op := &list[i]
		known[op.ID] = true
		more, err := d.step(ctx, op)
		if err != nil { // the other operations must continue
			failed = append(failed, fmt.Errorf("%s: %w", op.ID, err))
			continue
		}
		busy = busy || more
		active = active || op.Phase != deadletter.PhaseWatching
	}
	maps.DeleteFunc(d.pacers, func(id deadletter.OperationID, _ *pacer) bool { return !known[id] })
	return busy, active, errors.Join(failed...)
}

// step advances one operation by one chunk.
func (d *Desk) step(ctx context.Context, op *deadletter.Operation) (busy bool, err error) {
	switch {
	case op.Phase == deadletter.PhaseSelecting ||
		op.State == deadletter.OperationCancelled && op.Counts[deadletter.ResultPending] > 0:
		more, err := d.store.LayOut(ctx, op.ID)
		d.crash("operation: laid out")
		if err == nil && !more && op.State == deadletter.OperationCancelled {
			err = d.store.Sweep(ctx, op.ID, chunk)
		}
		return true, err
	case op.State != deadletter.OperationRunning:
		return false, nil
	}
	now := d.now()
	due := !op.PhaseUntil.IsZero() && !now.Before(op.PhaseUntil)
	switch op.Phase {
	case deadletter.PhaseHolding:
		if !due {
			return false, nil
		}
		next := deadletter.PhaseSending
		if op.Pace.Canary > 0 {
			next = deadletter.PhaseCanary
		}
		return true, d.store.EnterPhase(ctx, op.ID, op.Phase, next, time.Time{}, "")
	case deadletter.PhaseCanary:
		return d.canary(ctx, op, now)
	case deadletter.PhaseWaiting:
		if stopped, err := d.judge(ctx, op, 1); stopped || err != nil || !due && !allJudged(op) {
			return false, err
		}
		d.pacer(op).ramp(now)
		return true, d.store.EnterPhase(ctx, op.ID, op.Phase, deadletter.PhaseSending, time.Time{}, "")
	case deadletter.PhaseSending:
		if !op.Action.Sends() {
			n, err := d.advance(ctx, op, chunk)
			return n > 0, err
		}
		if stopped, err := d.judge(ctx, op, judged); stopped || err != nil {
			return false, err
		}
		return d.send(ctx, op, op.Counts[deadletter.ResultPending], now)
	}
	return false, nil
}

// canary sends the letters of the canary: the first few letters of an operation, which show whether
// the worker accepts letters now. Once the broker has responded to all of them, the operation waits
// for some time. It then judges by the letters that came back.
func (d *Desk) canary(ctx context.Context, op *deadletter.Operation, now time.Time) (bool, error) {
	c := op.Counts
	taken := op.Total - c[deadletter.ResultPending] - c[deadletter.ResultSkipped] - c[deadletter.ResultCancelled] - op.Base.Taken
	if left := op.Pace.Canary - taken; left > 0 && c[deadletter.ResultPending] > 0 {
		if p := d.pacer(op); taken == 0 && p.canaryFrom != op.Base.Taken+1 {
			if err := d.store.ChooseCanary(ctx, op.ID, op.Pace.Canary); err != nil {
				return false, err
			}
			p.canaryFrom = op.Base.Taken + 1
		}
		return d.send(ctx, op, min(left, c[deadletter.ResultPending]), now)
	}
	if c[deadletter.ResultReleased] > 0 {
		return false, nil
	}
	return false, d.store.EnterPhase(ctx, op.ID, op.Phase, deadletter.PhaseWaiting, now.Add(op.Pace.CanaryWait), "")
}

// allJudged reports whether dlo knows the end of every letter that the operation sent: the letter
// came back, or it did not. The operation then need not watch its first letters (the canary) any
// longer.
func allJudged(op *deadletter.Operation) bool {
	return op.Counts[deadletter.ResultConfirmed] == 0 && op.Counts[deadletter.ResultReleased] == 0
}

// judge stops an operation if too many of its letters came back. It counts the letters that were
// sent since the operation last began with a few letters (the canary). If fewer than "atLeast"
// letters were sent, it does nothing.
func (d *Desk) judge(ctx context.Context, op *deadletter.Operation, atLeast int) (stopped bool, err error) {
	sent, back := op.Sent()-op.Base.Sent, op.Counts[deadletter.ResultCameBack]-op.Base.CameBack
	if op.Pace.StopAt <= 0 || back <= 0 || sent < atLeast || float64(back)*100 <= op.Pace.StopAt*float64(sent) {
		return false, nil
	}
	share := min(100, float64(back)*100/float64(sent))
	why := fmt.Sprintf("%d of %d came back: %.3g%%, more than %g%%", back, sent, share, op.Pace.StopAt)
	d.log.Warn("operation stopped", "operation", op.ID.String(), "why", why)
	return true, d.store.StopOperation(ctx, op.ID, why)
}

// send sends at most n letters to the dispatcher, and not more than the rate allows. If too many
// messages are in a target queue, it sends none.
func (d *Desk) send(ctx context.Context, op *deadletter.Operation, n int, now time.Time) (bool, error) {
	p := d.pacer(op)
	if why := d.deepQueue(ctx, op, p, now); why != op.Why {
		if err := d.store.EnterPhase(ctx, op.ID, op.Phase, op.Phase, time.Time{}, why); err != nil {
			return false, err
		}
		op.Why = why
	}
	if op.Why != "" {
		p.skipTime(now)
		return false, nil
	}
	room := inFlight - op.Counts[deadletter.ResultReleased]
	n = min(n, room, chunk, p.allow(op.Pace.Rate, now))
	if n <= 0 {
		return false, nil
	}
	taken, err := d.advance(ctx, op, n)
	p.spend(taken)
	return taken == n, err
}

func (d *Desk) advance(ctx context.Context, op *deadletter.Operation, n int) (int, error) {
	taken, err := d.takeLetters(ctx, op, n)
	d.crash("operation: advanced")
	if taken > 0 {
		d.moved()
	}
	return taken, err
}

// deepQueue looks at the target queues of an operation. If a queue already contains as many
// messages as the operation's limit allows, deepQueue returns a text about this queue. Otherwise it
// returns "".
func (d *Desk) deepQueue(ctx context.Context, op *deadletter.Operation, p *pacer, now time.Time) string {
	if op.Pace.MaxDepth == 0 || now.Before(p.lookAgain) {
		return op.Why
	}
	p.lookAgain = now.Add(lookEvery)
	redirected, err := d.redirectTargets(ctx)
	if err != nil {
		return op.Why // other code reports an error of the store that lasts
	}
	for _, q := range op.Queues {
		if q.Counts[deadletter.ResultPending] == 0 {
			continue
		}
		at := deadletter.Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue}
		at.Queue = cmp.Or(op.To, redirected[at], q.Queue)
		f := d.facts(ctx, at)
		if f.Ready >= op.Pace.MaxDepth {
			return fmt.Sprintf(
				"waits: %s has %d messages, and the limit is %d", deadletter.Visible(at.Queue), f.Ready,
				op.Pace.MaxDepth,
			)
		}
	}
	return ""
}
