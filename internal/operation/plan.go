package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Plan is what an operation would do: a dry run.
type Plan struct {
	Action   deadletter.Verb
	Total    int
	Eligible int
	Queues   []PlanQueue // of the eligible letters, most first
	Skipped  []PlanSkip  // most first
}

// PlanQueue is the part of a plan that concerns one origin queue.
type PlanQueue struct {
	Broker, VHost, Queue string
	Letters              int
	Facts                deadletter.QueueFacts // what the broker says of it now
	Warning              string                // what to think about first; "" = nothing
}

// PlanSkip is a reason for which letters would be left alone.
type PlanSkip struct {
	Reason   string
	Letters  int
	Examples []deadletter.ID // up to 5
}

const examples = 5

// Plan says what a request would do, letter by letter as it stands now, and changes nothing.
func (d *Desk) Plan(ctx context.Context, by deadletter.Principal, action deadletter.Verb, sel query.Selection) (Plan, error) {
	rows, err := d.rows(ctx, by, action, sel)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Action: action, Total: len(rows)}
	queues := map[deadletter.Origin]int{}
	skipped := map[string]*PlanSkip{}
	for _, r := range rows {
		o := deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue}
		if reason := d.refuse(action, &r, o); reason != "" {
			s := skipped[reason]
			if s == nil {
				s = &PlanSkip{Reason: reason}
				skipped[reason] = s
			}
			if s.Letters++; len(s.Examples) < examples {
				s.Examples = append(s.Examples, r.ID)
			}
			continue
		}
		p.Eligible++
		queues[o]++
	}
	for o, n := range queues {
		q := PlanQueue{Broker: o.Broker, VHost: o.VHost, Queue: o.Queue, Letters: n, Facts: deadletter.UnknownQueue}
		if action == deadletter.VerbRequeue {
			q.Facts = d.facts(ctx, o)
			switch {
			case q.Facts.Known && !q.Facts.Exists:
				q.Warning = "the queue does not exist: its letters will be held"
			case q.Facts.Consumers == 0:
				q.Warning = "nobody consumes it: its letters will wait there"
			}
		}
		p.Queues = append(p.Queues, q)
	}
	slices.SortFunc(p.Queues, func(a, b PlanQueue) int {
		return cmp.Or(b.Letters-a.Letters, cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.VHost, b.VHost))
	})
	for _, s := range skipped {
		p.Skipped = append(p.Skipped, *s)
	}
	slices.SortFunc(p.Skipped, func(a, b PlanSkip) int { return cmp.Or(b.Letters-a.Letters, cmp.Compare(a.Reason, b.Reason)) })
	return p, nil
}

// refuse says why an action would leave a letter alone; "" when it would not.
func (d *Desk) refuse(action deadletter.Verb, r *deadletter.Row, o deadletter.Origin) string {
	if !action.May(r.State) {
		return fmt.Sprintf("it is %s, which a %s leaves alone", r.State, action)
	}
	if action == deadletter.VerbRequeue {
		if err := d.targets.Allow(o); err != nil {
			return err.Error()
		}
	}
	return ""
}
