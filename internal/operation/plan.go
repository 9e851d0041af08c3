package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

const examples = 5

// Plan says what a request would do to the letters in their current state. It changes nothing. Its
// counts are exact.
func (d *Desk) Plan(ctx context.Context, by deadletter.Principal, r Request) (deadletter.Plan, error) {
	pace, err := d.check(&r)
	if err != nil {
		return deadletter.Plan{}, err
	}
	p := deadletter.Plan{Action: r.Action, Until: r.Selection.Until, First: r.First, To: r.To, Pace: pace}
	if p.Until.IsZero() {
		p.Until = d.store.AsOf(d.now())
	}
	shares, changed, err := d.store.Survey(ctx, r.Selection, d.maxBody)
	if err != nil {
		return deadletter.Plan{}, err
	}
	if err := d.checkAllowed(by, &r, shares); err != nil {
		return deadletter.Plan{}, err
	}
	redirected, err := d.redirectTargets(ctx)
	if err != nil {
		return deadletter.Plan{}, err
	}
	halted, err := d.haltedOperations(ctx)
	if err != nil {
		return deadletter.Plan{}, err
	}
	if err := checkTakeover(&r, halted); err != nil {
		return deadletter.Plan{}, err
	}
	queues := map[deadletter.Origin]*deadletter.PlanQueue{}
	skipped := map[string]*deadletter.PlanSkip{}
	doubtful, causes := 0, map[deadletter.GroupID]bool{}
	for i := range shares {
		s := &shares[i]
		p.Total += s.Letters
		o := deadletter.Origin{Broker: s.Origin.Broker, VHost: s.Origin.VHost, Queue: s.Origin.Queue}
		target := cmp.Or(r.To, redirected[o], o.Queue)
		if reason := d.whyRefused(&r, s, target); reason != "" {
			k := skipped[reason]
			if k == nil {
				k = &deadletter.PlanSkip{Reason: reason}
				if s.Owner != 0 && r.Action.May(s.State) {
					k.Operation = s.Owner
					if op, ok := halted[s.Owner]; ok {
						k.Halted, k.HaltedAt = op.State, op.HaltedAt
					}
				}
				skipped[reason] = k
			}
			k.Letters += s.Letters
			k.Examples = append(k.Examples, s.Examples[:min(len(s.Examples), examples-len(k.Examples))]...)
			continue
		}
		p.Eligible += s.Letters
		for _, g := range s.Causes {
			causes[g] = true
		}
		if s.InDoubt && r.trigger(s).Leaves() {
			doubtful += s.Letters
		}
		q := queues[o]
		if q == nil {
			q = &deadletter.PlanQueue{
				Broker: o.Broker,
				VHost:  o.VHost,
				Queue:  o.Queue,
				Target: target,
				Facts:  deadletter.UnknownQueue,
			}
			queues[o] = q
		}
		q.Letters += s.Letters
		q.Leaves = q.Leaves || r.Action.Sends() || r.makesDue(s)
		if s.CameBack != 0 {
			q.CameBack += s.Letters
			q.Last = max(q.Last, s.CameBack)
		}
	}
	p.Causes = len(causes)
	for _, q := range queues {
		if q.Last != 0 {
			last, err := d.store.Operation(ctx, q.Last)
			if err != nil {
				return deadletter.Plan{}, err
			}
			q.LastAt = last.CreatedAt
		}
		to := deadletter.Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Target}
		if q.Leaves {
			q.Away = d.away(to)
		}
		if q.Away != "" && !slices.Contains(p.Warnings, q.Away) {
			p.Warnings = append(p.Warnings, q.Away)
		}
		if r.Action.Sends() {
			q.Facts = d.facts(ctx, to)
			q.Warning = strings.Join(warnings(q, pace), "; ")
		}
		p.Queues = append(p.Queues, *q)
	}
	slices.Sort(p.Warnings)
	slices.SortFunc(p.Queues, func(a, b deadletter.PlanQueue) int {
		return cmp.Or(
			b.Letters-a.Letters, cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Broker, b.Broker),
			cmp.Compare(a.VHost, b.VHost),
		)
	})
	for _, k := range skipped {
		p.Skipped = append(p.Skipped, *k)
	}
	slices.SortFunc(
		p.Skipped, func(a, b deadletter.PlanSkip) int {
			return cmp.Or(b.Letters-a.Letters, cmp.Compare(a.Reason, b.Reason))
		},
	)
	if doubtful > 0 {
		p.Warnings = append(
			p.Warnings,
			fmt.Sprintf(
				"%d of them may already be in their queue, because the answer to their last attempt was lost; they may arrive twice",
				doubtful,
			),
		)
	}
	if changed > 0 {
		p.Warnings = append(
			p.Warnings, fmt.Sprintf("%d letters have changed since they were shown, and are left out", changed),
		)
	}
	if r.Selection.Query != nil {
		n, err := d.store.Unindexed(ctx)
		if err != nil {
			return deadletter.Plan{}, err
		}
		if n > 0 && needsTextIndex(*r.Selection.Query) {
			p.Warnings = append(
				p.Warnings,
				fmt.Sprintf("%d letters are not in the text index yet, so they are not in the selection", n),
			)
		}
	}
	return p, nil
}

// haltedOperations returns the operations that wait for a person, by id.
func (d *Desk) haltedOperations(ctx context.Context) (map[deadletter.OperationID]*deadletter.Operation, error) {
	list, err := d.store.HaltedOperations(ctx)
	out := make(map[deadletter.OperationID]*deadletter.Operation, len(list))
	for i := range list {
		out[list[i].ID] = &list[i]
	}
	return out, err
}

// checkTakeover returns an error if a request takes over an operation that is neither paused nor
// stopped.
func checkTakeover(r *Request, halted map[deadletter.OperationID]*deadletter.Operation) error {
	for _, id := range r.TakesOver {
		if halted[id] == nil {
			return fmt.Errorf(
				"%w: operation %s is neither paused nor stopped, so its rest cannot be taken over",
				deadletter.ErrConflict, id,
			)
		}
	}
	return nil
}

// needsTextIndex reports whether a query needs the text index.
func needsTextIndex(q query.Query) bool {
	return slices.ContainsFunc(q.Terms, func(t query.Term) bool { return t.Field.Indexed() })
}

// trigger returns the event that the action of a request causes for the letters of a share, for
// example that they are released. The event determines the next state of these letters.
func (r *Request) trigger(s *deadletter.Share) deadletter.Trigger {
	return r.Action.Trigger(s.HeldFrom, s.Origin.Queue == "")
}

// makesDue reports whether the action of a request makes the letters of a share due, so that the
// dispatcher sends them. A requeue does this. The release of held letters does it too, if their
// retry is already due.
func (r *Request) makesDue(s *deadletter.Share) bool {
	trigger := r.trigger(s)
	return trigger == deadletter.Timing || trigger == deadletter.ReleasedDue
}

// whyRefused returns the reason why an action would skip the letters of a share, which is a set of
// letters that a plan treats alike. If the action would act on them, it returns "".
func (d *Desk) whyRefused(r *Request, s *deadletter.Share, target string) string {
	if s.InBroker {
		return deadletter.WhyInBroker
	}
	if !r.Action.May(s.State) {
		return fmt.Sprintf("it is %s, which cannot be %s", s.State, r.Action.Past())
	}
	if s.Owner != 0 && !slices.Contains(r.TakesOver, s.Owner) {
		return fmt.Sprintf("operation %s has it", s.Owner)
	}
	if s.Restored && !r.Restored && r.trigger(s).Leaves() {
		return deadletter.WhyRestored
	}
	due := r.makesDue(s)
	if !r.Action.Sends() && !due {
		return ""
	}
	to := s.Origin
	to.Queue = target
	if err := d.targets.Allow(to); err != nil {
		return err.Error()
	}
	if due {
		return ""
	}
	if s.Oversize {
		return fmt.Sprintf("its body is larger than requeue.max_body, %d bytes", d.maxBody)
	}
	return s.Unpublishable
}

// warnings returns what a person should consider before letters are sent to a queue.
func warnings(q *deadletter.PlanQueue, pace deadletter.Pace) []string {
	var list []string
	f := q.Facts
	switch {
	case f.Known && !f.Exists:
		list = append(list, "the queue does not exist: its letters will be held, and can be sent elsewhere")
	case f.Consumers == 0:
		list = append(list, "nobody consumes it: its letters will wait there")
	}
	if pace.MaxDepth > 0 && f.Ready >= pace.MaxDepth {
		list = append(
			list,
			fmt.Sprintf(
				"it has %d messages now, so the operation will wait until it has fewer than %d", f.Ready, pace.MaxDepth,
			),
		)
	}
	if pace.MaxDepth > 0 && f.Ready < 0 && (f.Exists || !f.Known && q.Away == "") {
		list = append(
			list,
			fmt.Sprintf(
				"its depth is unknown, so the limit of %d cannot be kept; the management API would tell", pace.MaxDepth,
			),
		)
	}
	if f.MaxLength > 0 && f.Ready >= 0 && f.Ready+q.Letters > f.MaxLength {
		list = append(
			list,
			fmt.Sprintf(
				"it holds at most %d messages and has %d: it will refuse or drop the excess, unless it is consumed meanwhile",
				f.MaxLength, f.Ready,
			),
		)
	}
	if f.DeadLetters == deadletter.DeadLettersNowhere {
		list = append(
			list, "messages that die in it are not dead-lettered: a letter that fails there again would be lost",
		)
	}
	if f.SingleActive {
		list = append(
			list,
			"it has a single active consumer, for which order matters: these letters come after all that are in it",
		)
	}
	if q.CameBack > 0 {
		list = append(
			list,
			fmt.Sprintf(
				"%d of them came back after people requeued them, the last time in %s at %s", q.CameBack, q.Last,
				q.LastAt.UTC().Format("2006-01-02 15:04 UTC"),
			),
		)
	}
	return list
}
