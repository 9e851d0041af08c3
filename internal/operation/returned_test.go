package operation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/google/go-cmp/cmp"
)

// TestWhatCameBackSaysOfWhat lets five letters come back: two with their old error and three with
// another error. Each row must show the current error of its letter, and whether it is the old
// error. The operation must show how many letters came back with each error.
func TestWhatCameBackSaysOfWhat(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 5)
	o.error = func(id deadletter.ID) string {
		if slices.Index(ids, id) < 2 {
			return "g"
		}
		return "no such template"
	}
	o.broken = true
	op := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "state:dead"),
		Pace:      operation.Pace{Canary: ptr(0), StopAt: ptr(0.0)},
	})
	o.advance(20 * time.Second)
	o.wantState(op, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultCameBack, 5)

	list, _, err := o.store.OperationLetters(t.Context(), op, []deadletter.Result{deadletter.ResultCameBack}, "", 100)
	o.must(err)
	for i, l := range list {
		same, known := l.SameError()
		want := o.error(ids[i])
		if l.Letter != ids[i] || l.State != deadletter.StateDead || l.Error != want || same != (want == "g") || !known {
			t.Errorf("letter %d: %+v, the same error: %v, known: %v", i, l, same, known)
		}
	}
	returned, err := o.store.BackGroups(t.Context(), op, 10)
	o.must(err)
	if diff := cmp.Diff([]deadletter.BackGroup{
		{Group: list[4].Group, Title: "no such template", Letters: 3},
		{Group: list[0].Group, Title: "g", Letters: 2, Same: true},
	}, returned); diff != "" {
		t.Error(diff)
	}
	if few, err := o.store.BackGroups(t.Context(), op, 1); len(few) != 1 || err != nil {
		t.Error(few, err)
	}
}
