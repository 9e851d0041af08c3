package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// TestAWatchedLetterIsPurged purges a letter that an operation has sent and still watches. The
// operation must nevertheless end. If the letter comes back after the purge, it must become a new
// letter.
func TestAWatchedLetterIsPurged(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	op, due := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	operate(t, s, deadletter.VerbPurge, id)
	got := operation(t, s, op)
	if diff := cmp.Diff(
		counted{deadletter.ResultUnverified: 1}, got.Counts,
	); diff != "" || got.State != deadletter.OperationDone || got.Phase != deadletter.PhaseOver {
		t.Errorf("%s, %s (-want +got):\n%s", got.State, got.Phase, diff)
	}
	r := receive(t, s, returnWindow(t, 2, due[0], "sms", due[0].Letter.Body))
	if len(r.New) != 1 || letter(t, s, r.New[0]).Twin != id || letter(t, s, id).State != deadletter.StatePurged {
		t.Errorf("%+v", r)
	}
}

// TestAnOlderAttemptComesBackWhileANewerIsWatched checks a letter that was sent twice, because its
// first attempt was in doubt. If the message of the first attempt comes back while the message of
// the second one is still in the queue, dlo must not send the letter again. The operation of the
// first attempt must record the result of this attempt.
func TestAnOlderAttemptComesBackWhileANewerIsWatched(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	first, doubtful := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeInDoubt, doubtful...)
	second, due := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	if r := receive(t, s, returnWindow(t, 2, doubtful[0], "sms", doubtful[0].Letter.Body)); r.CameBack != 1 {
		t.Fatal(r)
	}
	if l := letter(t, s, id); l.State != deadletter.StateRequeued || l.Attempts != 2 {
		t.Errorf("%s after %d attempts", l.State, l.Attempts)
	}
	if got := operation(t, s, first); got.Counts[deadletter.ResultCameBack] != 1 {
		t.Errorf("the first: %v", got.Counts)
	}
	c.at = c.at.Add(time.Hour)
	if n, err := s.SettleQuiet(context.Background(), due[0].Letter.Origin(), c.now(), 10, deadletter.QueueFacts{
		Known: true, Exists: true, Consumers: 1,
	}); err != nil || n != 1 {
		t.Error(n, err)
	}
	if got := operation(
		t, s, second,
	); got.State != deadletter.OperationDone || got.Counts[deadletter.ResultQuiet] != 1 {
		t.Errorf("the second is %s: %v", got.State, got.Counts)
	}
}

// TestACancelledLetterIsHeldAsItWas checks a held letter that a requeue releases. The operation is
// then cancelled, and the queue rejects the letter. The letter must be held again, for the same
// reason as before the requeue.
func TestACancelledLetterIsHeldAsItWas(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} { // true if the queue rejects the letter after the operation was cancelled
		s, c := open(t)
		ctx := context.Background()
		guarded := receive(t, s, window(t, 1, "sms", 1)).New[0]
		classify(t, s, deadletter.ClassifiedHold, time.Time{})
		dead := receive(t, s, window(t, 2, "sms", 1)).New[0]
		classify(t, s, deadletter.ClassifiedDead, time.Time{})
		operate(t, s, deadletter.VerbHold, dead)
		why := letter(t, s, guarded).Why
		op, due := requeue(t, s, c, guarded, dead)
		if !late {
			mark(t, s, c, deadletter.OutcomeNacked, due...)
		}
		if err := s.CancelOperation(ctx, op, "eve"); err != nil {
			t.Fatal(err)
		}
		if late {
			mark(t, s, c, deadletter.OutcomeNacked, due...)
		}
		for id, want := range map[deadletter.ID]string{guarded: why, dead: "held by local"} {
			if l := letter(t, s, id); l.State != deadletter.StateHeld || l.Why != want {
				t.Errorf("late %v: %s: %q, want %q", late, l.State, l.Why, want)
			}
		}
		operate(t, s, deadletter.VerbRelease, guarded, dead)
		if g, d := letter(
			t, s, guarded,
		).State, letter(t, s, dead).State; g != deadletter.StateReceived || d != deadletter.StateDead {
			t.Errorf("late %v: released, they are %s and %s", late, g, d)
		}
	}
}

// TestALetterWithoutOriginIsReleased checks a letter whose origin is unknown. A person sends it to
// another queue. Because that queue does not exist, the letter is held. When a person releases it,
// dlo knows no queue to which it could send the letter, so the letter must be classified again.
func TestALetterWithoutOriginIsReleased(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	w := window(t, 1, "", 1)
	w.Arrivals[0].Properties.Headers = nil
	id := receive(t, s, w).New[0]
	classify(t, s, deadletter.ClassifiedHold, time.Time{})
	op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "local", To: "spare"}
	if err := s.Freeze(ctx, &op, query.Selection{IDs: []deadletter.ID{id}}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, op.ID, 1, nil); err != nil {
		t.Fatal(err)
	}
	mark(t, s, c, deadletter.OutcomeReturned, claim(t, s, c)...)
	operate(t, s, deadletter.VerbRelease, id)
	if l := letter(t, s, id); l.State != deadletter.StateReceived || !l.Unguarded {
		t.Errorf("%s, unguarded %v", l.State, l.Unguarded)
	}
}

// TestAPurgeSparesWhatComesBackMeanwhile checks that a purge skips letters which have changed since
// they were selected. An example is a letter that came back while people could still undo the
// purge.
func TestAPurgeSparesWhatComesBackMeanwhile(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	ids := receive(t, s, window(t, 1, "sms", 2)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, due := requeue(t, s, c, ids...)
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	purge := deadletter.Operation{
		Action: deadletter.VerbPurge,
		By:     "local",
		Pace:   deadletter.Pace{Hold: 10 * time.Second},
	}
	q := parse(t, "state:requeued")
	if err := s.Freeze(ctx, &purge, query.Selection{Query: &q}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Second)
	receive(t, s, returnWindow(t, 2, due[0], "sms", due[0].Letter.Body))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if err := s.EnterPhase(
		ctx, purge.ID, deadletter.PhaseHolding, deadletter.PhaseSending, time.Time{}, "",
	); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, purge.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, due[0].Letter.ID); l.State != deadletter.StateDead || len(l.Body) == 0 {
		t.Errorf("what came back is %s", l.State)
	}
	if l := letter(t, s, due[1].Letter.ID); l.State != deadletter.StatePurged {
		t.Errorf("the other is %s", l.State)
	}
	got := operation(t, s, purge.ID)
	if diff := cmp.Diff(counted{deadletter.ResultChanged: 1, deadletter.ResultSkipped: 1}, got.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestALetterChangesWhileItIsIndexed checks a letter that changes while the indexer reads it: the
// letter comes back, and the rules decide about it again. The indexer must read the letter once
// more, so that a search finds its current state.
func TestALetterChangesWhileItIsIndexed(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, due := requeue(t, s, c, id)
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	c.at = c.at.Add(time.Second)
	claimed, err := s.NextUnindexed(ctx, 10)
	if err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	receive(t, s, returnWindow(t, 2, due[0], "sms", due[0].Letter.Body))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if err := s.Index(ctx, []deadletter.Indexed{
		{Letter: id, AsOf: claimed[0].ChangedAt, Text: "the first error"},
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Unindexed(ctx); err != nil || n != 1 || count(t, s, "first") != 0 {
		t.Errorf("%d letters to be indexed, %d found by what they were (%v)", n, count(t, s, "first"), err)
	}
	if claimed, err = s.NextUnindexed(ctx, 10); err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	if err := s.Index(ctx, []deadletter.Indexed{
		{Letter: id, AsOf: claimed[0].ChangedAt, Text: "the second error"},
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Unindexed(ctx); err != nil || n != 0 || count(t, s, "second") != 1 {
		t.Errorf("%d letters to be indexed (%v)", n, err)
	}
}

// TestWhatIsHeldInDoubtWasNotSentTwice checks which letters count as sent twice. A letter in doubt
// that dlo sent again must count, because it may have arrived twice. A letter that dlo sent only
// once must not count, even if it is held because its outcome is in doubt.
func TestWhatIsHeldInDoubtWasNotSentTwice(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/dlo.db"
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	reopen := func(s *store.Store) *store.Store {
		if s != nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c.at = c.at.Add(time.Second)
		s, err := store.Open(context.Background(), path, store.Options{Now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	again := func(s *store.Store) []deadletter.Due {
		due, err := s.ClaimDoubtful(context.Background(), "main", c.now(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return due
	}
	s := reopen(nil)
	ids := receive(t, s, window(t, 1, "sms", 2)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	op, due := requeue(t, s, c, ids...)
	mark(t, s, c, deadletter.OutcomeConfirmed, due[1])
	s = reopen(s)
	mark(t, s, c, deadletter.OutcomeInDoubt, again(s)...)
	if got := operation(t, s, op); got.Twice != 0 || attempts(t, s, due[0].Letter.ID)[0].Sends != 1 {
		t.Errorf(
			"%d letters may have been sent twice; sent %d times", got.Twice, attempts(t, s, due[0].Letter.ID)[0].Sends,
		)
	}

	op, due = requeue(t, s, c, due[0].Letter.ID)
	s = reopen(s)
	again(s) // the letter is sent again
	s = reopen(s)
	mark(t, s, c, deadletter.OutcomeInDoubt, again(s)...) // the setting in_doubt has the value hold from here on
	if got := operation(t, s, op); got.Twice != 1 || attempts(t, s, due[0].Letter.ID)[1].Sends != 2 {
		t.Errorf(
			"%d letters may have been sent twice; sent %d times", got.Twice, attempts(t, s, due[0].Letter.ID)[1].Sends,
		)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestASelectionIsAsOfWhatCanBeSeen checks a selection that is made while a write is running. A
// reader cannot see the changes of this write yet, so the selection must not include them.
func TestASelectionIsAsOfWhatCanBeSeen(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	receive(t, s, window(t, 1, "sms", 2))
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	c.at = c.at.Add(time.Second)
	q := parse(t, "queue:sms -state:scheduled")
	var until time.Time
	due, err := s.ClaimDue(ctx, "main", c.now(), 1, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) {
			c.at = c.at.Add(time.Second) // a person reads the letters while the write is running
			until = s.AsOf(c.now())
			if n, _, err := s.Count(ctx, q, 0); n != 0 || err != nil {
				t.Error(n, err)
			}
			return 1, false
		},
	})
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	op := deadletter.Operation{Action: deadletter.VerbHold, By: "local"}
	if err := s.Freeze(
		ctx, &op, query.Selection{Query: &q, Until: until}, 0, anyPlace,
	); !errors.Is(err, deadletter.ErrInvalid) {
		t.Errorf("it takes %d letters where none was shown (%v)", op.Total, err)
	}
	if at := s.AsOf(c.now()); !at.Equal(c.now()) {
		t.Errorf("as of %s at %s", at, c.now())
	}
}

// TestAGroupIsNotNamedAfterAPurgedLetter checks that the error text of a purged letter does not
// remain in the title of its group.
func TestAGroupIsNotNamedAfterAPurgedLetter(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	arrive := func(number int64, texts ...string) []deadletter.ID {
		ids := receive(t, s, window(t, number, "sms", len(texts))).New
		var verdicts []deadletter.Classified
		for i, id := range ids {
			verdicts = append(verdicts, deadletter.Classified{
				Letter:       id,
				To:           deadletter.ClassifiedDead,
				Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
				GroupKey:     [32]byte{7},
				GroupTitle:   texts[i],
				Error:        texts[i],
				GroupVersion: 1,
				Severity:     deadletter.SeverityDigest,
			})
		}
		if err := s.Classify(ctx, verdicts); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	title := func() string {
		text, err := s.GroupTitle(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ids := arrive(1, "card 1111 refused", "card 2222 refused", "card 3333 refused")
	for i, want := range []string{"card 2222 refused", "card 3333 refused", "letters that were purged"} {
		operate(t, s, deadletter.VerbPurge, ids[i])
		if got := title(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	arrive(2, "card 4444 refused")
	if got := title(); got != "card 4444 refused" {
		t.Errorf("%q", got)
	}
}

// TestManyLettersAreWatchedOn checks a queue without consumers that holds very many sent letters.
// When dlo extends the time for which it watches these letters, it must do so in several
// transactions, so that ingest can write in between.
func TestManyLettersAreWatchedOn(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	var due []deadletter.Due
	for i := range 5 {
		receive(t, s, window(t, int64(i+1), "sms", 500))
		classify(t, s, deadletter.ClassifiedRetry, c.now())
		claimed, err := s.ClaimDue(ctx, "main", c.now(), 500, deadletter.Allowance{
			Allow: func(deadletter.Origin, string) (int, bool) { return 500, false },
		})
		if err != nil {
			t.Fatal(err)
		}
		due = append(due, claimed...)
		mark(t, s, c, deadletter.OutcomeConfirmed, claimed...)
	}
	c.at = c.at.Add(time.Hour)
	before := s.Changes()
	if err := s.WatchOn(ctx, due[0].Letter.Origin(), c.now(), c.now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if commits := s.Changes() - before; len(due) != 2500 || commits < 3 {
		t.Errorf("%d letters in %d commits", len(due), commits)
	}
	if at, err := s.Watched(ctx, "main", c.now()); err != nil || len(at) != 0 {
		t.Error(at, err)
	}
}

// TestSearchForgetsWhatIsMaskedNow checks a change of the masks. Even before the letters are
// indexed again, a search must no longer find text that is masked now.
func TestSearchForgetsWhatIsMaskedNow(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	for _, c := range []struct {
		version string
		found   int
	}{{"none:1", 1}, {"none:2", 1}, {"cards:2", 0}, {"cards:2", 0}} {
		if c.found == 1 {
			if err := s.Index(ctx, []deadletter.Indexed{{Letter: id, Text: "card 4111"}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Reindex(ctx, c.version); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Unindexed(ctx); err != nil || n != 1 || count(t, s, "4111") != c.found {
			t.Errorf("%s: %d found, %d to be indexed (%v)", c.version, count(t, s, "4111"), n, err)
		}
	}
	if err := s.Index(ctx, []deadletter.Indexed{{Letter: id, Text: "card"}}); err != nil || count(t, s, "card") != 1 {
		t.Errorf("%d found (%v)", count(t, s, "card"), err)
	}
}
