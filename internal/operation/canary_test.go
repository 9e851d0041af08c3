package operation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestTheCanaryStopsIt uses a worker that is still broken. Only the canary, which is the first few
// letters of an operation, may be sent. After the worker is repaired, the operation must continue
// with another canary.
func TestTheCanaryStopsIt(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 40)
	o.broken = true
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms state:dead"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0))},
	})
	o.advance(time.Minute)
	op := o.wantState(
		id, deadletter.OperationStopped, deadletter.PhaseWaiting, deadletter.ResultCameBack, operation.DefaultCanary,
		deadletter.ResultPending, 40-operation.DefaultCanary,
	)
	if len(o.sent) != operation.DefaultCanary || op.Why != "10 of 10 came back: 100%, more than 5%" {
		t.Errorf("%d letters left; %s", len(o.sent), op.Why)
	}
	o.advance(time.Hour)
	o.wantState(id, deadletter.OperationStopped, deadletter.PhaseWaiting)
	o.restart()
	o.broken = false
	first := len(o.sent)
	o.must(o.desk.Resume(t.Context(), deadletter.Local, id))
	o.advance(time.Second)
	o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseWaiting, deadletter.ResultConfirmed, operation.DefaultCanary,
		deadletter.ResultCameBack, first,
	)
	o.advance(15 * time.Minute)
	o.wantState(
		id, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultQuiet, 40-first, deadletter.ResultCameBack,
		first,
	)
}

// TestItStopsWhenTooManyComeBack breaks the worker in the middle of an operation. The operation
// must stop when too many letters have come back. It must count all letters that came back,
// including those that came back early, while the operation still watched its first letters (the
// canary).
func TestItStopsWhenTooManyComeBack(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 200)
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0), Rate: ptr(20.0), StopAt: ptr(20.0)},
	})
	o.advance(4 * time.Second)
	o.broken = true
	o.advance(10 * time.Second)
	op := o.wantState(id, deadletter.OperationStopped, deadletter.PhaseSending)
	back, sent := op.Counts[deadletter.ResultCameBack], len(o.sent)
	if back*100 <= 20*sent || back*100 > 30*sent {
		t.Errorf("stopped at %d of %d", back, sent)
	}
}

// TestACanaryWaitsForADeepQueue fills the target queue while an operation sends its canary, which
// is the first few letters. The operation must wait. When the queue is empty again, the operation
// must send the rest of this canary, and must not begin another one.
func TestACanaryWaitsForADeepQueue(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 100)
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Rate: ptr(1.0), MaxDepth: ptr(50)},
	})
	o.advance(4 * time.Second)
	o.depth["sms"] = 60
	o.advance(3 * time.Second)
	if n := len(o.sent); n == 0 || n >= operation.DefaultCanary {
		t.Fatalf("%d letters left", n)
	}
	o.depth["sms"] = 0
	o.advance(30 * time.Second)
	o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseWaiting, deadletter.ResultConfirmed, operation.DefaultCanary,
	)
}

// TestLateReturnsAreNotThoseOfTheCanary covers an operation that stops by itself. A person resumes
// it, and only then do letters come back that it sent before the stop. The resumed operation sends
// a new canary first. The old letters must not count as failures of this canary.
func TestLateReturnsAreNotThoseOfTheCanary(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 200)
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), CanaryWait: ptr(time.Second), Rate: ptr(20.0)},
	})
	o.advance(15 * time.Second)
	first := len(o.sent)
	late := o.sent[12:30]
	o.back = o.sent[:12]
	o.advance(time.Second)
	if op := o.wantState(id, deadletter.OperationStopped, deadletter.PhaseSending); op.Sent() < 50 {
		t.Fatalf("%d sent", op.Sent())
	}
	o.must(o.desk.Resume(t.Context(), deadletter.Local, id))
	o.advance(time.Second)
	o.back = late
	o.advance(30 * time.Second)
	o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultCameBack, 30,
		deadletter.ResultConfirmed, 170,
	)
	if len(o.sent) != 200 || first >= 200 {
		t.Errorf("%d sent, %d at first", len(o.sent), first)
	}
}

// causes lets letters of four causes arrive: 20, 4, 2 and 1 of them.
func causes(t *testing.T) (o *office, cause map[deadletter.ID]string, all query.Selection) {
	o = open(t)
	cause = map[deadletter.ID]string{}
	for i, n := range []int{20, 4, 2, 1} {
		why := string(rune('a' + i))
		o.error = func(deadletter.ID) string { return why }
		for _, id := range o.arrive("sms", n) {
			cause[id] = why
		}
	}
	o.error = func(id deadletter.ID) string { return cause[id] }
	return o, cause, selection(t, "queue:sms")
}

// TestACanaryTriesEachCause checks an operation on letters of four causes. Its canary must have a
// letter of each cause, as far as its size allows, and then the first letters in the order of the
// operation. The plan must say how many causes there are. The next canary after an automatic stop
// must also have a letter of each cause.
func TestACanaryTriesEachCause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		action      deadletter.Verb
		newest      deadletter.NewestFirst
		canary      int
		first, next string // causes of the first canary, and of the next one, sorted
	}{
		{"oldest", deadletter.VerbRequeue, false, 10, "aaaaaaabcd", "aaaaaaaabc"},
		{"newest", deadletter.VerbRequeue, true, 5, "abccd", "aabbb"},
		{"smaller than the causes", deadletter.VerbRequeue, false, 3, "abc", "abc"},
		{"edited", deadletter.VerbEdit, false, 10, "aaaaaaabcd", "aaaaaaaabc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, cause, all := causes(t)
			r := operation.Request{
				Action: c.action, Selection: all, Reason: "r",
				Pace: operation.Pace{Hold: ptr(time.Duration(0)), Canary: &c.canary, Newest: c.newest},
			}
			if c.action == deadletter.VerbEdit {
				r.Patch = []byte(`"!"`)
			}
			plan, err := o.desk.Plan(t.Context(), deadletter.Local, r)
			o.must(err)
			if plan.Causes != 4 || plan.CanaryCauses() != min(4, c.canary) {
				t.Errorf("a plan of %d causes, %d of the canary", plan.Causes, plan.CanaryCauses())
			}
			sent := func(from int) string {
				var list []string
				for _, d := range o.sent[from:] {
					list = append(list, cause[d.Letter.ID])
				}
				slices.Sort(list)
				return strings.Join(list, "")
			}
			o.broken = true
			id := o.start(r)
			o.advance(time.Minute)
			o.wantState(id, deadletter.OperationStopped, deadletter.PhaseWaiting)
			if got := sent(0); got != c.first {
				t.Errorf("the canary has %s, want %s", got, c.first)
			}
			o.must(o.desk.Resume(t.Context(), deadletter.Local, id))
			o.advance(time.Minute)
			if got := sent(c.canary); got != c.next {
				t.Errorf("the next canary has %s, want %s", got, c.next)
			}
		})
	}
}

// TestMergedGroupsAreOneCause merges two of four groups. The plan must count them as one cause, and
// a canary of three letters must have a letter of each cause. Letters that the operation has to
// skip must not be chosen.
func TestMergedGroupsAreOneCause(t *testing.T) {
	t.Parallel()
	o, cause, all := causes(t)
	_, err := o.store.Decide(t.Context(), deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1, By: "ana"})
	o.must(err)
	oldest := o.start(operation.Request{
		Action: deadletter.VerbDiscard, Selection: selection(t, "group:G-1"), First: 3,
		Pace: operation.Pace{Hold: ptr(time.Duration(0))},
	})
	o.advance(time.Second)
	o.wantState(oldest, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 3)
	r := operation.Request{
		Action: deadletter.VerbRequeue, Selection: all,
		Pace: operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(3)},
	}
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, r)
	o.must(err)
	if plan.Causes != 3 {
		t.Errorf("%d causes", plan.Causes)
	}
	o.start(r)
	o.advance(time.Minute)
	got := ""
	for _, d := range o.sent {
		got += cause[d.Letter.ID]
	}
	if got != "acd" {
		t.Errorf("the canary has %s", got)
	}
}
