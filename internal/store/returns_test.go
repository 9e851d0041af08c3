package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// requeue releases letters in an operation of their own and claims them.
func requeue(t testing.TB, s *store.Store, c *clock, ids ...deadletter.ID) (deadletter.OperationID, []deadletter.Due) {
	t.Helper()
	op := operate(t, s, deadletter.VerbRequeue, ids...)
	return op, claim(t, s, c)
}

// operate runs an operation on letters.
func operate(t testing.TB, s *store.Store, verb deadletter.Verb, ids ...deadletter.ID) deadletter.OperationID {
	t.Helper()
	op := deadletter.Operation{Action: verb, By: "local", Through: "api"}
	if err := s.Freeze(context.Background(), &op, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(context.Background(), op.ID, len(ids), nil); err != nil {
		t.Fatal(err)
	}
	return op.ID
}

// claim claims due letters, without a limit on automatic retries.
func claim(t testing.TB, s *store.Store, c *clock) []deadletter.Due {
	t.Helper()
	due, err := s.ClaimDue(context.Background(), "main", c.now(), 100, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 100, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// mark records an outcome for each attempt.
func mark(t testing.TB, s *store.Store, c *clock, outcome deadletter.OutcomeKind, due ...deadletter.Due) {
	t.Helper()
	var marks []deadletter.Mark
	for _, d := range due {
		m := deadletter.Mark{Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: outcome, Detail: "because"}
		switch outcome {
		case deadletter.OutcomeConfirmed, deadletter.OutcomeNacked, deadletter.OutcomeUnsent:
			m.DueAt = c.now().Add(time.Minute)
		}
		marks = append(marks, m)
	}
	if err := s.Mark(context.Background(), marks, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
}

func letter(t testing.TB, s *store.Store, id deadletter.ID) deadletter.Letter {
	t.Helper()
	l, err := s.Letter(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func attempts(t testing.TB, s *store.Store, id deadletter.ID) []deadletter.Attempt {
	t.Helper()
	list, err := s.Attempts(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// returnWindow returns a window with one delivery: a letter that dlo sent in the attempt d, and
// that died again in the given queue.
func returnWindow(t testing.TB, number int64, d deadletter.Due, queue string, body []byte) deadletter.Window {
	t.Helper()
	w := window(t, number, queue, 1)
	a := &w.Arrivals[0]
	a.Body = body
	a.Properties.Headers[deadletter.HeaderID] = string(d.Letter.ID)
	a.Properties.Headers[deadletter.HeaderToken] = string(d.Attempt.Token)
	fillFingerprints(t, &w)
	return w
}

// fillFingerprints fills in the fingerprints of a window.
func fillFingerprints(t testing.TB, w *deadletter.Window) {
	t.Helper()
	for i := range w.Arrivals {
		f, err := w.Arrivals[i].Print()
		if err != nil {
			t.Fatal(err)
		}
		w.Arrivals[i].Fingerprint = f
	}
}

func TestALetterThatReturns(t *testing.T) {
	t.Parallel()
	type result struct {
		Receipt deadletter.Receipt // without ids
		State   deadletter.State   // state of the letter
		Outcome deadletter.OutcomeKind
		Used    int
		Copies  int
		Linked  bool // the new row names the letter as its twin
	}
	came := result{
		Receipt: deadletter.Receipt{CameBack: 1},
		State:   deadletter.StateReceived,
		Outcome: deadletter.OutcomeCameBack,
		Used:    1,
	}
	for _, c := range []struct {
		name string
		// called after the claim and before the letter comes back
		before func(t *testing.T, s *store.Store, c *clock, d deadletter.Due)
		queue  string
		change func(w *deadletter.Window)
		want   result
	}{
		{name: "before its confirm is recorded: the return wins", want: came},
		{name: "after its confirm", before: func(t *testing.T, s *store.Store, c *clock, d deadletter.Due) {
			mark(t, s, c, deadletter.OutcomeConfirmed, d)
		}, want: came},
		{name: "after it was quiet", before: func(t *testing.T, s *store.Store, c *clock, d deadletter.Due) {
			mark(t, s, c, deadletter.OutcomeConfirmed, d)
			c.at = c.at.Add(time.Hour)
			if n, err := s.SettleQuiet(
				context.Background(), d.Letter.Origin(), c.now(), 10, deadletter.UnknownQueue,
			); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}, want: came},
		{name: "held in doubt", before: func(t *testing.T, s *store.Store, c *clock, d deadletter.Due) {
			mark(t, s, c, deadletter.OutcomeInDoubt, d)
		}, want: came},
		{name: "held in doubt and discarded", before: func(t *testing.T, s *store.Store, c *clock, d deadletter.Due) {
			mark(t, s, c, deadletter.OutcomeInDoubt, d)
			operate(t, s, deadletter.VerbDiscard, d.Letter.ID)
		}, want: came},
		{
			name: "sent again with the same token",
			before: func(t *testing.T, s *store.Store, c *clock, d deadletter.Due) {
				if err := s.Mark(context.Background(), []deadletter.Mark{
					{
						Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeInDoubt, Resend: true,
						DueAt: c.now(),
					},
				}, deadletter.Noted{}); err != nil {
					t.Fatal(err)
				}
				again, err := s.ClaimDoubtful(context.Background(), "main", c.now().Add(time.Hour), 10)
				if err != nil || len(again) != 1 || again[0].Attempt.Token != d.Attempt.Token ||
					again[0].Attempt.Sends != 2 {
					t.Fatal(again, err)
				}
			}, want: came,
		},
		{name: "died in another queue on its way", queue: "email", want: came},
		{
			name:   "without a word of where it died",
			change: func(w *deadletter.Window) { delete(w.Arrivals[0].Properties.Headers, "x-death") }, want: came,
		},
		{name: "through the inbox of another entry for the same vhost", change: func(w *deadletter.Window) {
			w.Broker, w.Inbox, w.Same = "second user", "errors", []string{"main", "second user"}
		}, want: came},
		{
			name:   "carried to another vhost: a letter of its own",
			change: func(w *deadletter.Window) { w.VHost, w.Same = "other", []string{"main"} },
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
				Linked:  true,
			},
		},
		{
			name:   "carried to another broker: a letter of its own",
			change: func(w *deadletter.Window) { w.Broker, w.Same = "second", []string{"second"} },
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
				Linked:  true,
			},
		},
		{
			name: "closed by a return of another queue, equal body: one more copy",
			before: func(t *testing.T, s *store.Store, _ *clock, d deadletter.Due) {
				receive(t, s, returnWindow(t, 8, d, "email", d.Letter.Body))
			},
			queue: "email",
			want: result{
				Receipt: deadletter.Receipt{Copies: 1},
				State:   deadletter.StateReceived,
				Outcome: deadletter.OutcomeCameBack,
				Used:    1,
				Copies:  1,
			},
		},
		{
			name: "closed by a return, equal body and queue: one more copy",
			before: func(t *testing.T, s *store.Store, _ *clock, d deadletter.Due) {
				receive(t, s, returnWindow(t, 8, d, "sms", d.Letter.Body))
			},
			want: result{
				Receipt: deadletter.Receipt{Copies: 1},
				State:   deadletter.StateReceived,
				Outcome: deadletter.OutcomeCameBack,
				Used:    1,
				Copies:  1,
			},
		},
		{
			name: "closed by a return, another queue: a letter of its own",
			before: func(t *testing.T, s *store.Store, _ *clock, d deadletter.Due) {
				receive(t, s, returnWindow(t, 8, d, "sms", d.Letter.Body))
			},
			queue: "email",
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StateReceived,
				Outcome: deadletter.OutcomeCameBack,
				Used:    1,
				Linked:  true,
			},
		},
		{
			name: "nacked by reject-publish-dlx, which dead-letters it too",
			before: func(t *testing.T, s *store.Store, c *clock, d deadletter.Due) {
				mark(t, s, c, deadletter.OutcomeNacked, d)
			},
			want: result{
				Receipt: deadletter.Receipt{Copies: 1},
				State:   deadletter.StateScheduled,
				Outcome: deadletter.OutcomeNacked,
				Copies:  1,
			},
		},
		{
			name:   "another body: a letter of its own",
			change: func(w *deadletter.Window) { w.Arrivals[0].Body = []byte("other") },
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
				Linked:  true,
			},
		},
		{
			name: "a token that was never issued: a stranger",
			change: func(w *deadletter.Window) {
				w.Arrivals[0].Properties.Headers["dlo-token"] = string(deadletter.NewToken())
			},
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
			},
		},
		{
			name: "the token of a letter with the id of another: a stranger", change: func(w *deadletter.Window) {
				w.Arrivals[0].Properties.Headers["dlo-id"] = string(deadletter.NewID(42, 7))
			},
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
			},
		},
		{
			name: "the right serial with wrong random bits: a stranger", change: func(w *deadletter.Window) {
				serial, random, _ := deadletter.ID(w.Arrivals[0].Properties.Headers["dlo-id"].(string)).Split()
				w.Arrivals[0].Properties.Headers["dlo-id"] = string(deadletter.NewID(serial, uint64(random)^1))
			},
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
			},
		},
		{
			name:   "no token: a new letter",
			change: func(w *deadletter.Window) { delete(w.Arrivals[0].Properties.Headers, "dlo-token") },
			want: result{
				Receipt: deadletter.Receipt{New: make([]deadletter.ID, 1)},
				State:   deadletter.StatePublishing,
				Outcome: deadletter.OutcomeOpen,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			first := receive(t, s, window(t, 1, "sms", 1)).New[0]
			classify(t, s, deadletter.ClassifiedDead, time.Time{})
			_, due := requeue(t, s, clock, first)
			if len(due) != 1 {
				t.Fatal(due)
			}
			if c.before != nil {
				c.before(t, s, clock, due[0])
			}
			clock.at = clock.at.Add(time.Second)
			queue := c.queue
			if queue == "" {
				queue = "sms"
			}
			w := returnWindow(t, 9, due[0], queue, due[0].Letter.Body)
			if c.change != nil {
				c.change(&w)
				fillFingerprints(t, &w)
			}
			r := receive(t, s, w)
			list := attempts(t, s, first)
			l := letter(t, s, first)
			got := result{State: l.State, Outcome: list[0].Outcome, Used: l.Attempts}
			if list[0].Back != nil {
				got.Copies = list[0].Back.Copies
				reason := "rejected"
				if w.Arrivals[0].Properties.Headers["x-death"] == nil {
					reason = ""
				}
				if got.Outcome == deadletter.OutcomeCameBack && list[0].Back.Reason != reason {
					t.Errorf("came back for %q", list[0].Back.Reason)
				}
			} else if r.Copies == 1 {
				got.Copies = 1
			}
			if len(r.New) == 1 {
				got.Linked = letter(t, s, r.New[0]).Twin == first
			}
			got.Receipt = deadletter.Receipt{
				New: make([]deadletter.ID, len(r.New)), CameBack: r.CameBack, Copies: r.Copies, Merged: r.Merged,
				Suspects: r.Suspects,
			}
			if len(r.New) == 0 {
				got.Receipt.New = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.State == deadletter.StateReceived && c.want.Receipt.CameBack == 1 {
				if l.Operation != 0 || !l.DueAt.IsZero() || l.Why != "" {
					t.Errorf("it keeps operation %s, due %s, why %q", l.Operation, l.DueAt, l.Why)
				}
				if diff := cmp.Diff(w.Arrivals[0].Properties, l.Arrived); diff != "" {
					t.Errorf("the newest arrival (-want +got):\n%s", diff)
				}
				if l.Properties.Headers[deadletter.HeaderID] != nil {
					t.Error("the properties of the first arrival were replaced")
				}
			}
		})
	}
}

// TestALateConfirmIsOnlyNoted checks a letter that comes back before the confirm of its attempt is
// recorded. The late confirm must only add an event, and must not change the state of the letter.
func TestALateConfirmIsOnlyNoted(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	op, due := requeue(t, s, c, id)
	receive(t, s, returnWindow(t, 2, due[0], "sms", due[0].Letter.Body))
	for _, outcome := range []deadletter.OutcomeKind{
		deadletter.OutcomeConfirmed, deadletter.OutcomeNacked, deadletter.OutcomeInDoubt,
	} {
		mark(t, s, c, outcome, due[0])
	}
	l := letter(t, s, id)
	if l.State != deadletter.StateReceived || l.Attempts != 1 || l.Nacks != 0 {
		t.Errorf("%s after %d attempts and %d nacks", l.State, l.Attempts, l.Nacks)
	}
	if list := attempts(t, s, id); len(list) != 1 || list[0].Outcome != deadletter.OutcomeCameBack {
		t.Errorf("%+v", list)
	}
	history, err := s.History(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	notes := 0
	for _, e := range history {
		if e.Kind == "confirmed late" {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("%d notes of a late confirm in %+v", notes, history)
	}
	if got, err := s.Operation(
		context.Background(), op,
	); err != nil || got.State != deadletter.OperationDone || got.Counts[deadletter.ResultCameBack] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnOlderAttemptComesBackWhileANewerIsOnItsWay checks a letter that was sent twice, because its
// first attempt was in doubt. If the message of the first attempt comes back while the second
// attempt is being sent, the second attempt must continue.
func TestAnOlderAttemptComesBackWhileANewerIsOnItsWay(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, first := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeInDoubt, first[0])
	second, due := requeue(t, s, c, id)
	if len(due) != 1 || due[0].Attempt.Token == first[0].Attempt.Token {
		t.Fatal(due)
	}
	if r := receive(t, s, returnWindow(t, 2, first[0], "sms", first[0].Letter.Body)); r.CameBack != 1 {
		t.Fatal(r)
	}
	if l := letter(t, s, id); l.State != deadletter.StatePublishing || l.Attempts != 1 {
		t.Errorf("%s after %d attempts", l.State, l.Attempts)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, due[0])
	if l := letter(t, s, id); l.State != deadletter.StateRequeued || l.Attempts != 2 {
		t.Errorf("%s after %d attempts", l.State, l.Attempts)
	}
	if got, err := s.Operation(
		context.Background(), second,
	); err != nil || got.Counts[deadletter.ResultConfirmed] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnOlderAttemptComesBackBeforeANewerIsSent checks a letter whose attempt is in doubt. An
// operation schedules this letter again. If the message of the first attempt comes back before the
// operation sends the letter, the operation must skip the letter.
func TestAnOlderAttemptComesBackBeforeANewerIsSent(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, first := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeInDoubt, first[0])
	op := operate(t, s, deadletter.VerbRequeue, id)
	receive(t, s, returnWindow(t, 2, first[0], "sms", first[0].Letter.Body))
	if l := letter(t, s, id); l.State != deadletter.StateReceived || l.Operation != 0 {
		t.Errorf("%s of operation %s", l.State, l.Operation)
	}
	if due := claim(t, s, c); len(due) > 0 {
		t.Errorf("claimed all the same: %+v", due)
	}
	if got, err := s.Operation(
		context.Background(), op,
	); err != nil || got.State != deadletter.OperationDone || got.Counts[deadletter.ResultSkipped] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnOutcomeOfAnEarlierProcessIsOnlyNoted checks that only the process which claimed a letter
// can record the outcome of the attempt.
func TestAnOutcomeOfAnEarlierProcessIsOnlyNoted(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/dlo.db"
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s, err := store.Open(context.Background(), path, store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, due := requeue(t, s, c, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Second)
	if s, err = store.Open(context.Background(), path, store.Options{Now: c.now}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mark(t, s, c, deadletter.OutcomeConfirmed, due[0])
	if l := letter(t, s, id); l.State != deadletter.StatePublishing || l.Attempts != 0 {
		t.Errorf("%s after %d attempts", l.State, l.Attempts)
	}
	again, err := s.ClaimDoubtful(context.Background(), "main", c.now(), 10)
	if err != nil || len(again) != 1 || again[0].Attempt.Token != due[0].Attempt.Token ||
		again[0].Attempt.Outcome != deadletter.OutcomeInDoubt || again[0].Attempt.Sends != 2 {
		t.Fatal(again, err)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, again[0])
	if l := letter(t, s, id); l.State != deadletter.StateRequeued || l.Attempts != 1 {
		t.Errorf("%s after %d attempts", l.State, l.Attempts)
	}
}
