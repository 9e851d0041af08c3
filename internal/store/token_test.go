package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TestACopyOfTheStoreSendsUnderTheSameToken sends the same letter from a store and from older
// copies of the store, as if a backup had been restored. The store and each copy must use the same
// token for it, even if a queue rejected an attempt or the broker was renamed in between. However,
// the token must be different for the next attempt, for another target queue, and after each edit.
func TestACopyOfTheStoreSendsUnderTheSameToken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	opened := func(path string) *store.Store {
		s, err := store.Open(ctx, path, store.Options{Now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	path := filepath.Join(t.TempDir(), "dlo.db")
	s := opened(path)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := func(body string) func(*store.Store) error {
		return func(s *store.Store) error {
			_, err := s.Revise(ctx, deadletter.Revision{
				Letter: id, Number: 1, Body: []byte(body), By: "ann", Reason: "r",
			})
			return err
		}
	}
	var first deadletter.Due
	tokens := map[deadletter.Token]string{}
	for n, change := range []struct {
		what string
		do   func(*store.Store) error
	}{
		{"as it is", func(*store.Store) error { return nil }},
		{"another target", func(s *store.Store) error {
			_, err := s.AddOverride(ctx, deadletter.Override{
				Broker: "main", VHost: "/", Queue: "sms", To: "sms2", By: "bob",
			})
			return err
		}},
		{"an edit", edited("shorter")},
		{"another edit", edited("shorter still")},
	} {
		copied := filepath.Join(t.TempDir(), fmt.Sprint(n, ".db"))
		if err := os.WriteFile(copied, file, 0o600); err != nil {
			t.Fatal(err)
		}
		s := opened(copied)
		if err := change.do(s); err != nil {
			t.Fatal(err)
		}
		_, due := requeue(t, s, c, id)
		if other, known := tokens[due[0].Attempt.Token]; known {
			t.Errorf("%s has the token of %s", change.what, other)
		}
		tokens[due[0].Attempt.Token] = change.what
		if n == 0 {
			first = due[0]
		}
	}
	renamed := filepath.Join(t.TempDir(), "renamed.db")
	if err := os.WriteFile(renamed, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s = opened(renamed)
	if err := errors.Join(s.RenameBroker(ctx, "main", "prod"), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = opened(renamed)
	operate(t, s, deadletter.VerbRequeue, id)
	due, err := s.ClaimDue(ctx, "prod", c.now(), 1, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 1, false },
	})
	if err != nil || len(due) != 1 || due[0].Attempt.Token != first.Attempt.Token {
		t.Errorf("in a copy whose broker has another name: %+v, %v, want %s", due, err, first.Attempt.Token)
	}
	s = opened(path)
	_, refused := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeNacked, refused...)
	c.at = c.at.Add(time.Hour)
	sent := claim(t, s, c)
	if refused[0].Attempt.Token != first.Attempt.Token || sent[0].Attempt.Token != first.Attempt.Token {
		t.Errorf(
			"%s in a copy, and %s and %s after a refusal", first.Attempt.Token, refused[0].Attempt.Token,
			sent[0].Attempt.Token,
		)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, sent...)
	if r := receive(t, s, returnWindow(t, 2, sent[0], "sms", sent[0].Letter.Body)); r.CameBack != 1 {
		t.Errorf("it did not join its row: %+v", r)
	}
	if list := attempts(
		t, s, id,
	); list[0].Outcome != deadletter.OutcomeNacked || list[1].Outcome != deadletter.OutcomeCameBack {
		t.Errorf("%+v", list)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if _, due := requeue(t, s, c, id); tokens[due[0].Attempt.Token] != "" {
		t.Error("the next attempt has a token of before")
	}
}
