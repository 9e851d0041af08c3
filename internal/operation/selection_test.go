package operation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestOverlappingOperations checks that a letter belongs to one operation at a time. Another
// operation must skip the letter and say which operation has it.
func TestOverlappingOperations(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 30)
	first := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: query.Selection{IDs: ids[:20]},
		Pace:      operation.Pace{Canary: ptr(0)},
	})
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, operation.Request{
		Action: deadletter.VerbDiscard, Selection: selection(t, "queue:sms"),
	})
	o.must(err)
	if plan.Total != 30 || plan.Eligible != 10 || len(plan.Skipped) != 1 || plan.Skipped[0].Letters != 20 ||
		plan.Skipped[0].Reason != "operation "+first.String()+" has it" {
		t.Errorf("%+v", plan)
	}
	second := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Canary: ptr(0), Hold: ptr(time.Duration(0))},
	})
	o.advance(30 * time.Second)
	o.wantState(
		second, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 10,
		deadletter.ResultSkipped, 20,
	)
	o.wantState(first, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 20)
	seen := map[deadletter.ID]int{}
	for _, d := range o.sent {
		seen[d.Letter.ID]++
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("letter %s left %d times", id, n)
		}
	}
	skipped, _, err := o.store.OperationLetters(
		t.Context(), second, []deadletter.Result{deadletter.ResultSkipped}, "", 50,
	)
	if err != nil || len(skipped) != 20 || skipped[0].Reason != "operation "+first.String()+" has it" {
		t.Errorf("%v, %v", skipped, err)
	}
}

// TestASelectionNeverWidens checks letters that arrive or change after the plan was shown. The
// operation must report them and must not act on them. It must never act on more letters than were
// shown.
func TestASelectionNeverWidens(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 10)
	o.at = o.at.Add(time.Second)
	sel := selection(t, "state:dead")
	sel.Until = o.at
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, operation.Request{
		Action: deadletter.VerbHold, Selection: sel,
	})
	if err != nil || plan.Eligible != 10 || !plan.Until.Equal(o.at) {
		t.Fatal(plan, err)
	}
	o.at = o.at.Add(time.Second)
	o.arrive("sms", 5)
	gone := o.start(operation.Request{Action: deadletter.VerbDiscard, Selection: query.Selection{IDs: ids[:2]}})
	o.advance(time.Second)
	back := o.start(operation.Request{Action: deadletter.VerbRestore, Selection: query.Selection{IDs: ids[:1]}})
	o.advance(time.Second)
	o.wantState(gone, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 2)
	o.wantState(back, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 1)
	id := o.start(operation.Request{Action: deadletter.VerbHold, Selection: sel, Expect: plan.Total})
	o.advance(time.Second)
	// the restored letter and the five new ones
	if op := o.wantState(
		id, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 8,
	); op.Changed != 6 {
		t.Errorf("%d letters changed", op.Changed)
	}
	_, err = o.desk.Start(t.Context(), deadletter.Local, operation.Request{
		Action: deadletter.VerbRelease, Selection: selection(t, "state:held"), Expect: 7,
	})
	if !errors.Is(err, deadletter.ErrConflict) ||
		!strings.Contains(err.Error(), "8 letters match now, but 7 were shown") {
		t.Error(err)
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 10)
	id := o.start(operation.Request{
		Action:    deadletter.VerbDiscard,
		Selection: selection(t, "state:dead"),
		First:     3,
		Pace:      operation.Pace{Newest: true},
	})
	o.advance(time.Second)
	o.wantState(id, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 3)
	rows, err := o.store.Rows(t.Context(), ids[7:])
	o.must(err)
	for _, r := range rows {
		if r.State != deadletter.StateDiscarded {
			t.Errorf("%s is %s", r.ID, r.State)
		}
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 3)
	all := selection(t, "queue:sms")
	for _, c := range []struct {
		name string
		r    operation.Request
		err  error
		want string
	}{
		{"nothing", operation.Request{Action: deadletter.VerbRequeue}, deadletter.ErrInvalid, "no letter is selected"},
		{
			"a query that nothing matches",
			operation.Request{Action: deadletter.VerbRequeue, Selection: selection(t, "queue:none")},
			deadletter.ErrInvalid,
			"no letter is selected",
		},
		{
			"both",
			operation.Request{Action: deadletter.VerbRequeue, Selection: query.Selection{Query: all.Query, IDs: ids}},
			deadletter.ErrInvalid,
			"not both",
		},
		{"an unknown action", operation.Request{Action: "bury", Selection: all}, deadletter.ErrInvalid, "bury"},
		{
			"a letter that is not there",
			operation.Request{
				Action:    deadletter.VerbRequeue,
				Selection: query.Selection{IDs: []deadletter.ID{deadletter.NewID(1, 2)}},
			},
			deadletter.ErrNotFound,
			"",
		},
		{
			"a rate of zero",
			operation.Request{Action: deadletter.VerbRequeue, Selection: all, Pace: operation.Pace{Rate: ptr(0.0)}},
			deadletter.ErrInvalid,
			"rate is above 0",
		},
		{
			"stop at 101 %",
			operation.Request{Action: deadletter.VerbRequeue, Selection: all, Pace: operation.Pace{StopAt: ptr(101.0)}},
			deadletter.ErrInvalid,
			"stop_at",
		},
		{
			"a canary below zero",
			operation.Request{Action: deadletter.VerbRequeue, Selection: all, Pace: operation.Pace{Canary: ptr(-1)}},
			deadletter.ErrInvalid,
			"canary",
		},
		{
			"a discard to another queue",
			operation.Request{Action: deadletter.VerbDiscard, Selection: all, To: "email"},
			deadletter.ErrInvalid,
			"only a requeue",
		},
		{
			"a selection of tomorrow",
			operation.Request{
				Action:    deadletter.VerbDiscard,
				Selection: query.Selection{Query: all.Query, Until: o.at.Add(time.Hour)},
			},
			deadletter.ErrInvalid,
			"future",
		},
	} {
		_, err := o.desk.Start(t.Context(), deadletter.Local, c.r)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := o.desk.Plan(
			t.Context(), deadletter.Local, c.r,
		); c.name != "a query that nothing matches" && !errors.Is(err, c.err) {
			t.Errorf("%s, planned: %v", c.name, err)
		}
	}
	list, err := o.store.Operations(t.Context(), 0, 10)
	if err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	keyed := operation.Request{Action: deadletter.VerbHold, Selection: query.Selection{IDs: ids}, Key: "k"}
	first := o.start(keyed)
	if again := o.start(keyed); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	keyed.Selection.IDs = ids[:1]
	if _, err := o.desk.Start(t.Context(), deadletter.Local, keyed); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("a key that is used again: %v", err)
	}
	later := operation.Request{
		Action:    deadletter.VerbReschedule,
		Selection: query.Selection{IDs: ids},
		Key:       "in an hour",
		DueAt:     time.Now().Add(time.Hour),
		DueIn:     time.Hour,
	}
	first = o.start(later)
	later.DueAt = later.DueAt.Add(time.Second) // the request of a second click
	if again := o.start(later); again != first {
		t.Errorf("%s, then %s", first, again)
	}
}
