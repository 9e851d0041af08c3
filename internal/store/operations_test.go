package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

func operation(t testing.TB, s *store.Store, id deadletter.OperationID) deadletter.Operation {
	t.Helper()
	op, err := s.Operation(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range op.Counts {
		sum += n
	}
	if sum != op.Total {
		t.Errorf("%s counts %d letters of %d", id, sum, op.Total)
	}
	return op
}

type counted = map[deadletter.Result]int

func TestWhatAnOperationCannotActOnIsSkippedWithTheReason(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	ids := receive(t, s, window(t, 1, "sms", 5)).New
	none := window(t, 2, "", 1)
	none.Arrivals[0].Properties.Headers = nil
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	lost := receive(t, s, none).New[0]
	classify(t, s, deadletter.ClassifiedHold, time.Time{})
	fresh := receive(t, s, window(t, 3, "sms", 1)).New[0]
	operate(t, s, deadletter.VerbDiscard, ids[1])
	_, sent := requeue(t, s, c, ids[3])
	mark(t, s, c, deadletter.OutcomeConfirmed, sent[0])
	taken := operate(t, s, deadletter.VerbRequeue, ids[2])

	op := operate(t, s, deadletter.VerbRequeue, ids[0], ids[0], ids[1], ids[2], ids[3], ids[4], lost, fresh)
	got := operation(t, s, op)
	if diff := cmp.Diff(counted{deadletter.ResultReleased: 2, deadletter.ResultSkipped: 5}, got.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	skipped, _, err := s.OperationLetters(ctx, op, []deadletter.Result{deadletter.ResultSkipped}, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[deadletter.ID]string{}
	for _, l := range skipped {
		reasons[l.Letter] = l.Reason
	}
	want := map[deadletter.ID]string{
		ids[1]: "it is discarded, which cannot be requeued", ids[2]: "operation " + taken.String() + " has it",
		ids[3]: "it is requeued, which cannot be requeued",
		lost:   "nothing says which queue it died in", fresh: "it is received, which cannot be requeued",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiscardAndRestore(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ids := receive(t, s, window(t, 1, "sms", 2)).New
	classify(t, s, deadletter.ClassifiedRetry, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	op := operation(t, s, operate(t, s, deadletter.VerbDiscard, ids...))
	if op.State != deadletter.OperationDone || op.FinishedAt.IsZero() || op.Counts[deadletter.ResultChanged] != 2 {
		t.Errorf("%+v", op)
	}
	if l := letter(t, s, ids[0]); l.State != deadletter.StateDiscarded || !l.DueAt.IsZero() {
		t.Errorf("%s, due %s", l.State, l.DueAt)
	}
	operate(t, s, deadletter.VerbRestore, ids[0])
	if l := letter(t, s, ids[0]); l.State != deadletter.StateDead {
		t.Error(l.State)
	}
	history, err := s.History(context.Background(), ids[0])
	if err != nil || len(history) != 4 || history[2].Actor != "local" || history[2].Operation != op.ID ||
		history[3].Kind != "restored" {
		t.Errorf("%+v, %v", history, err)
	}
}

// TestCancel checks a cancelled operation. The letters that it released must get their earlier
// state and due time back. Letters that are already being sent must be sent normally.
func TestCancel(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	due := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ids := receive(t, s, window(t, 1, "sms", 4)).New
	classify(t, s, deadletter.ClassifiedRetry, due)
	op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "local", Through: "cli"}
	if err := s.Freeze(ctx, &op, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Advance(ctx, op.ID, 1, nil); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	sent := claim(t, s, c)
	if n, err := s.Advance(ctx, op.ID, 2, nil); err != nil || n != 2 || len(sent) != 1 {
		t.Fatal(n, err, sent)
	}
	if err := s.CancelOperation(ctx, op.ID, "eve"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:] {
		if l := letter(t, s, id); l.State != deadletter.StateScheduled || !l.DueAt.Equal(due) || l.Operation != 0 {
			t.Errorf("%s, due %s, operation %s", l.State, l.DueAt, l.Operation)
		}
	}
	if diff := cmp.Diff(counted{
		deadletter.ResultReleased: 1, deadletter.ResultCancelled: 3,
	}, operation(t, s, op.ID).Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	mark(t, s, c, deadletter.OutcomeNacked, sent[0]) // a letter leaves a cancelled operation if its queue rejects it
	if l := letter(
		t, s, ids[0],
	); l.State != deadletter.StateScheduled || !l.DueAt.Equal(due) || l.Operation != 0 || l.Attempts != 0 {
		t.Errorf("%s, due %s, operation %s, %d attempts", l.State, l.DueAt, l.Operation, l.Attempts)
	}
	got := operation(t, s, op.ID)
	if diff := cmp.Diff(
		counted{deadletter.ResultCancelled: 4}, got.Counts,
	); diff != "" || got.State != deadletter.OperationCancelled {
		t.Errorf("%s (-want +got):\n%s", got.State, diff)
	}
	if err := s.CancelOperation(ctx, op.ID, "eve"); !errors.Is(err, deadletter.ErrConflict) {
		t.Error(err)
	}
	if err := s.CancelOperation(ctx, 999, "eve"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	if left, err := s.Advance(ctx, op.ID, 10, nil); left != 0 || err != nil {
		t.Error(left, err)
	}
}

func TestOutcomesOfARequeue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome  deadletter.OutcomeKind
		state    deadletter.State
		why      string
		attempts int
		nacks    int
		running  deadletter.OperationState
		counts   counted
	}{
		{
			outcome:  deadletter.OutcomeConfirmed,
			state:    deadletter.StateRequeued,
			attempts: 1,
			running:  deadletter.OperationRunning,
			counts:   counted{deadletter.ResultConfirmed: 1},
		},
		{
			outcome: deadletter.OutcomeNacked,
			state:   deadletter.StateScheduled,
			nacks:   1,
			running: deadletter.OperationRunning,
			counts:  counted{deadletter.ResultReleased: 1},
		},
		{
			outcome: deadletter.OutcomeReturned,
			state:   deadletter.StateHeld,
			why:     "because",
			running: deadletter.OperationDone,
			counts:  counted{deadletter.ResultReturned: 1},
		},
		{
			outcome: deadletter.OutcomeRefused,
			state:   deadletter.StateHeld,
			why:     "because",
			running: deadletter.OperationDone,
			counts:  counted{deadletter.ResultFailed: 1},
		},
		{
			outcome: deadletter.OutcomeInDoubt,
			state:   deadletter.StateHeld,
			why:     "because",
			running: deadletter.OperationDone,
			counts:  counted{deadletter.ResultInDoubt: 1},
		},
		{
			outcome: deadletter.OutcomeUnsent,
			state:   deadletter.StateScheduled,
			running: deadletter.OperationRunning,
			counts:  counted{deadletter.ResultReleased: 1},
		},
	} {
		t.Run(string(c.outcome), func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			id := receive(t, s, window(t, 1, "sms", 1)).New[0]
			classify(t, s, deadletter.ClassifiedDead, time.Time{})
			op, due := requeue(t, s, clock, id)
			mark(t, s, clock, c.outcome, due...)
			l := letter(t, s, id)
			if l.State != c.state || l.Why != c.why || l.Attempts != c.attempts || l.Nacks != c.nacks {
				t.Errorf("%s because %q after %d attempts and %d nacks", l.State, l.Why, l.Attempts, l.Nacks)
			}
			got := operation(t, s, op)
			if diff := cmp.Diff(c.counts, got.Counts); diff != "" || got.State != c.running {
				t.Errorf("%s (-want +got):\n%s", got.State, diff)
			}
			if running, err := s.ActiveOperations(context.Background()); err != nil || (len(running) == 1) != (c.running == deadletter.OperationRunning) {
				t.Error(running, err)
			}
			mark(t, s, clock, deadletter.OutcomeConfirmed, due...) // a second outcome for the same attempt
			if l := letter(t, s, id); l.State != c.state || l.Attempts != c.attempts {
				t.Errorf("a second outcome makes it %s after %d attempts", l.State, l.Attempts)
			}
		})
	}
}

// TestWhatIsToBeSentAgain checks a letter whose attempt is in doubt. Only the dispatcher of the
// letter's own broker may claim it again. The letter must keep its token, and the attempt must
// count one more send.
func TestWhatIsToBeSentAgain(t *testing.T) {
	t.Parallel()
	s, clock := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, due := requeue(t, s, clock, id)
	if again, err := s.ClaimDoubtful(ctx, "main", clock.now(), 10); err != nil || len(again) > 0 {
		t.Fatalf("what this process has in flight is no doubt: %+v, %v", again, err)
	}
	if err := s.Mark(ctx, []deadletter.Mark{
		{Letter: id, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeInDoubt, Resend: true},
	}, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	if again, err := s.ClaimDoubtful(ctx, "other", clock.now(), 10); err != nil || len(again) > 0 {
		t.Fatalf("claimed by another broker: %+v, %v", again, err)
	}
	again, err := s.ClaimDoubtful(ctx, "main", clock.now(), 10)
	if err != nil || len(again) != 1 {
		t.Fatal(again, err)
	}
	a := again[0].Attempt
	if a.Token != due[0].Attempt.Token || a.Sends != 2 || a.Outcome != deadletter.OutcomeInDoubt || a.Number != 1 ||
		string(again[0].Letter.Body) != "body 0 of window 1" {
		t.Errorf("%+v", a)
	}
	if more, err := s.ClaimDoubtful(ctx, "main", clock.now(), 10); err != nil || len(more) > 0 {
		t.Error("claimed twice")
	}
}

func TestAutomaticRetriesAskHowManyMayLeave(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	receive(t, s, window(t, 1, "sms", 5))
	receive(t, s, window(t, 2, "email", 5))
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Minute))
	if due := claim(t, s, c); len(due) > 0 {
		t.Fatal("claimed before they are due")
	}
	c.at = c.at.Add(time.Minute)
	allow := deadletter.Allowance{Allow: func(o deadletter.Origin, _ string) (int, bool) {
		return map[string]int{"sms": 2, "email": 0}[o.Queue], false
	}}
	for _, c2 := range []struct {
		broker string
		n      int
		want   int
	}{{"other", 10, 0}, {"main", 1, 1}, {"main", 10, 2}} {
		due, err := s.ClaimDue(ctx, c2.broker, c.now(), c2.n, allow)
		if err != nil || len(due) != c2.want {
			t.Errorf("%s, %d: %d letters, %v", c2.broker, c2.n, len(due), err)
		}
		for _, d := range due {
			if d.Attempt.Queue != "sms" || d.Attempt.Number != 1 || len(d.Letter.Body) == 0 ||
				d.Letter.Properties.MessageID == "" {
				t.Errorf("%+v", d)
			}
		}
	}
}

func TestTheWatch(t *testing.T) {
	t.Parallel()
	depth := 3
	for _, c := range []struct {
		name       string
		depth      *int // length of the queue when the letter was sent
		facts      deadletter.QueueFacts
		settled    int
		unverified bool
	}{
		{"nobody can see the queue", nil, deadletter.UnknownQueue, 1, true},
		{"drained", &depth, deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 0}, 1, false},
		{"as deep as then", &depth, deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 3}, 1, false},
		{
			"a failure would be lost",
			&depth,
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, DeadLetters: deadletter.DeadLettersNowhere},
			1,
			true,
		},
		{
			"deeper than then",
			&depth,
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 4},
			0,
			false,
		},
		{
			"deep, and nobody knew how deep then",
			nil,
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 4},
			1,
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			ctx := context.Background()
			id := receive(t, s, window(t, 1, "sms", 1)).New[0]
			classify(t, s, deadletter.ClassifiedDead, time.Time{})
			_, due := requeue(t, s, clock, id)
			if err := s.Mark(ctx, []deadletter.Mark{
				{
					Letter: id, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
					DueAt: clock.now().Add(time.Minute), Depth: c.depth,
				},
			}, deadletter.Noted{}); err != nil {
				t.Fatal(err)
			}
			o := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
			if n, err := s.SettleQuiet(ctx, o, clock.now(), 10, c.facts); err != nil || n != 0 {
				t.Fatalf("settled %d before the end of the watch, %v", n, err)
			}
			clock.at = clock.at.Add(time.Minute)
			watched, err := s.Watched(ctx, "main", clock.now())
			if err != nil || len(watched) != 1 || watched[0] != o {
				t.Fatal(watched, err)
			}
			if err := s.WatchOn(ctx, o, clock.now(), clock.now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if n, err := s.SettleQuiet(ctx, o, clock.now(), 10, c.facts); err != nil || n != 0 {
				t.Fatalf("settled %d although the watch goes on, %v", n, err)
			}
			clock.at = clock.at.Add(time.Minute)
			if n, err := s.SettleQuiet(ctx, o, clock.now(), 10, c.facts); err != nil || n != c.settled {
				t.Fatalf("settled %d, %v", n, err)
			}
			if l := letter(
				t, s, id,
			); (l.State == deadletter.StateQuiet) != (c.settled == 1) || l.Unverified != c.unverified {
				t.Errorf("%s, unverified %v", l.State, l.Unverified)
			}
		})
	}
}

// TestAWatchThatEndsUnseen checks letters in a queue that dlo can no longer observe. By default
// they are held, the reason is recorded in their operation, and they can be sent again. If so
// configured, they are settled.
func TestAWatchThatEndsUnseen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		to     string // queue to which the operation sends the letter; "" = its own queue
		unseen deadletter.Unseen
		late   bool // the letter was sent after dlo last observed the queue
		want   deadletter.State
	}{
		{name: "held", unseen: deadletter.Unseen{Why: "it is gone"}, want: deadletter.StateHeld},
		{
			name:   "held, though it was sent elsewhere",
			to:     "sms2",
			unseen: deadletter.Unseen{Why: "it is gone"},
			want:   deadletter.StateHeld,
		},
		{name: "settled", unseen: deadletter.Unseen{Why: "it is gone", Settles: true}, want: deadletter.StateQuiet},
		{
			name:   "held, as it is its own queue",
			unseen: deadletter.Unseen{Why: "it is gone", SettlesRedirected: true},
			want:   deadletter.StateHeld,
		},
		{
			name:   "settled, as people sent it there",
			to:     "sms2",
			unseen: deadletter.Unseen{Why: "it is gone", SettlesRedirected: true},
			want:   deadletter.StateQuiet,
		},
		{name: "sent since", unseen: deadletter.Unseen{Why: "it is gone"}, late: true, want: deadletter.StateRequeued},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			ctx := t.Context()
			id := receive(t, s, window(t, 1, "sms", 1)).New[0]
			classify(t, s, deadletter.ClassifiedDead, time.Time{})
			op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "local", Through: "api", To: c.to}
			if err := s.Freeze(ctx, &op, query.Selection{IDs: []deadletter.ID{id}}, 0, anyPlace); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(ctx, op.ID, 1, nil); err != nil {
				t.Fatal(err)
			}
			due := claim(t, s, clock)
			if err := s.Mark(ctx, []deadletter.Mark{
				{Letter: id, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeConfirmed, DueAt: clock.now()},
			}, deadletter.Noted{}); err != nil {
				t.Fatal(err)
			}
			if c.unseen.Since = clock.now(); c.late {
				c.unseen.Since = clock.now().Add(-time.Second)
			}
			o := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
			if c.to != "" {
				o.Queue = c.to
			}
			if _, err := s.EndWatch(
				ctx, o, clock.now(), 10, c.unseen, func(string) []string { return nil },
			); err != nil {
				t.Fatal(err)
			}
			l := letter(t, s, id)
			if l.State != c.want || l.Unverified != (c.want == deadletter.StateQuiet) ||
				strings.Contains(l.Why, "it is gone") != (c.want == deadletter.StateHeld) {
				t.Fatalf("%s, unverified %t: %q", l.State, l.Unverified, l.Why)
			}
			if c.want == deadletter.StateRequeued {
				return
			}
			list, _, err := s.OperationLetters(ctx, op.ID, []deadletter.Result{deadletter.ResultUnverified}, "", 10)
			if err != nil || len(list) != 1 ||
				strings.Contains(list[0].Reason, "it is gone") != (c.want == deadletter.StateHeld) {
				t.Errorf("%+v, %v", list, err)
			}
			if c.want == deadletter.StateHeld {
				operate(t, s, deadletter.VerbRelease, id)
				if l := letter(t, s, id); l.State != deadletter.StateScheduled {
					t.Errorf("released, it is %s", l.State)
				}
			}
		})
	}
}

func TestOperationsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	for range 3 {
		operate(t, s, deadletter.VerbDiscard, ids...)
	}
	list, err := s.Operations(ctx, 0, 2)
	if err != nil || len(list) != 2 || list[0].ID != 3 || list[1].ID != 2 {
		t.Fatal(list, err)
	}
	if list, err = s.Operations(
		ctx, list[1].ID, 2,
	); err != nil || len(list) != 1 || list[0].Counts[deadletter.ResultChanged] != 3 {
		t.Fatal(list, err)
	}
	if diff := cmp.Diff([]deadletter.OperationQueue{
		{Broker: "main", VHost: "/", Queue: "sms", Counts: counted{deadletter.ResultChanged: 3}},
	}, list[0].Queues); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Operation(ctx, 99); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	var got []deadletter.ID
	after := ""
	for {
		page, next, err := s.OperationLetters(ctx, 1, []deadletter.Result{deadletter.ResultChanged}, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			got = append(got, l.Letter)
		}
		if after = next; after == "" {
			break
		}
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
	for _, limit := range []int{0, 501} {
		if _, _, err := s.OperationLetters(ctx, 1, nil, "", limit); !errors.Is(err, deadletter.ErrInvalid) {
			t.Error(limit, err)
		}
	}
	if _, _, err := s.OperationLetters(ctx, 1, nil, "%", 1); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
}

func TestAnUnknownLetterFreezesNothing(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	serial, random, _ := id.Split()
	for _, other := range []deadletter.ID{deadletter.NewID(1, 1), deadletter.NewID(serial, uint64(random)^1), ""} {
		op := deadletter.Operation{Action: deadletter.VerbDiscard, By: "local"}
		if err := s.Freeze(ctx, &op, query.Selection{
			IDs: []deadletter.ID{id, other},
		}, 0, anyPlace); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%q: %v", other, err)
		}
		if _, err := s.Letter(ctx, other); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if list, err := s.Operations(ctx, 0, 10); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}

// anyPlace lets an operation act on the letters of all places.
func anyPlace(deadletter.Origin) error { return nil }
