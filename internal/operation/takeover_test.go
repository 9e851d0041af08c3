package operation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestAHaltedOperationLetsGo checks an operation that waits for a person. A plan that selects
// letters of this halted operation must name the operation, and say since when it has been waiting.
// A new operation may take these letters over. The first transaction of the new operation must
// cancel the rest of the halted one and include all of these letters, however many they are.
func TestAHaltedOperationLetsGo(t *testing.T) {
	t.Parallel()
	for name, letters := range map[string]int{"a few": 50, "more than one commit lays out": 1300} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			for n := letters; n > 0; n -= 500 {
				o.arrive("sms", min(n, 500))
			}
			o.broken = true
			first := o.start(operation.Request{Action: deadletter.VerbRequeue, Selection: selection(t, "state:dead")})
			o.advance(20 * time.Second)
			stopped := o.wantState(
				first, deadletter.OperationStopped, deadletter.PhaseWaiting, deadletter.ResultCameBack, 10,
				deadletter.ResultPending, letters-10,
			)
			if stopped.HaltedAt.IsZero() {
				t.Error("nobody knows since when it waits")
			}
			o.broken = false

			again := operation.Request{Action: deadletter.VerbDiscard, Selection: selection(t, "state:dead,scheduled")}
			plan, err := o.desk.Plan(t.Context(), deadletter.Local, again)
			o.must(err)
			if len(plan.Skipped) != 1 || plan.Skipped[0].Letters != letters-10 || plan.Skipped[0].Operation != first ||
				plan.Skipped[0].Halted != deadletter.OperationStopped || !plan.Skipped[0].HaltedAt.Equal(
				stopped.HaltedAt,
			) {
				t.Errorf("%+v", plan.Skipped)
			}
			again.TakesOver = []deadletter.OperationID{first}
			plan, err = o.desk.Plan(t.Context(), deadletter.Local, again)
			o.must(err)
			if plan.Eligible != letters || len(plan.Skipped) != 0 {
				t.Errorf("%+v", plan)
			}
			second := o.start(again)
			o.restart()
			o.advance(time.Second)
			o.wantState(
				first, deadletter.OperationCancelled, deadletter.PhaseOver, deadletter.ResultCameBack, 10,
				deadletter.ResultCancelled, letters-10,
			)
			o.wantState(second, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, letters)
			if _, err := o.desk.Plan(t.Context(), deadletter.Local, again); !errors.Is(err, deadletter.ErrConflict) {
				t.Errorf("an operation that is over was taken over: %v", err)
			}
		})
	}
}

// TestWhatRunsIsNotTakenOver checks that neither a plan nor a start can take letters over from a
// running operation.
func TestWhatRunsIsNotTakenOver(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 20)
	running := o.start(operation.Request{Action: deadletter.VerbRequeue, Selection: query.Selection{IDs: ids}})
	_, err := o.desk.Start(t.Context(), deadletter.Local, operation.Request{
		Action:    deadletter.VerbDiscard,
		Selection: query.Selection{IDs: ids},
		TakesOver: []deadletter.OperationID{running},
	})
	if !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("%v", err)
	}
	o.wantState(running, deadletter.OperationRunning, deadletter.PhaseHolding, deadletter.ResultPending, 20)
	if list, err := o.store.Operations(t.Context(), 0, 10); err != nil || len(list) != 1 {
		t.Errorf("%d operations, %v", len(list), err)
	}
}
