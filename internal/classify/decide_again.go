package classify

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// DecideAgain finds out what the current rules would do with letters that wait for a retry. It
// returns one decision for each letter, in the same order, and changes nothing.
//
// DecideAgain computes due times and ages from the time at which the letter died, and not from the
// present time, so that rules which did not change decide as before. It decodes one body at a time,
// so it needs the memory for one body. It stops when ctx ends.
func (c *Classifier) DecideAgain(ctx context.Context, letters []deadletter.Waiting) ([]deadletter.NewDecision, error) {
	decided := make([]deadletter.NewDecision, 0, len(letters))
	for i := range letters {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		decided = append(decided, c.decideAgain(&letters[i]))
	}
	return decided, nil
}

func (c *Classifier) decideAgain(l *deadletter.Waiting) deadletter.NewDecision {
	a := deadletter.NewDecision{
		Letter:    l.ID,
		Origin:    l.Origin(),
		Rule:      l.Rule,
		Severity:  l.Severity,
		Why:       l.Why,
		DueAt:     l.DueAt,
		WasRule:   l.Rule,
		WasDueAt:  l.DueAt,
		ChangedAt: l.ChangedAt,
	}
	switch {
	case l.State != deadletter.StateScheduled:
		a.Left = deadletter.LeftChanged
	case l.Operation != 0:
		a.Left = "an operation has released it"
	case l.WaitsIn != "":
		a.Left = "it waits in the broker"
	case l.Chosen:
		a.Left = "someone set its due time"
	case l.Tried():
		a.Left = "dlo made it for a trial"
	case l.Undecodable():
		a.Left = "it cannot be read"
	}
	if a.Left != "" {
		return a
	}
	facts := c.Facts(&l.Letter)
	facts.Age = l.Since.Sub(l.ReceivedAt)
	d := c.o.Rules.Set().Decide(facts)
	// The field Why is empty if a queue or the broker rejected the letter, or if a person released
	// it. No rule set the due time of such a letter, so no rule changes it now.
	same := d.Why == l.Why || l.Why == ""
	retried := d.Outcome == deadletter.RuleRetry
	if retried && same && d.Rule == l.Rule && d.Severity == l.Severity {
		return a
	}
	if err := c.o.Targets.Configured(l.Origin()); retried && err != nil {
		a.Left = err.Error()
		return a
	}
	a.Outcome, a.Rule, a.Severity, a.Channels = d.Outcome, d.Rule, d.Severity, d.Notify
	switch {
	case !retried:
		a.Why, a.DueAt = d.Why, time.Time{}
	case !same:
		a.Why, a.DueAt = d.Why, latest(l.Since.Add(d.Delay), c.o.Now())
	}
	if retried {
		a.ToldBy = a.DueAt.Add(d.Rest - d.Delay + deadletter.ToldAfter)
	}
	return a
}

// Applied must be called after decisions of DecideAgain have been recorded. In the metrics, it
// counts the letters that became dead. It also calls the function "Done" of the options.
func (c *Classifier) Applied(recorded []deadletter.NewDecision) {
	for i := range recorded {
		if a := &recorded[i]; c.o.Metrics != nil && a.Outcome == deadletter.RuleDead {
			c.o.Metrics.dead.WithLabelValues(c.o.Metrics.queues.Of(a.Origin.Queue), string(a.Severity)).Inc()
		}
	}
	if c.o.Done != nil {
		c.o.Done()
	}
}
