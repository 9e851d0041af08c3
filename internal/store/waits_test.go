package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// storeWaiting stores letters that died in one queue. They are to wait in a waiter of the broker.
// The parameter "delay" is the time until their retry.
func storeWaiting(t *testing.T, s *store.Store, n int, waiter string, delay time.Duration) {
	t.Helper()
	receive(t, s, window(t, 1, "sms", n))
	letters, err := s.NextReceived(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	for _, l := range letters {
		verdicts = append(verdicts, deadletter.Classified{
			Letter: l.ID,
			To:     deadletter.ClassifiedRetry,
			Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
			Why:    "retry 1 of 3",
			Waiter: waiter,
			Wait:   delay,
			DueAt:  began.Add(delay),
		})
	}
	if err := s.Classify(t.Context(), verdicts); err != nil {
		t.Fatal(err)
	}
}

// claimEarly claims due letters, and letters that are to wait in the broker.
func claimEarly(t *testing.T, s *store.Store, now time.Time, waiters ...string) []deadletter.Due {
	t.Helper()
	due, err := s.ClaimDue(t.Context(), "main", now, 10, deadletter.Allowance{
		Waiters: waiters, Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

var began = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC) // time at which the clock of the function open starts

func TestALetterWaitsInTheBroker(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	storeWaiting(t, s, 3, "message-ttl", 10*time.Second)
	if due := claimEarly(t, s, c.now()); len(due) != 0 {
		t.Fatal("claimed although the broker has no waiter", due)
	}
	due := claimEarly(t, s, c.now(), "message-ttl")
	if len(due) != 3 || due[0].Waiter != "message-ttl" || due[0].Wait != 10*time.Second ||
		!due[0].Letter.DueAt.Equal(began.Add(10*time.Second)) {
		t.Fatalf("%+v", due)
	}
	id := due[0].Letter.ID
	if err := s.Mark(ctx, []deadletter.Mark{
		{
			Letter: id, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeConfirmed, WaitsIn: "dlo.wait.ttl",
			DueAt: c.now().Add(10 * time.Second),
		},
		{
			Letter: due[1].Letter.ID, Token: due[1].Attempt.Token, Outcome: deadletter.OutcomeNacked, Stays: true,
			DueAt: due[1].Letter.DueAt, Detail: "full",
		},
		{
			Letter: due[2].Letter.ID, Token: due[2].Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			WaitsIn: "dlo.wait.ttl", DueAt: c.now().Add(10 * time.Second),
		},
	}, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	l := letter(t, s, id)
	if l.State != deadletter.StateScheduled || l.WaitsIn != "dlo.wait.ttl" || l.Attempts != 1 ||
		l.Why != "retry 1 of 3" {
		t.Errorf("%+v", l)
	}
	if l := letter(t, s, due[1].Letter.ID); l.State != deadletter.StateScheduled || l.WaitsIn != "" || l.Attempts != 0 || l.Nacks != 0 || !l.DueAt.Equal(began.Add(10*time.Second)) {
		t.Errorf("what no waiter took: %+v", l)
	}

	// Nobody can act on the letter while it waits in the broker.
	for _, verb := range deadletter.Actions {
		op := deadletter.Operation{Action: verb, By: "local"}
		if err := s.Freeze(ctx, &op, query.Selection{IDs: []deadletter.ID{id}}, 0, anyPlace); err != nil {
			t.Fatal(err)
		}
		if _, err := s.LayOut(ctx, op.ID); err != nil {
			t.Fatal(err)
		}
		act := func() (int, error) { return s.Advance(ctx, op.ID, 10, nil) }
		if verb == deadletter.VerbEdit {
			l := letter(t, s, id)
			act = func() (int, error) {
				return s.Revised(ctx, op.ID, []deadletter.Edited{
					{AsOf: l.ChangedAt, Revision: deadletter.Revision{Letter: id, Number: 1}},
				}, nil)
			}
			if _, err := s.Revise(ctx, deadletter.Revision{
				Letter: id, Number: 1, By: "local",
			}); !errors.Is(err, deadletter.ErrConflict) {
				t.Error(err)
			}
		}
		if _, err := act(); err != nil {
			t.Fatal(err)
		}
		var reason string
		if err := s.Reader().QueryRow(`SELECT result || ': ' || reason FROM operation_letters
			WHERE operation = $1`, int64(op.ID)).Scan(&reason); err != nil || reason != "skipped: "+deadletter.WhyInBroker {
			t.Errorf("%s: %s, %v", verb, reason, err)
		}
	}

	if list, err := s.Waited(ctx, "main", c.now(), 10); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	c.at = c.at.Add(11 * time.Second)
	if due := claimEarly(t, s, c.now(), "message-ttl"); len(due) != 1 || due[0].Waiter != "" {
		t.Fatalf("due in the store is one, which goes to its queue: %+v", due)
	}
	list, err := s.Waited(ctx, "main", c.now(), 10)
	if err != nil || len(list) != 2 || list[0].Queue != "sms" || list[0].In != "dlo.wait.ttl" ||
		!list[0].Since.Equal(began) {
		t.Fatalf("%+v %v", list, err)
	}
	if err := s.RecordWaitEnds(ctx, []deadletter.WaitEnd{
		{Letter: id, DueAt: c.now().Add(time.Minute), Doubt: "nobody knows"},
		{Letter: due[2].Letter.ID, Lost: "its queue is gone"},
	}); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, id); l.State != deadletter.StateRequeued || l.WaitsIn != "" || !l.Unverified ||
		!l.DueAt.Equal(c.now().Add(time.Minute)) {
		t.Errorf("%+v", l)
	}
	if l := letter(
		t, s, due[2].Letter.ID,
	); l.State != deadletter.StateHeld || l.Why != "its queue is gone" || l.Attempts != 0 {
		t.Errorf("%+v", l)
	}
	attempts, err := s.Attempts(ctx, id)
	if err != nil || len(attempts) != 1 || attempts[0].WaitsIn != "dlo.wait.ttl" ||
		!attempts[0].WaitUntil.Equal(began.Add(10*time.Second)) {
		t.Errorf("%+v %v", attempts, err)
	}
	history, err := s.History(ctx, id)
	if err != nil || !strings.Contains(
		history[len(history)-1].Detail, "its time in dlo.wait.ttl is over; unverified: nobody knows",
	) {
		t.Errorf("%+v %v", history, err)
	}
}

// TestALetterComesBackFromTheBroker checks a letter that waits in the broker. When its wait ends,
// the letter may die again and come back to dlo before dlo has recorded the end of the wait.
func TestALetterComesBackFromTheBroker(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	storeWaiting(t, s, 1, "message-ttl", time.Second)
	due := claimEarly(t, s, c.now(), "message-ttl")[0]
	if err := s.Mark(ctx, []deadletter.Mark{
		{
			Letter: due.Letter.ID, Token: due.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			WaitsIn: "dlo.wait.ttl", DueAt: c.now().Add(time.Second),
		},
	}, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	receive(t, s, returnWindow(t, 2, due, "sms", due.Letter.Body))
	if l := letter(t, s, due.Letter.ID); l.State != deadletter.StateReceived || l.WaitsIn != "" || l.Attempts != 1 {
		t.Errorf("%+v", l)
	}
	c.at = c.at.Add(time.Minute)
	if list, err := s.Waited(ctx, "main", c.now(), 10); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if err := s.RecordWaitEnds(ctx, []deadletter.WaitEnd{{Letter: due.Letter.ID, Lost: "gone"}}); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, due.Letter.ID); l.State != deadletter.StateReceived {
		t.Error("a verdict on what came back:", l.State)
	}
}

// TestWhatIsNotHandedOver checks three kinds of letters that dlo must not hand over to the broker
// for their wait. The first kind is a letter of a paused queue. The second kind is a letter that
// has already waited for too much of its delay: a wait queue with one fixed delay would keep it for
// too long. The third kind is a letter that is already due.
func TestWhatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	storeWaiting(t, s, 1, "wait-queue", time.Minute)
	if _, err := s.Pause(t.Context(), ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	if due := claimEarly(t, s, c.now(), "wait-queue"); len(due) != 0 {
		t.Error("handed over although its queue is paused", due)
	}
	if err := s.Resume(t.Context(), ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	if due := claimEarly(t, s, began.Add(5*time.Second), "wait-queue"); len(due) != 1 || due[0].Waiter != "wait-queue" {
		t.Errorf("%+v", due)
	}
	s, _ = open(t)
	storeWaiting(t, s, 1, "wait-queue", time.Minute)
	if due := claimEarly(t, s, began.Add(10*time.Second), "wait-queue", "message-ttl"); len(due) != 0 {
		t.Error("handed over with 50 of 60 seconds left", due)
	}
	if due := claimEarly(t, s, began.Add(61*time.Second), "wait-queue"); len(due) != 1 || due[0].Waiter != "" {
		t.Errorf("due in the store: %+v", due)
	}
}

// TestADoubtfulHandOver checks a letter for which it is in doubt whether the broker has put it into
// a wait queue. The letter must wait in the broker for the rest of its time, or go to its queue. It
// must not be put into a wait queue with one fixed delay, which would keep it for the full time
// again.
func TestADoubtfulHandOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to     string
		after  time.Duration
		waiter string
		none   bool
	}{
		{"message-ttl", 30 * time.Second, "message-ttl", false},
		{"message-ttl", 2 * time.Minute, "", false},
		{"wait-queue", time.Second, "wait-queue", false},
		{"wait-queue", 30 * time.Second, "", true},
	} {
		s, clock := open(t)
		storeWaiting(t, s, 1, c.to, time.Minute)
		first := claimEarly(t, s, clock.now(), c.to)[0]
		if err := s.Mark(t.Context(), []deadletter.Mark{
			{
				Letter: first.Letter.ID, Token: first.Attempt.Token, Outcome: deadletter.OutcomeInDoubt, Resend: true,
				DueAt: clock.now(),
			},
		}, deadletter.Noted{}); err != nil {
			t.Fatal(err)
		}
		clock.at = clock.at.Add(c.after)
		if c.none {
			if list, err := s.ClaimDoubtful(t.Context(), "main", clock.now(), 10); err != nil || len(list) != 0 {
				t.Errorf("%+v %v", list, err)
			}
			clock.at = began.Add(time.Minute)
		}
		again, err := s.ClaimDoubtful(t.Context(), "main", clock.now(), 10)
		if err != nil || len(again) != 1 || again[0].Waiter != c.waiter || again[0].Attempt.Token != first.Attempt.Token || c.waiter != "" && !again[0].Letter.DueAt.Equal(began.Add(time.Minute)) {
			t.Errorf("after %s: %+v %v", c.after, again, err)
		}
	}
}

// handOver claims letters that are to wait in dlo.wait.ttl, and records that they wait in that
// queue.
func handOver(t *testing.T, s *store.Store, c *clock) []deadletter.Due {
	t.Helper()
	list := claimEarly(t, s, c.now(), "message-ttl")
	for _, d := range list {
		if err := s.Mark(t.Context(), []deadletter.Mark{
			{
				Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
				WaitsIn: deadletter.WaitTTL, DueAt: d.Letter.DueAt,
			},
		}, deadletter.Noted{}); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// TestALetterBehindOneThatWaitsLonger checks two letters in the broker's queue dlo.wait.ttl. The
// second letter is behind one that waits longer. The broker forwards only the first message of this
// queue, so the second letter must be due as late as the first one.
func TestALetterBehindOneThatWaitsLonger(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	storeWaiting(t, s, 1, "message-ttl", time.Hour)
	handOver(t, s, c)
	storeWaiting(t, s, 1, "message-ttl", time.Minute)
	short := handOver(t, s, c)[0]
	if l := letter(t, s, short.Letter.ID); !l.DueAt.Equal(began.Add(time.Hour)) {
		t.Errorf("due at %s, behind one that is due in an hour", l.DueAt)
	}
}

// TestAnOlderAttemptComesBackWhileANewerWaitsInTheBroker checks a letter whose first attempt is in
// doubt, and which came back from its second attempt. If the message of the first attempt comes
// back while that of the third waits in the broker, dlo must still know that the third one waits.
func TestAnOlderAttemptComesBackWhileANewerWaitsInTheBroker(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	receive(t, s, window(t, 1, "sms", 1))
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	first := claimEarly(t, s, c.now())[0]
	mark(t, s, c, deadletter.OutcomeInDoubt, first)
	_, sent := requeue(t, s, c, first.Letter.ID) // a person requeues the letter, because the first attempt may be lost
	second := sent[0]
	mark(t, s, c, deadletter.OutcomeConfirmed, second)
	receive(t, s, returnWindow(t, 2, second, "sms", second.Letter.Body))
	verdict := deadletter.Classified{
		Letter: first.Letter.ID,
		To:     deadletter.ClassifiedRetry,
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		Waiter: "message-ttl",
		Wait:   time.Hour,
		DueAt:  c.now().Add(time.Hour),
	}
	if err := s.Classify(t.Context(), []deadletter.Classified{verdict}); err != nil {
		t.Fatal(err)
	}
	handOver(t, s, c)
	receive(t, s, returnWindow(t, 3, first, "sms", first.Letter.Body))
	if l := letter(t, s, first.Letter.ID); l.State != deadletter.StateScheduled || l.WaitsIn != deadletter.WaitTTL {
		t.Errorf("%s, waits in %q", l.State, l.WaitsIn)
	}
}

// TestALetterThatNobodyMovesOn checks a letter that is still in its wait queue after its wait
// should have ended. People must be able to act on it.
func TestALetterThatNobodyMovesOn(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	storeWaiting(t, s, 1, "message-ttl", time.Minute)
	id := handOver(t, s, c)[0].Letter.ID
	c.at = c.at.Add(90 * time.Second)
	operate(t, s, deadletter.VerbDiscard, id)
	if l := letter(t, s, id); l.State != deadletter.StateScheduled {
		t.Fatal("half a minute after its time:", l.State)
	}
	c.at = c.at.Add(time.Minute)
	operate(t, s, deadletter.VerbDiscard, id)
	if l := letter(t, s, id); l.State != deadletter.StateDiscarded || l.WaitsIn != "" {
		t.Errorf("%s, waits in %q", l.State, l.WaitsIn)
	}
}

// TestAClockThatWasAheadOfTheBroker checks a clock that was ahead and is set back. Letters that
// wait in the broker must then become due earlier, too.
func TestAClockThatWasAheadOfTheBroker(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	storeWaiting(t, s, 1, "message-ttl", time.Minute)
	id := handOver(t, s, c)[0].Letter.ID
	c.at = c.at.AddDate(-1, 0, 0)
	if n, err := s.DrawNear(t.Context(), c.now().Add(time.Minute)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if l := letter(t, s, id); !l.DueAt.Equal(c.now().Add(time.Minute)) {
		t.Error(l.DueAt)
	}
}
