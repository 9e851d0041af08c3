package operation_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
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
