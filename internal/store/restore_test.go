package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// copyOf closes a store and opens a copy of its file at another path. The note beside the store is
// not copied.
func copyOf(t *testing.T, s *store.Store, c *clock) *store.Store {
	t.Helper()
	file, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	copied, err := store.Open(t.Context(), path, store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, breach := range breaches(t, copied.Reader()) {
			t.Error(breach)
		}
		copied.Close()
	})
	return copied
}

// openNew returns a new store that the test must close.
func openNew(t *testing.T, c *clock) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "dlo.db"), store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestARestoredStoreHoldsWhatMayHaveBeenSent checks that letters are held if they would be sent,
// were being sent or were watched. Other letters keep their state and are marked. An operation
// sends marked letters only if a person includes them. Operations that send letters are stopped.
func TestARestoredStoreHoldsWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s := openNew(t, c)
	ids := receive(t, s, window(t, 1, "sms", 8)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	scheduled := receive(t, s, window(t, 2, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	_, due := requeue(t, s, c, ids[0], ids[1])
	publishing, requeued := due[0], due[1]
	mark(t, s, c, deadletter.OutcomeConfirmed, requeued)
	operate(t, s, deadletter.VerbDiscard, ids[2])
	operate(t, s, deadletter.VerbHold, ids[3])
	op := operate(t, s, deadletter.VerbRequeue, ids[4])
	waiting := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann"}
	if err := s.Freeze(ctx, &waiting, query.Selection{IDs: ids[5:6]}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	received := receive(t, s, window(t, 3, "sms", 1)).New[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Hour)
	s = copyOf(t, s, c)
	later := receive(t, s, window(t, 4, "sms", 1)).New[0]

	seen := s.Progress()
	seen.Claims, seen.Received, seen.At = seen.Claims+5, seen.Received+7, c.now().Add(-10*time.Minute)
	if err := s.Restored(ctx, seen, false); err != nil {
		t.Fatal(err)
	}
	type is struct {
		State deadletter.State
		Doubt deadletter.Doubt
	}
	doubted := deadletter.DoubtRestored
	got, want := map[string]is{}, map[string]is{
		"scheduled":      {deadletter.StateHeld, doubted},
		"publishing":     {deadletter.StateHeld, doubted},
		"requeued":       {deadletter.StateHeld, doubted},
		"released":       {deadletter.StateHeld, doubted},
		"dead":           {deadletter.StateDead, doubted},
		"held":           {deadletter.StateHeld, doubted},
		"discarded":      {deadletter.StateDiscarded, doubted},
		"received":       {deadletter.StateReceived, doubted},
		"pending":        {deadletter.StateDead, doubted},
		"received since": {deadletter.StateReceived, ""},
	}
	for name, id := range map[string]deadletter.ID{
		"scheduled": scheduled, "publishing": publishing.Letter.ID, "requeued": requeued.Letter.ID, "released": ids[4],
		"dead": ids[6], "held": ids[3], "discarded": ids[2], "received": received, "pending": ids[5],
		"received since": later,
	} {
		l := letter(t, s, id)
		got[name] = is{l.State, l.Doubt}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r, err := s.Restore(ctx); err != nil || r.Missing != 7+1 || r.Held != 5 || !r.Until.Equal(seen.At) ||
		!r.Since.Equal(c.now().Add(-time.Hour)) {
		t.Errorf("%+v, %v", r, err)
	}
	if p := s.Progress(); p.Claims <= seen.Claims {
		t.Errorf("%d claims: the next start would find a copy again, which noted %d", p.Claims, seen.Claims)
	}
	if o := operation(t, s, op); o.State != deadletter.OperationDone || o.Counts[deadletter.ResultSkipped] != 1 {
		t.Errorf("the operation whose letter was released: %s, %v", o.State, o.Counts)
	}
	if o := operation(t, s, waiting.ID); o.State != deadletter.OperationStopped ||
		!strings.Contains(o.Why, "restored") {
		t.Errorf("the operation that had not begun: %s, %q", o.State, o.Why)
	}

	classify(t, s, deadletter.ClassifiedHold, time.Time{})
	if n := count(t, s, "doubt:restored state:held"); n != 6 {
		t.Errorf("%d letters are held", n)
	}
	op = operate(t, s, deadletter.VerbRequeue, ids[6])
	if o := operation(t, s, op); o.Counts[deadletter.ResultSkipped] != 1 {
		t.Errorf("an operation sends a letter that may have been sent: %v", o.Counts)
	}
	operate(t, s, deadletter.VerbHold, ids[6])
	if l := letter(t, s, ids[6]); l.Doubt != deadletter.DoubtRestored || l.State != deadletter.StateHeld {
		t.Errorf("held by a person: %s, doubt %q", l.State, l.Doubt)
	}
	including := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann", Restored: true}
	if err := s.Freeze(ctx, &including, query.Selection{
		IDs: []deadletter.ID{ids[6], publishing.Letter.ID},
	}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, including.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	for _, d := range claim(t, s, c) {
		if d.Letter.ID == publishing.Letter.ID && d.Attempt.Token != publishing.Attempt.Token {
			t.Errorf(
				"what was on its way when the copy was made goes under %s; its first copy has %s", d.Attempt.Token,
				publishing.Attempt.Token,
			)
		}
		mark(t, s, c, deadletter.OutcomeConfirmed, d)
	}
	if l := letter(t, s, ids[6]); l.State != deadletter.StateRequeued || l.Doubt != "" {
		t.Errorf("included: %s, doubt %q", l.State, l.Doubt)
	}
}

// TestAnotherBrokerTellsMoreOfARestore checks a restored store that sends letters to two brokers.
// Each broker has its own record of the store's progress, the mark. Both marks must count as the
// same loss. When dlo reads the second mark, it must keep the decisions that people have made since
// it read the first one.
func TestAnotherBrokerTellsMoreOfARestore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s := openNew(t, c)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = copyOf(t, s, c)
	c.at = c.at.Add(time.Hour)
	first, second := s.Progress(), s.Progress()
	first.Claims, first.At = 3, c.now().Add(-30*time.Minute)
	second.Claims, second.Received, second.At = 9, second.Received+4, c.now().Add(-10*time.Minute)
	if err := s.Restored(ctx, first, false); err != nil {
		t.Fatal(err)
	}
	op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann", Restored: true}
	if err := s.Freeze(ctx, &op, query.Selection{IDs: []deadletter.ID{id}}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, op.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, claim(t, s, c)...)
	if err := s.Restored(ctx, second, false); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, id); l.State != deadletter.StateRequeued {
		t.Errorf("what a person included is %s", l.State)
	}
	if r, err := s.Restore(ctx); err != nil || r.Missing != 4 || !r.Until.Equal(second.At) {
		t.Errorf("%+v, %v", r, err)
	}
}

// twoOfOne returns a store with a due letter, and a copy of the store.
func twoOfOne(t *testing.T, c *clock) (s, copied *store.Store, id deadletter.ID, body []byte) {
	t.Helper()
	s = openNew(t, c)
	w := window(t, 1, "sms", 1)
	id = receive(t, s, w).New[0]
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copied = copyOf(t, s, c)
	s, err := store.Open(t.Context(), s.Path(), store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, copied, id, w.Arrivals[0].Body
}

// TestTheOlderStoreRanLonger checks what a restored store lacks if it was used after the newer one.
func TestTheOlderStoreRanLonger(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	_, copied, _, _ := twoOfOne(t, c)
	seen := copied.Progress()
	seen.Claims, seen.At = seen.Claims+1, c.now().Add(-time.Hour)
	if err := copied.Restored(t.Context(), seen, false); err != nil {
		t.Fatal(err)
	}
	if r, err := copied.Restore(t.Context()); err != nil || r.Since.After(r.Until) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAReturnThatACopyDoesNotKnow checks a copy of a store. The copy receives deliveries with
// tokens that it does not know, for example those of attempts after the copy was made. If the copy
// is known to be one, and can compute the token of a delivery, the delivery belongs to a stored
// letter. Otherwise the token counts as foreign.
func TestAReturnThatACopyDoesNotKnow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, restored := range []bool{true, false} {
		c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
		s, copied, id, body := twoOfOne(t, c)
		var due deadletter.Due
		for n := range int64(3) {
			due = claim(t, s, c)[0]
			mark(t, s, c, deadletter.OutcomeConfirmed, due)
			if n < 2 {
				receive(t, s, returnWindow(t, 10+n, due, "sms", body))
				classify(t, s, deadletter.ClassifiedRetry, c.now())
			}
		}
		next := func() deadletter.Token {
			receive(t, s, returnWindow(t, 20, due, "sms", body))
			classify(t, s, deadletter.ClassifiedRetry, c.now())
			return claim(t, s, c)[0].Attempt.Token
		}()
		if restored {
			if err := copied.Restored(ctx, s.Progress(), false); err != nil {
				t.Fatal(err)
			}
		}
		stranger := due
		stranger.Attempt.Token = deadletter.NewToken()
		if r := receive(t, copied, returnWindow(t, 30, stranger, "sms", body)); r.CameBack != 0 || len(r.New) != 1 {
			t.Errorf("a token that nobody made: %+v", r)
		}
		r := receive(t, copied, returnWindow(t, 31, due, "sms", body))
		if !restored {
			if r.CameBack != 0 || len(r.New) != 1 {
				t.Errorf("in a copy that was not found to be one: %+v", r)
			}
			continue
		}
		if r.CameBack != 1 || len(r.New) != 0 {
			t.Fatalf("%+v", r)
		}
		l := letter(t, copied, id)
		if l.State != deadletter.StateReceived || l.Attempts != 3 || l.Doubt != "" {
			t.Errorf("%s after %d attempts, doubt %q", l.State, l.Attempts, l.Doubt)
		}
		if r := receive(t, copied, returnWindow(t, 32, due, "sms", body)); r.Copies != 1 {
			t.Errorf("once more: %+v", r)
		}
		classify(t, copied, deadletter.ClassifiedRetry, c.now())
		for _, d := range claim(t, copied, c) {
			if d.Letter.ID == id && d.Attempt.Token != next {
				t.Errorf("the next attempt has %s; the store that was lost gave it %s", d.Attempt.Token, next)
			}
		}
	}
}

// TestAReturnThatACopyDoesNotKnowWhileANewCopyIsOnItsWay checks a letter in a store that was
// restored from a backup. A person releases the letter, so dlo sends it. Then an earlier attempt
// comes back. dlo made this attempt after the backup, so the restored store does not know it. The
// attempt must be recorded for the letter, but must not change its state, because only the newest
// attempt counts.
func TestAReturnThatACopyDoesNotKnowWhileANewCopyIsOnItsWay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, state := range []deadletter.State{deadletter.StatePublishing, deadletter.StateRequeued} {
		c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
		lost, s, id, body := twoOfOne(t, c)
		var sent []deadletter.Due
		for n := range int64(4) {
			due := claim(t, lost, c)[0]
			mark(t, lost, c, deadletter.OutcomeConfirmed, due)
			receive(t, lost, returnWindow(t, 10+n, due, "sms", body))
			classify(t, lost, deadletter.ClassifiedRetry, c.now())
			sent = append(sent, due)
		}
		if err := s.Restored(ctx, lost.Progress(), false); err != nil {
			t.Fatal(err)
		}
		op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann", Restored: true}
		if err := s.Freeze(ctx, &op, query.Selection{IDs: []deadletter.ID{id}}, 0, anyPlace); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(ctx, op.ID, 10, nil); err != nil {
			t.Fatal(err)
		}
		due := claim(t, s, c)
		if len(due) != 1 || due[0].Attempt.Token != sent[0].Attempt.Token {
			t.Fatalf("%+v; the first copy has %s", due, sent[0].Attempt.Token)
		}
		if state == deadletter.StateRequeued {
			mark(t, s, c, deadletter.OutcomeConfirmed, due...)
		}
		if r := receive(t, s, returnWindow(t, 20, sent[2], "sms", body)); r.CameBack != 1 || len(r.New) != 0 {
			t.Errorf("%s: %+v", state, r)
		}
		if l := letter(t, s, id); l.State != state {
			t.Errorf("what came back of an older copy made it %s; it was %s", l.State, state)
		}
		if state == deadletter.StatePublishing {
			mark(t, s, c, deadletter.OutcomeConfirmed, due...)
		}
		if l := letter(t, s, id); l.State != deadletter.StateRequeued || l.Attempts != 3 {
			t.Errorf("the new copy is confirmed: %s after %d attempts", l.State, l.Attempts)
		}
		if r := receive(t, s, returnWindow(t, 21, due[0], "sms", body)); r.CameBack != 1 {
			t.Errorf("%s: the new copy comes back: %+v", state, r)
		}
		classify(t, s, deadletter.ClassifiedRetry, c.now())
		if next := claim(t, s, c); len(next) != 1 || next[0].Attempt.Token != sent[3].Attempt.Token {
			t.Errorf(
				"%s: the next attempt is %+v; the store that was lost gave it %s", state, next, sent[3].Attempt.Token,
			)
		}
	}
}

// TestARestoreIsToldOnceItsLettersAreHeld checks that dlo reports a restore only when all its
// letters are held. dlo may stop before that, and then the next start continues the restore. A
// report during this time would contain numbers that are too low.
func TestARestoreIsToldOnceItsLettersAreHeld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	_, s, _, _ := twoOfOne(t, c)
	seen := s.Progress()
	seen.Claims++
	if err := s.Restored(ctx, seen, false); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+s.Path())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE restores SET done = 0`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Restore(ctx); r != nil || err != nil {
		t.Errorf("while its letters are not held: %+v, %v", r, err)
	}
	if err := s.Restored(ctx, seen, false); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Restore(ctx); err != nil || r == nil || r.Held != 1 {
		t.Errorf("once they are: %+v, %v", r, err)
	}
}

// TestPeopleSayThatAStoreIsACopy checks what happens if a person declares the store a copy. No
// number of lost letters is reported, because nothing shows what was lost. The audit names the
// person.
func TestPeopleSayThatAStoreIsACopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	_, copied, id, _ := twoOfOne(t, c)
	u, err := deadletter.NewUser("lena", deadletter.Grant{Role: deadletter.RoleReader}, "root")
	if err != nil {
		t.Fatal(err)
	}
	old, session, fresh := [32]byte{1}, [32]byte{2}, [32]byte{3}
	made := copied.Progress().At
	if err := copied.AddUser(ctx, u, old, made.Add(deadletter.InvitationLasts)); err != nil {
		t.Fatal(err)
	}
	if err := copied.StartSession(ctx, deadletter.Session{
		User: "lena", Hash: session,
	}, "", made.Add(-time.Hour), made.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	u.Name = "ben"
	if err := copied.AddUser(ctx, u, fresh, c.at.Add(time.Minute+deadletter.InvitationLasts)); err != nil {
		t.Fatal(err)
	}
	if err := copied.HoldCopy(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := copied.SessionBy(
		ctx, session, made.Add(-time.Hour), made.Add(-time.Hour),
	); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("a session of the copy is alive: %v", err)
	}
	if _, err := copied.Invited(ctx, old); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("an invitation of the copy is valid: %v", err)
	}
	if _, err := copied.Invited(ctx, fresh); err != nil {
		t.Errorf("an invitation that was made after the start: %v", err)
	}
	if l := letter(t, copied, id); l.State != deadletter.StateHeld || l.Doubt != deadletter.DoubtRestored {
		t.Errorf("%s, doubt %q", l.State, l.Doubt)
	}
	if r, err := copied.Restore(ctx); err != nil || r.Missing != deadletter.MissingUnknown {
		t.Errorf("%+v, %v", r, err)
	}
	trail, _, err := copied.Audit(ctx, query.Query{}, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range trail {
		if e.Kind == "restored" && e.Actor == "ann" && strings.Contains(e.Detail, "It is unknown how much") {
			return
		}
	}
	t.Errorf("the trail does not say who said it: %+v", trail)
}
