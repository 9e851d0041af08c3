package requeue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Step claims one batch of letters, publishes it and marks it. It returns how many letters the
// batch had. Once the batch is sent, Step finishes it even if ctx is done.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	session, err := d.maySend(ctx)
	if session == 0 || err != nil {
		return 0, err
	}
	claimed, done, err := d.claim(context.WithoutCancel(ctx))
	defer done()
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	d.o.Crash("requeue: claimed")
	marks := make([]deadletter.Mark, 0, len(claimed))
	var ps []deadletter.Publishing
	sent := map[deadletter.Token]*deadletter.Due{}
	under := map[deadletter.Token]*deadletter.Publishing{}
	changes := map[deadletter.Token]string{}
	for i := range claimed {
		due := &claimed[i]
		p, changed, err := d.prepare(due)
		switch {
		case due.Attempt.Outcome == deadletter.OutcomeInDoubt && d.inDoubt(due) == Hold:
			marks = append(marks, deadletter.Mark{
				Letter:   due.Letter.ID,
				Token:    due.Attempt.Token,
				Outcome:  deadletter.OutcomeInDoubt,
				Channels: d.o.Rules.Set().Told(due.Letter.Rule),
				Detail:   "in doubt: it was sent, or was about to be, when the answer was lost; requeue it only if a second arrival does no harm",
			})
		case err != nil:
			d.breakers.uncount(due.Letter.ID)
			marks = append(marks, deadletter.Mark{
				Letter:   due.Letter.ID,
				Token:    due.Attempt.Token,
				Outcome:  deadletter.OutcomeRefused,
				Detail:   err.Error(),
				Channels: d.o.Rules.Set().Told(due.Letter.Rule),
			})
		default:
			ps = append(ps, p)
			sent[p.Token], under[p.Token], changes[p.Token] = due, &p, changed
		}
	}
	var noted deadletter.Noted
	if len(ps) > 0 {
		var outcomes []deadletter.Outcome
		var recorded func()
		outcomes, noted, recorded = d.send(ctx, session, ps)
		defer recorded()
		for _, o := range outcomes {
			m := d.mark(sent[o.Token], under[o.Token], o)
			if m.Outcome == deadletter.OutcomeConfirmed {
				m.Detail = changes[o.Token]
			}
			marks = append(marks, m)
		}
	}
	if err := d.record(ctx, marks, noted); err != nil {
		return 0, err
	}
	d.o.Crash("requeue: marked")
	if d.o.Metrics != nil {
		died := make(map[deadletter.ID]string, len(claimed))
		for i := range claimed {
			died[claimed[i].Letter.ID] = claimed[i].Letter.Queue
		}
		for _, m := range marks {
			d.o.Metrics.count(died[m.Letter], m.Outcome)
		}
	}
	return len(claimed), nil
}

// send records the progress of the store and then publishes the batch over the connection of the
// given session. If the progress cannot be recorded, or if ctx is done before the batch may be
// sent, it sends nothing and returns each letter as unsent. The caller must call the function
// "recorded" after it has recorded the outcomes.
func (d *Dispatcher) send(
	ctx context.Context, session int64, ps []deadletter.Publishing,
) (outcomes []deadletter.Outcome, noted deadletter.Noted, recorded func()) {
	recorded = func() {}
	noted, err := d.noteProgress(context.WithoutCancel(ctx))
	if err == nil {
		recorded, err = d.turnToSend(ctx)
	}
	if err != nil {
		for i := range ps {
			outcomes = append(outcomes, deadletter.Outcome{
				Token: ps[i].Token, Kind: deadletter.OutcomeUnsent, Detail: err.Error(),
			})
		}
		return outcomes, noted, recorded
	}
	d.o.Crash("requeue: publishing")
	outcomes = d.broker.Publish(ctx, session, ps)
	d.o.Crash("requeue: confirmed")
	return outcomes, noted, recorded
}

// turnToSend waits until one more batch may be sent. The caller must call the function "over" when
// the outcomes of its batch are recorded.
func (d *Dispatcher) turnToSend(ctx context.Context) (over func(), err error) {
	over = func() { <-d.sending }
	select {
	case d.sending <- struct{}{}:
		return over, nil
	default:
	}
	select {
	case d.sending <- struct{}{}:
		return over, nil
	case <-ctx.Done():
		return func() {}, errors.New("dlo stopped before it was sent")
	}
}

// record commits marks. The outcome of a published letter must not be forgotten, so record tries
// again until the store accepts the marks or ctx is done. Until then, the worker claims no other
// letters.
func (d *Dispatcher) record(ctx context.Context, marks []deadletter.Mark, noted deadletter.Noted) error {
	for {
		err := d.store.Mark(context.WithoutCancel(ctx), marks, noted)
		if err == nil || ctx.Err() != nil {
			return err // the next process treats letters without a recorded mark as in doubt
		}
		d.o.Log.Error("outcomes are not recorded yet", "letters", len(marks), "err", err)
		select {
		case <-time.After(trouble):
		case <-ctx.Done():
		}
	}
}

// unsentAgain is the time after which dlo tries again to send a letter that it could not send. This
// time matters only while dlo is connected, because without a connection it claims no letters at
// all.
const unsentAgain = time.Second

// claim claims one batch of letters for a worker. Letters in doubt come first, a few at a time.
// Only one worker at a time may claim such letters: if the broker never responds to them, the other
// worker can still send all other letters. The caller must call the function "done" after it
// has processed the batch.
func (d *Dispatcher) claim(ctx context.Context) (claimed []deadletter.Due, done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, n, done := d.o.Now(), max(1, d.o.InFlight/batches), func() {}
	if d.doubting.CompareAndSwap(false, true) {
		done = func() { d.doubting.Store(false) }
		if claimed, err := d.store.ClaimDoubtful(
			ctx, d.o.Broker, now, min(n, doubtful),
		); err != nil || len(claimed) > 0 {
			return claimed, done, err
		}
		done()
		done = func() {}
	}
	set := d.o.Rules.Set()
	own := set.Paced()
	claimed, err = d.store.ClaimDue(ctx, d.o.Broker, now, n, deadletter.Allowance{
		Rules: own, Waiters: d.usableWaiters(set),
		Allow: func(o deadletter.Origin, rule string) (int, bool) {
			if d.o.Targets.Observed(o) { // the letter was scheduled before its queue was set to be observed only
				return 0, false
			}
			return d.allow(o.Queue, rule, now)
		},
		Shares: func(o deadletter.Origin) []deadletter.GroupShare { return d.shares(o.Queue, now) },
	})
	for _, due := range claimed {
		if due.Attempt.Operation != 0 {
			continue
		}
		rule := ""
		if slices.Contains(own, due.Letter.Rule) {
			rule = due.Letter.Rule
		}
		queue, group := due.Letter.Queue, due.Letter.Group
		d.spendTokens(queue, rule, group)
		if due.Waiter != "" {
			d.breakers.countSent(queue, group, due.Letter.ID, false, now, due.Letter.DueAt)
			continue
		}
		d.breakers.countSent(queue, group, due.Letter.ID, due.Attempt.Probe, now, now)
	}
	return claimed, done, err
}

// prepare returns the message for an attempt. The result "changed" lists the properties that had to
// be left out. If the message cannot be published, the error contains the reason.
func (d *Dispatcher) prepare(due *deadletter.Due) (p deadletter.Publishing, changed string, err error) {
	l := &due.Letter
	if l.Damage != "" {
		return p, "", errors.New(deadletter.WhyDamaged(l.Damage))
	}
	if err := d.o.Targets.AllowLetter(deadletter.Origin{
		Broker: l.Broker,
		VHost:  l.VHost,
		Queue:  due.Attempt.Queue,
	}, l.Rule); err != nil {
		return p, "", fmt.Errorf("no target: %w", err)
	}
	if len(l.Body) > d.o.MaxBody {
		return p, "", fmt.Errorf(
			"unpublishable: the body has %d bytes, more than requeue.max_body %d", len(l.Body), d.o.MaxBody,
		)
	}
	properties, changes := deadletter.Sanitise(l.Properties)
	if due.Attempt.Revision > 0 {
		properties, changes = deadletter.Resent(l.Properties)
	}
	properties.Headers[deadletter.HeaderID] = string(l.ID)
	properties.Headers[deadletter.HeaderToken] = string(due.Attempt.Token)
	properties.Headers[deadletter.HeaderAttempt] = int64(due.Attempt.Number)
	if d.o.Rules.Set().Of(l.Rule).MirrorXDeath {
		properties.Headers["x-death"] = mirroredDeaths(due)
	}
	if err := deadletter.Publishable(properties); err != nil {
		return p, "", fmt.Errorf("unpublishable: %w", err)
	}
	var out []string
	for _, c := range changes {
		if c.Notable() {
			out = append(out, c.Field)
		}
	}
	if len(out) > 0 {
		changed = "left out: " + strings.Join(out, ", ")
	}
	// Nobody knows whether the earlier copy of a letter in doubt has arrived. A letter in doubt is
	// sent alone, so that it cannot put another letter in doubt.
	p = deadletter.Publishing{
		Token:      due.Attempt.Token,
		Queue:      due.Attempt.Queue,
		Properties: properties,
		Body:       l.Body,
		Alone:      due.Attempt.Outcome == deadletter.OutcomeInDoubt,
	}
	d.divert(&p, due)
	return p, changed, nil
}
