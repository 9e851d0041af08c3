package requeue

import (
	"cmp"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// mark returns what the store must record about a letter after an attempt to send it. This depends
// on the outcome of the attempt, for example a confirm or a rejection.
func (d *Dispatcher) mark(due *deadletter.Due, p *deadletter.Publishing, o deadletter.Outcome) deadletter.Mark {
	m := deadletter.Mark{
		Letter:   due.Letter.ID,
		Token:    o.Token,
		Outcome:  o.Kind,
		Detail:   o.Detail,
		Channels: d.o.Rules.Set().Told(due.Letter.Rule),
	}
	now := d.o.Now()
	if o.Kind != deadletter.OutcomeConfirmed && o.Kind != deadletter.OutcomeInDoubt {
		d.breakers.uncount(due.Letter.ID)
	}
	switch {
	case due.Attempt.Outcome == deadletter.OutcomeInDoubt &&
		(o.Kind == deadletter.OutcomeUnsent || o.Kind == deadletter.OutcomeNacked ||
			p.Wait != nil && o.Kind != deadletter.OutcomeConfirmed):
		// dlo has sent the letter more than once with the same token. The last message did not
		// arrive, but an earlier one may have arrived. The next message must therefore have the same
		// token as well.
		m.Outcome, m.Resend, m.DueAt = deadletter.OutcomeInDoubt, true, now.Add(d.o.Nack.delay(due.Attempt.Sends-1))
		if o.Kind == deadletter.OutcomeUnsent {
			m.DueAt = now.Add(unsentAgain)
		}
		return m
	case p.Wait == nil || o.Kind == deadletter.OutcomeInDoubt:
	case o.Kind == deadletter.OutcomeConfirmed:
		m.WaitsIn, m.DueAt = p.Wait.Queue, now.Add(p.WaitFor)
		return m
	default:
		m.Stays, m.DueAt = true, due.Letter.DueAt
		if o.Kind == deadletter.OutcomeReturned {
			m.Detail = fmt.Sprintf("wait queue %s does not exist (%s)", p.Wait.Queue, o.Detail)
		}
		return m
	}
	switch o.Kind {
	case deadletter.OutcomeConfirmed:
		m.DueAt = now.Add(d.watchTime(due.Letter.Rule))
		d.nacking.forget(due.Attempt.Queue)
		m.Depth = d.depth.readyIn(due.Attempt.Queue, now)
	case deadletter.OutcomeReturned:
		m.Detail = fmt.Sprintf(
			"no target: queue %s does not exist (%s)", deadletter.Visible(due.Attempt.Queue), o.Detail,
		)
	case deadletter.OutcomeNacked:
		m.DueAt = now.Add(d.o.Nack.delay(due.Letter.Nacks))
		queue := deadletter.Visible(due.Attempt.Queue)
		since := d.nacking.firstSeen(due.Attempt.Queue, now)
		switch {
		case d.o.Nack.NoticeAge > 0 && now.Sub(since) >= d.o.Nack.NoticeAge:
			m.Notice = &deadletter.Notice{
				Kind:     deadletter.NoticeRefused,
				Key:      fmt.Sprintf("nacking %s %s", d.o.Broker, queue),
				Severity: deadletter.SeverityNotify,
				Text: fmt.Sprintf(
					"queue %s has refused every letter since %s; it is full, or its overflow setting rejects them",
					queue, since.UTC().Format(time.RFC3339),
				),
			}
		case due.Letter.Nacks+1 == d.o.Nack.NoticeAfter:
			m.Notice = &deadletter.Notice{
				Kind:     deadletter.NoticeRefused,
				Key:      fmt.Sprintf("nacks %s %s", d.o.Broker, queue),
				Severity: deadletter.SeverityNotify,
				Letter:   due.Letter.ID,
				Text: fmt.Sprintf(
					"queue %s has refused letter %s %d times; it is full, or its overflow setting rejects them", queue,
					due.Letter.ID.Short(), d.o.Nack.NoticeAfter,
				),
			}
		}
		if m.Notice != nil {
			m.Notice.Channels = d.o.Rules.Set().Told(due.Letter.Rule)
		}
	case deadletter.OutcomeInDoubt:
		if m.Resend = d.inDoubt(due) == Republish; m.Resend {
			// a queue that never replies is tried less and less often
			m.DueAt = now.Add(d.o.Nack.delay(due.Attempt.Sends - 1))
		} else {
			m.Detail = "in doubt: " + o.Detail + "; requeue it only if a second arrival does no harm"
		}
	case deadletter.OutcomeUnsent:
		m.DueAt = now.Add(unsentAgain)
	}
	return m
}

// watchTime returns how long letters of a rule are watched. If the rule sets no time, the time of
// the configuration applies.
func (d *Dispatcher) watchTime(rule string) time.Duration {
	return cmp.Or(d.o.Rules.Set().Of(rule).Watch, d.o.Watch)
}

// inDoubt returns the treatment of a letter whose reply was lost. If the rule of the letter sets no
// treatment, that of the configuration applies.
func (d *Dispatcher) inDoubt(due *deadletter.Due) InDoubt {
	return cmp.Or(InDoubt(d.o.Rules.Set().Of(due.Letter.Rule).InDoubt), d.o.InDoubt)
}

func (n Nack) delay(before int) time.Duration {
	d := n.First
	for range min(before, 30) {
		if d *= 2; d >= n.Max {
			return n.Max
		}
	}
	return min(d, n.Max)
}
