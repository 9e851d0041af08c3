package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Waiters is the part of the store that Apply needs. It reads letters that wait for a retry, and
// records new decisions about them.
type Waiters interface {
	// Waiting returns the next waiting letters that match a query, complete with their bodies and
	// ordered by id. It returns only letters whose id is greater than "after", and whose serial
	// number, which grows with the time of receipt, is less than "until".
	Waiting(ctx context.Context, q query.Query, after deadletter.ID, until int64) ([]deadletter.Waiting, error)
	// RecordDecisions records decisions in one transaction. For each decision, the result says whether
	// it was recorded. Letters that have changed since they were read are skipped.
	RecordDecisions(ctx context.Context, by string, list []deadletter.NewDecision) ([]bool, error)
	// Record appends an event to the audit log.
	Record(ctx context.Context, a deadletter.Act) error
}

// Decider decides about letters with the current rules.
type Decider interface {
	DecideAgain(ctx context.Context, letters []deadletter.Waiting) ([]deadletter.NewDecision, error)
	Applied(recorded []deadletter.NewDecision)
}

// ApplyRequest is a request to decide again, with the current rules, about letters that wait for a
// retry.
type ApplyRequest struct {
	Query  query.Query // selects some of the waiting letters; empty = all of them
	DryRun bool
	Reason string // reason for the audit; may be empty
}

const appliedExamples = 3

// Apply decides again, with the current rules, about letters that wait for a retry. It records the
// new decisions, except in a dry run. It skips letters whose due time a person chose, and letters
// that an operation released. Only one call runs at a time. If ctx is done before the end, the
// result is about the letters that were already processed.
func (d *Desk) Apply(ctx context.Context, by deadletter.Principal, r ApplyRequest) (rules.Applied, error) {
	if len(r.Reason) > maxReason {
		return rules.Applied{}, deadletter.FieldErrors{
			{Field: "reason", Why: fmt.Sprintf("a reason has at most %d bytes", maxReason)},
		}
	}
	if d.decider == nil {
		return rules.Applied{}, deadletter.ErrNotFound
	}
	// this survey of up to half a million letters is not needed if the caller may act on all
	// letters
	if !by.MayToAll(deadletter.VerbReschedule) {
		shares, _, err := d.store.Survey(ctx, query.Selection{Query: &r.Query}, d.maxBody)
		if err != nil {
			return rules.Applied{}, err
		}
		for _, s := range shares {
			if err := deadletter.Allow(by, deadletter.VerbReschedule, s.Place()); err != nil {
				return rules.Applied{}, err
			}
		}
	}
	select {
	case d.applying <- struct{}{}:
		defer func() { <-d.applying }()
	case <-ctx.Done():
		return rules.Applied{}, ctx.Err()
	}
	a := applying{
		by:      by,
		kinds:   map[[2]rules.Decided]*rules.AppliedChange{},
		Applied: rules.Applied{DryRun: r.DryRun, Left: map[string]int{}},
	}
	err := d.apply(ctx, r.Query, &a)
	if err != nil && ctx.Err() != nil {
		a.Stopped, err = true, nil
	}
	for _, c := range a.kinds {
		a.Changes = append(a.Changes, *c)
	}
	slices.SortFunc(a.Changes, func(x, y rules.AppliedChange) int {
		return cmp.Or(
			cmp.Compare(y.Letters, x.Letters), strings.Compare(x.From.Rule, y.From.Rule),
			strings.Compare(x.To.Rule, y.To.Rule), cmp.Compare(x.To.Outcome, y.To.Outcome),
		)
	})
	if r.DryRun || err != nil && len(a.Changes) == 0 {
		return a.Applied, err
	}
	recordErr := d.store.Record(context.WithoutCancel(ctx), a.auditAct(&r, err))
	if err == nil {
		err = recordErr
	}
	return a.Applied, err
}

// applying is the state of a running call of Apply.
type applying struct {
	rules.Applied
	by    deadletter.Principal
	kinds map[[2]rules.Decided]*rules.AppliedChange
}

// apply decides about all matching letters, in batches.
func (d *Desk) apply(ctx context.Context, q query.Query, a *applying) error {
	until := deadletter.SerialAt(d.now()) + 1<<12 // includes letters that were received in this millisecond
	for after := deadletter.ID(""); ; {
		letters, err := d.store.Waiting(ctx, q, after, until)
		if err != nil || len(letters) == 0 {
			return err
		}
		after = letters[len(letters)-1].ID
		for i := range letters {
			// a letter may have arrived after the survey
			if err := deadletter.Allow(a.by, deadletter.VerbReschedule, letters[i].Place()); err != nil {
				return err
			}
		}
		decided, err := d.decider.DecideAgain(ctx, letters)
		if err != nil {
			return err
		}
		if err := d.record(ctx, a, decided); err != nil {
			return err
		}
	}
}

// record records the decisions of one batch and counts them.
func (d *Desk) record(ctx context.Context, a *applying, decided []deadletter.NewDecision) error {
	var changes []deadletter.NewDecision
	left := map[string]int{}
	for _, one := range decided {
		switch {
		case one.Left != "":
			left[one.Left]++
		case one.Outcome != "":
			changes = append(changes, one)
		}
	}
	unchanged := len(decided) - len(changes)
	for _, n := range left {
		unchanged -= n
	}
	if !a.DryRun && len(changes) > 0 {
		recorded, err := d.store.RecordDecisions(ctx, a.by.Name, changes)
		if err != nil {
			return err
		}
		kept := changes[:0]
		for i, ok := range recorded {
			if ok {
				kept = append(kept, changes[i])
			} else {
				left[deadletter.LeftChanged]++
			}
		}
		changes = kept
		d.decider.Applied(changes)
	}
	a.Looked += len(decided)
	a.Unchanged += unchanged
	for reason, n := range left {
		a.Left[reason] += n
	}
	for _, one := range changes {
		a.count(one)
	}
	return nil
}

func (a *applying) count(one deadletter.NewDecision) {
	kind := [2]rules.Decided{{Rule: one.WasRule, Outcome: deadletter.RuleRetry}, {Rule: one.Rule, Outcome: one.Outcome}}
	c := a.kinds[kind]
	if c == nil {
		c = &rules.AppliedChange{From: kind[0], To: kind[1]}
		a.kinds[kind] = c
	}
	c.Letters++
	if len(c.Examples) < appliedExamples {
		c.Examples = append(c.Examples, one.Letter)
	}
}

// auditAct returns the entry for the audit log. It contains how many letters were processed and how
// many decisions changed.
func (a *applying) auditAct(r *ApplyRequest, failed error) deadletter.Act {
	act := deadletter.Act{
		Kind:    deadletter.ActRulesApplied,
		Actor:   a.by.Name,
		Detail:  a.auditText(r, failed),
		Targets: []deadletter.Target{{Kind: deadletter.TargetRules}},
		Asked:   deadletter.Amount(a.Looked),
	}
	for _, c := range a.Changes {
		act.Done += deadletter.Amount(c.Letters)
	}
	return act
}

// auditText returns the text for the audit log that describes a call of Apply.
func (a *applying) auditText(r *ApplyRequest, failed error) string {
	n := map[deadletter.RuleOutcome]int{}
	for _, c := range a.Changes {
		n[c.To.Outcome] += c.Letters
	}
	var became []string
	for _, o := range deadletter.RuleOutcomes {
		text := fmt.Sprintf("%d %s", n[o], o.Past())
		if o == deadletter.RuleRetry {
			text += " otherwise"
		}
		became = append(became, text)
	}
	left := 0
	for _, letters := range a.Left {
		left += letters
	}
	which := "all that are scheduled"
	if text := r.Query.Fixed().String(); text != "" {
		which = "those scheduled of " + deadletter.Visible(text)
	}
	text := fmt.Sprintf(
		"to %d letters, %s: %s, %d unchanged, %d left alone", a.Looked, which, strings.Join(became, ", "), a.Unchanged,
		left,
	)
	if a.Stopped || failed != nil {
		text += "; stopped before the end"
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}
