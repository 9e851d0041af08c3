package operation_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TestTheWayOfARequeue follows a requeue through all its phases. It waits for a moment, sends the
// first few letters (the canary), and watches whether they come back. It then sends the other
// letters at the given rate. It is done once there is a verdict on each letter.
func TestTheWayOfARequeue(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 60)
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Rate: ptr(10.0)},
	})
	o.advance(9 * time.Second)
	o.wantState(id, deadletter.OperationRunning, deadletter.PhaseHolding, deadletter.ResultPending, 60)
	o.advance(3 * time.Second)
	op := o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseWaiting, deadletter.ResultPending, 50,
		deadletter.ResultConfirmed, 10,
	)
	if wait := op.PhaseUntil.Sub(o.at); wait <= time.Minute || wait > 2*time.Minute {
		t.Errorf("the canary is watched for another %s", wait)
	}
	o.advance(2 * time.Minute)
	begun := len(o.sent)
	if begun <= 10 || begun > 25 {
		t.Errorf("%d letters had left when the ramp had just begun", begun)
	}
	o.advance(time.Second)
	if n := len(o.sent) - begun; n > 10 {
		t.Errorf("%d letters left in a second, at a rate of 10", n)
	}
	o.advance(20 * time.Second)
	o.wantState(id, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 60)
	for i := 1; i < len(o.sent); i++ {
		if o.sent[i-1].Letter.ID > o.sent[i].Letter.ID {
			t.Fatal("not the oldest first")
		}
	}
	o.advance(11 * time.Minute)
	if op := o.wantState(
		id, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultQuiet, 60,
	); op.FinishedAt.IsZero() || op.SentAt.IsZero() {
		t.Errorf("sent %s, finished %s", op.SentAt, op.FinishedAt)
	}
}

// TestPauseAndCancelInEveryPhase pauses an operation in each of its phases, resumes it and cancels
// it. While the operation is paused, and after it is cancelled, no more letters may be sent. Unsent
// letters must return to their previous state, and no letter may stay with the operation.
func TestPauseAndCancelInEveryPhase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase deadletter.OperationPhase
		after time.Duration
	}{
		{deadletter.PhaseSelecting, 0},
		{deadletter.PhaseHolding, 2 * time.Second},
		{deadletter.PhaseCanary, 10500 * time.Millisecond},
		{deadletter.PhaseWaiting, 20 * time.Second},
		{deadletter.PhaseSending, 140 * time.Second},
	} {
		t.Run(string(c.phase), func(t *testing.T) {
			t.Parallel()
			o := open(t)
			o.arrive("sms", 600) // more letters than one transaction can handle
			dead := o.store
			id := o.start(operation.Request{
				Action:    deadletter.VerbRequeue,
				Selection: selection(t, "queue:sms"),
				Pace:      operation.Pace{Rate: ptr(20.0)},
			})
			o.advance(c.after)
			o.wantState(id, deadletter.OperationRunning, c.phase)
			o.must(o.desk.Pause(t.Context(), deadletter.Local, id))
			o.advance(time.Second)
			sent := len(o.sent)
			o.restart()
			o.advance(time.Minute)
			if len(o.sent) != sent {
				t.Errorf("%d letters left while it was paused", len(o.sent)-sent)
			}
			if err := o.desk.Pause(t.Context(), deadletter.Local, id); !errors.Is(err, deadletter.ErrConflict) {
				t.Errorf("paused twice: %v", err)
			}
			o.must(o.desk.Resume(t.Context(), deadletter.Local, id))
			o.advance(200 * time.Millisecond)
			o.must(o.desk.Cancel(t.Context(), deadletter.Local, id))
			sent = len(o.sent)
			o.advance(time.Minute)
			if len(o.sent) != sent {
				t.Errorf("%d letters left after it was cancelled", len(o.sent)-sent)
			}
			q := selection(t, "state:dead")
			if n, _, err := dead.Count(t.Context(), *q.Query, 0); err != nil || n != 600-sent {
				t.Errorf("%d letters are dead again, want %d (%v)", n, 600-sent, err)
			}
			o.advance(11 * time.Minute)
			o.wantState(
				id, deadletter.OperationCancelled, deadletter.PhaseOver, deadletter.ResultCancelled, 600-sent,
				deadletter.ResultQuiet, sent,
			)
			for _, do := range []func(context.Context, deadletter.Principal, deadletter.OperationID) error{
				o.desk.Pause, o.desk.Resume, o.desk.Cancel,
			} {
				if err := do(t.Context(), deadletter.Local, id); !errors.Is(err, deadletter.ErrConflict) {
					t.Errorf("steered after its end: %v", err)
				}
			}
			again := o.start(operation.Request{Action: deadletter.VerbDiscard, Selection: selection(t, "state:dead")})
			o.advance(2 * time.Second)
			o.wantState(again, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 600-sent)
		})
	}
}

// TestItWaitsForADeepQueue checks that an operation waits while too many messages are in a target
// queue, and then continues automatically.
func TestItWaitsForADeepQueue(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 100)
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0), Rate: ptr(10.0), MaxDepth: ptr(50)},
	})
	o.advance(3 * time.Second)
	o.depth["sms"] = 60
	o.advance(2 * time.Second)
	sent := len(o.sent)
	o.advance(10 * time.Second)
	if op := o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseSending,
	); len(o.sent) != sent || op.Why != "waits: sms has 60 messages, and the limit is 50" {
		t.Errorf("%d letters left, %q", len(o.sent)-sent, op.Why)
	}
	o.depth["sms"] = 0
	o.advance(20 * time.Second)
	o.wantState(id, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 100)
}

// TestATargetThatGoesAway deletes a queue in the middle of an operation. Only the letters of this
// queue may be affected. They must be held, and people can send them to another queue.
func TestATargetThatGoesAway(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 20)
	o.arrive("email", 20)
	id := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "state:dead"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0), Rate: ptr(10.0), Newest: true},
	})
	o.advance(time.Second)
	o.gone["sms"] = true
	o.advance(20 * time.Second)
	o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 20,
		deadletter.ResultReturned, 20,
	)
	for i := 1; i < len(o.sent); i++ {
		if o.sent[i-1].Letter.ID < o.sent[i].Letter.ID {
			t.Fatal("not the newest first")
		}
	}
	elsewhere := operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "op:"+id.String()+"/returned"),
		To:        "spare",
		Pace:      operation.Pace{Hold: ptr(time.Duration(0))},
	}
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, elsewhere)
	if err != nil || plan.Eligible != 20 || plan.Queues[0].Target != "spare" || plan.Queues[0].Warning != "" {
		t.Errorf("%+v, %v", plan, err)
	}
	sent := len(o.sent)
	again := o.start(elsewhere)
	o.advance(3 * time.Minute)
	o.wantState(again, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 20)
	for _, d := range o.sent[sent:] {
		if d.Attempt.Queue != "spare" || d.Letter.Queue != "sms" {
			t.Fatalf("sent to %s", d.Attempt.Queue)
		}
	}
	elsewhere.To = "nowhere"
	if _, err := o.desk.Start(
		t.Context(), deadletter.Local, elsewhere,
	); !errors.Is(err, deadletter.ErrInvalid) || !strings.Contains(err.Error(), "not in requeue_to") {
		t.Error(err)
	}
}

// TestOperationsShareFairly checks that operations with different rates send their letters at the
// same time.
func TestOperationsShareFairly(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 2000)
	o.arrive("email", 100)
	large := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0), Rate: ptr(500.0)},
	})
	small := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:email"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0), Rate: ptr(500.0)},
	})
	o.advance(time.Second)
	o.wantState(small, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, 100)
	o.wantState(large, deadletter.OperationRunning, deadletter.PhaseSending)
}

// TestIngestGoesOnBetweenChunks checks an operation that changes many letters in chunks. Arriving
// letters must be stored between two chunks.
func TestIngestGoesOnBetweenChunks(t *testing.T) {
	t.Parallel()
	o := open(t)
	const chunks = 8
	o.arrive("sms", chunks*500)
	id := o.start(operation.Request{Action: deadletter.VerbDiscard, Selection: selection(t, "state:dead")})
	stored, over := 0, make(chan struct{})
	var ingest sync.WaitGroup
	ingest.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if _, err := o.store.Receive(context.Background(), deadletter.Window{
				Session:     2,
				Number:      int64(stored),
				Broker:      "main",
				VHost:       "/",
				Inbox:       "other",
				Arrivals:    []deadletter.Arrival{{Tag: 1, Body: []byte("x")}},
				Horizon:     time.Minute,
				HorizonRows: 10,
			}); err != nil {
				t.Error(err)
				return
			}
			stored++
		}
	})
	for o.operation(id).Phase != deadletter.PhaseOver {
		if _, _, err := o.desk.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(over)
	ingest.Wait()
	if stored < chunks {
		t.Errorf("%d windows were stored while %d chunks changed", stored, chunks)
	}
	o.wantState(id, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, chunks*500)
}

// damaged is a store in which one operation cannot advance.
type damaged struct {
	operation.Store
	id deadletter.OperationID
}

func (d *damaged) Advance(
	ctx context.Context, id deadletter.OperationID, n int, allow func(to deadletter.Origin) error,
) (int, error) {
	if id == d.id {
		return 0, errors.New("damaged")
	}
	return d.Store.Advance(ctx, id, n, allow)
}

// TestAnOperationThatFailsHindersNoOther checks that an operation that cannot advance does not
// block the operations after it.
func TestAnOperationThatFailsHindersNoOther(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 1)
	first := o.start(operation.Request{Action: deadletter.VerbDiscard, Selection: selection(t, "queue:sms")})
	o.arrive("email", 1)
	second := o.start(operation.Request{Action: deadletter.VerbDiscard, Selection: selection(t, "queue:email")})
	desk := operation.New(&damaged{o.store, first}, operation.Options{
		Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler), Targets: &rules.Targets{},
	})
	if _, _, err := desk.Step(t.Context()); err == nil {
		t.Error("the mistake was not said")
	}
	o.wantState(second, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultChanged, 1)
}

// TestADiscardThatWasTakenBackIsNoEvidence checks the action that the digest suggests for a group.
// The digest must suggest the action that people last performed. If they have undone this action,
// the digest must suggest nothing.
func TestADiscardThatWasTakenBackIsNoEvidence(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 4)
	suggested := func() string {
		t.Helper()
		d, err := o.store.Digest(t.Context(), o.at.Add(-time.Hour), o.at.Add(time.Minute), 10)
		o.must(err)
		if len(d.Lines) != 1 {
			t.Fatalf("%+v", d)
		}
		return d.Lines[0].Suggestion
	}
	o.start(operation.Request{Action: deadletter.VerbDiscard, Selection: query.Selection{IDs: ids[:2]}})
	o.advance(time.Second)
	if text := suggested(); text != "Discarded the last time (O-1)" {
		t.Errorf("after the discard: %q", text)
	}
	o.start(operation.Request{Action: deadletter.VerbRestore, Selection: query.Selection{IDs: ids[:2]}})
	o.advance(time.Second)
	if text := suggested(); text != "" {
		t.Errorf("after it was taken back: %q", text)
	}
}

// surveyed is a store that calls the function "then" after the given number of calls of Survey.
type surveyed struct {
	*store.Store
	surveys int
	then    func()
}

func (s *surveyed) Survey(ctx context.Context, sel query.Selection, maxBody int) ([]deadletter.Share, int, error) {
	shares, changed, err := s.Store.Survey(ctx, sel, maxBody)
	if s.surveys--; s.surveys == 0 {
		s.then()
	}
	return shares, changed, err
}

// TestRightsOnLettersThatArriveDuringTheCheck checks that the rights are checked again for the
// letters that an operation freezes. Letters may arrive after the first check.
func TestRightsOnLettersThatArriveDuringTheCheck(t *testing.T) {
	t.Parallel()
	viewer := deadletter.Grant{Role: deadletter.RoleViewer}
	of := func(queue string) deadletter.Grant {
		return deadletter.Grant{Role: deadletter.RoleEditor, Places: deadletter.Places{Queues: []string{queue}}}
	}
	sms, reveal := of("sms"), of("sms")
	reveal.Reveal = true
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"sms", "email"}, []string{"dlo.letters"})
	unknown := func(o *office) {
		o.receive(deadletter.Arrival{Exchange: "", RoutingKey: "dlo.letters", Tag: 1, Body: []byte("x")})
	}
	email := func(o *office) { o.arrive("email", 1) }
	for _, c := range []struct {
		name    string
		grants  []deadletter.Grant
		r       operation.Request
		surveys int
		then    func(o *office)
	}{
		{"another queue", []deadletter.Grant{viewer, sms}, operation.Request{Action: deadletter.VerbDiscard}, 1, email},
		{
			"a redirect",
			[]deadletter.Grant{viewer, sms},
			operation.Request{Action: deadletter.VerbRequeue, To: "sms"},
			1,
			email,
		},
		{
			"an unknown origin",
			[]deadletter.Grant{viewer, sms},
			operation.Request{Action: deadletter.VerbDiscard},
			1,
			unknown,
		},
		{
			"masked values",
			[]deadletter.Grant{of("email"), reveal},
			operation.Request{Action: deadletter.VerbEdit, Reason: "r", Patch: []byte("+x")},
			2,
			email,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			o.arrive("sms", 1)
			desk := operation.New(&surveyed{o.store, c.surveys, func() { c.then(o) }}, operation.Options{
				Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler), Targets: targets,
				MaxBody: 1000, Edit: appendPatch,
			})
			c.r.Selection = selection(t, "state:dead,held")
			if _, err := desk.Start(t.Context(), deadletter.Principal{
				Name: "ann", Grants: c.grants,
			}, c.r); !errors.Is(err, deadletter.ErrForbidden) {
				t.Errorf("started: %v", err)
			}
			if list, err := o.store.Operations(t.Context(), 0, 10); err != nil || len(list) != 0 {
				t.Errorf("%d operations, %v", len(list), err)
			}
		})
	}
}
