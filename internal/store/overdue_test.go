package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// withRetry returns a function that changes a verdict, so that the letter waits for a retry. The
// parameter "delay" is the time until this retry. The parameter "longest" is the time after which
// all retries of the letter should be over.
func (g *groups) withRetry(delay, longest time.Duration) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) {
		c.To, c.Rule, c.DueAt, c.ToldBy = deadletter.ClassifiedRetry, "pay", g.clock.now().Add(
			delay,
		), g.clock.now().Add(
			longest,
		)
	}
}

// overdue marks letters whose retries should be over. The parameter "since" is the time from which
// the broker has accepted messages.
func (g *groups) overdue(since time.Time) int {
	g.t.Helper()
	n, err := g.Overdue(
		g.t.Context(), "main", since, func(rule string) []string { return []string{"channel of " + rule} }, 500,
	)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// claim claims due letters and returns the attempts.
func (g *groups) claim(n int) []deadletter.Due {
	g.t.Helper()
	due, err := g.ClaimDue(g.t.Context(), "main", g.clock.now(), n,
		deadletter.Allowance{Allow: func(deadletter.Origin, string) (int, bool) { return n, false }})
	if err != nil {
		g.t.Fatal(err)
	}
	return due
}

// TestALetterThatIsHeldBackIsTold checks letters that wait longer than all their retries should
// last. Their group then needs people. People must be notified once, with the severity and channels
// of the letters' rule. If these letters die later, people must not be notified again.
func TestALetterThatIsHeldBackIsTold(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	start := g.clock.now()
	letters := g.die("pay", 1, 3, g.withRetry(time.Minute, 10*time.Minute))
	g.advance(10*time.Minute - 11*time.Second)
	if n := g.overdue(start); n != 0 || len(g.list("", deadletter.GroupPage{})) != 0 {
		t.Errorf("%d letters are overdue too soon", n)
	}
	g.advance(time.Second) // early enough for the notice to be sent in time
	if n := g.overdue(start); n != 3 {
		t.Errorf("%d letters are overdue", n)
	}
	if n := g.overdue(start); n != 0 {
		t.Errorf("%d letters are overdue again", n)
	}
	list := g.list("", deadletter.GroupPage{})
	if len(list) != 1 || list[0].Count != 0 || list[0].Overdue != 3 || list[0].Waiting != 3 ||
		list[0].Severity != deadletter.SeverityPage {
		t.Fatalf("the inbox has %+v", list)
	}
	if one := g.load(list[0].ID); one.Overdue != 3 || one.Letters[deadletter.StateScheduled] != 3 {
		t.Errorf("the group has %+v", one.GroupRow)
	}
	if counts, err := g.GroupCounts(t.Context(), ""); err != nil || counts.Inbox != 1 || counts.Letters != 3 {
		t.Errorf("%+v, %v", counts, err)
	}
	if d, err := g.Digest(
		t.Context(), start, g.clock.now().Add(time.Minute), 10,
	); err != nil || d.Groups != 1 || d.Letters != 3 {
		t.Errorf("the digest has %+v, %v", d, err)
	}
	g.advance(time.Minute)
	if got := g.deliverNotices("channel of pay"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	g.tend()
	if got := g.deliverNotices("channel of pay"); got != nil {
		t.Errorf("it still needs people: %v", got)
	}
	due := g.claim(3)
	if len(due) != 3 {
		t.Fatalf("%d letters leave", len(due))
	}
	if list := g.list("", deadletter.GroupPage{}); len(list) != 0 {
		t.Errorf("letters on their way are overdue: %+v", list)
	}
	var marks []deadletter.Mark
	for _, d := range due[:2] {
		marks = append(marks, deadletter.Mark{
			Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			DueAt: g.clock.now().Add(time.Hour),
		})
	}
	marks = append(marks, deadletter.Mark{
		Letter: due[2].Letter.ID, Token: due[2].Attempt.Token, Outcome: deadletter.OutcomeNacked,
		DueAt: g.clock.now().Add(time.Second),
	})
	if err := g.Mark(t.Context(), marks, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	if one := g.load(1); one.Overdue != 1 {
		t.Errorf("%d letters are overdue after one was refused by its queue", one.Overdue)
	}
	g.advance(time.Second)
	for _, d := range due[:2] {
		g.failAgain(d, "pay", func(c *deadletter.Classified) { c.To = deadletter.ClassifiedDead })
	}
	g.advance(time.Hour)
	if got := g.deliverNotices("channel of pay"); got != nil {
		t.Errorf("people are told again of letters that they know: %v", got)
	}
	if one := g.load(1); one.Count != 2 || one.Overdue != 1 {
		t.Errorf("%d letters are dead and %d overdue", one.Count, one.Overdue)
	}
	operate(t, g.Store, deadletter.VerbHold, letters...)
	if one := g.load(1); one.Overdue != 0 {
		t.Errorf("%d letters are overdue that a person holds", one.Overdue)
	}
}

// failAgain lets the letter of the attempt d die again in the given queue and come back to dlo.
// Each of the given functions changes the verdict of the letter, as in the method "die".
func (g *groups) failAgain(d deadletter.Due, queue string, changes ...func(*deadletter.Classified)) {
	g.t.Helper()
	g.window++
	receive(g.t, g.Store, returnWindow(g.t, g.window, d, queue, d.Letter.Body))
	letters, err := g.NextReceived(g.t.Context(), 500)
	if err != nil || len(letters) != 1 {
		g.t.Fatal(len(letters), err)
	}
	v := deadletter.Classified{
		Letter:       letters[0].ID,
		To:           deadletter.ClassifiedDead,
		Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: queue},
		Reason:       "rejected",
		Type:         "acme.T",
		Error:        "e",
		GroupKey:     [32]byte{1},
		GroupTitle:   "title of " + queue,
		GroupVersion: 1,
		Severity:     deadletter.SeverityPage,
		Channels:     []string{"channel of pay"},
		DiedAt:       g.clock.now().Truncate(time.Second),
	}
	for _, f := range changes {
		f(&v)
	}
	if err := g.Classify(g.t.Context(), []deadletter.Classified{v}); err != nil {
		g.t.Fatal(err)
	}
}

// TestHoldingBackAgainDoesNotPutOff covers a letter that is retried again and again. Each new
// verdict names a later time at which its retries should be over. The letter must nevertheless
// become overdue at the time in its first verdict, plus the time for which a worker had the letter.
func TestHoldingBackAgainDoesNotPutOff(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	start := g.clock.now()
	g.die("pay", 1, 1, g.withRetry(time.Minute, 10*time.Minute))
	for range 3 {
		g.advance(3 * time.Minute) // the letter was due for two minutes
		due := g.claim(1)
		if len(due) != 1 {
			t.Fatal("no letter is due")
		}
		mark := deadletter.Mark{
			Letter: due[0].Letter.ID, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			DueAt: g.clock.now().Add(time.Hour),
		}
		if err := g.Mark(t.Context(), []deadletter.Mark{mark}, deadletter.Noted{}); err != nil {
			t.Fatal(err)
		}
		g.advance(time.Minute) // a worker has the letter
		g.failAgain(due[0], "pay", g.withRetry(time.Minute, 10*time.Minute))
	}
	if n := g.overdue(start); n != 0 {
		t.Errorf("overdue after %s", g.clock.now().Sub(start))
	}
	g.advance(time.Minute)
	if n := g.overdue(start); n != 1 {
		t.Errorf("not overdue after %s: 10 minutes and 3 with its worker", g.clock.now().Sub(start))
	}
}

// TestWhatPeoplePausedIsNotOverdue checks letters that wait because people paused their retries, or
// because dlo is not connected to their broker. Such a letter must not become overdue. Afterwards,
// it must get the full time for its retries again.
func TestWhatPeoplePausedIsNotOverdue(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]deadletter.Guard{
		"queue": ofQueue("pay", "", "ann"),
		"group": {Group: 1, By: "ann"},
	} {
		g := withGroups(t)
		start := g.clock.now()
		g.die("pay", 1, 2, g.withRetry(time.Minute, 10*time.Minute))
		if _, err := g.Pause(t.Context(), guard); err != nil {
			t.Fatal(err)
		}
		g.advance(time.Hour)
		if n := g.overdue(start); n != 0 {
			t.Errorf("%s: %d letters are overdue while they are paused", name, n)
		}
		if err := g.Resume(t.Context(), guard); err != nil {
			t.Fatal(err)
		}
		g.advance(9*time.Minute - 11*time.Second)
		if n := g.overdue(start); n != 0 {
			t.Errorf("%s: %d letters are overdue as they may leave again", name, n)
		}
		g.advance(time.Second)
		if n := g.overdue(g.clock.now().Add(-8 * time.Minute)); n != 0 {
			t.Errorf("%s: %d letters are overdue of a broker that has just come back", name, n)
		}
		if n := g.overdue(start); n != 2 {
			t.Errorf("%s: %d letters are overdue", name, n)
		}
	}
}

// TestALetterIsGivenUp checks letters that a breaker holds back. If the breaker still holds them
// back a day after people were notified about them, they must become dead.
func TestALetterIsGivenUp(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	start := g.clock.now()
	g.die("pay", 1, 2, g.withRetry(time.Minute, 10*time.Minute))
	g.die("pay", 2, 1, g.withRetry(time.Minute, 10*time.Minute))
	g.advance(10 * time.Minute)
	g.overdue(start)
	breaker := deadletter.Breaker{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "pay"},
		Group:  1,
		State:  deadletter.GuardTripped,
		Since:  start,
	}
	if err := g.SetBreaker(t.Context(), breaker, nil); err != nil {
		t.Fatal(err)
	}
	g.advance(24*time.Hour - time.Second)
	if n, err := g.GiveUp(t.Context(), "main", 24*time.Hour, 500); n != 0 || err != nil {
		t.Errorf("%d letters are given up too soon, %v", n, err)
	}
	g.deliverNotices("channel of pay")
	g.advance(time.Second)
	if n, err := g.GiveUp(t.Context(), "main", 24*time.Hour, 500); n != 2 || err != nil {
		t.Errorf("%d letters are given up, %v", n, err)
	}
	if one, other := g.load(
		1,
	), g.load(2); one.Count != 2 || one.Overdue != 0 || other.Count != 0 || other.Overdue != 1 {
		t.Errorf(
			"the group that is held back has %d dead and %d overdue, the other %d and %d", one.Count, one.Overdue,
			other.Count, other.Overdue,
		)
	}
	g.advance(time.Hour)
	if got := g.deliverNotices("channel of pay"); got != nil {
		t.Errorf("people are told again: %v", got)
	}
}
