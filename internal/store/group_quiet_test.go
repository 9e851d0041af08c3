package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// send requeues letters in an operation. The broker confirms them, and they are watched.
func (g *groups) send(letters ...deadletter.ID) (op deadletter.OperationID, sent []deadletter.Due) {
	g.t.Helper()
	op, sent = requeue(g.t, g.Store, g.clock, letters...)
	mark(g.t, g.Store, g.clock, deadletter.OutcomeConfirmed, sent...)
	return op, sent
}

// settle ends the watch over the letters of a queue.
func (g *groups) settle(queue string) {
	g.t.Helper()
	g.advance(10 * time.Minute)
	if _, err := g.SettleQuiet(
		g.t.Context(), deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}, g.clock.now(), 100,
		deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1},
	); err != nil {
		g.t.Fatal(err)
	}
	g.tend()
	g.advance(time.Minute)
}

// TestAQuietGroup follows a group that is requeued, stays quiet, and fails again. While it is
// quiet, it must be in the list of quiet groups. When a letter dies, the group must come back, and
// people must be notified once. The same must happen after the next operation.
func TestAQuietGroup(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := func(want string) {
		t.Helper()
		counts, err := g.GroupCounts(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		list := g.list("", deadletter.GroupPage{Tab: deadletter.TabQuiet})
		if got := ids(list); got != want || counts.Quiet != len(list) {
			t.Errorf("quiet: %q, want %q; counted as %d", got, want, counts.Quiet)
		}
	}
	g.die("sms", 1, 3)
	letters := g.die("email", 2, 2)
	quiet("")
	g.advance(time.Minute)
	op, _ := g.send(letters...)
	quiet("") // its letters are watched
	g.settle("email")
	quiet("G-2")
	if one := g.load(2); !one.AllQuiet() || one.Status != deadletter.GroupNew || !one.Back.Since.IsZero() {
		t.Errorf("quiet: %+v", one.GroupRow)
	}
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"opened G-1/1", "opened G-2/1", "resolved G-2/1"}) {
		t.Error(got)
	}

	back := g.clock.now()
	g.die("email", 2, 1)
	g.advance(time.Minute)
	g.die("email", 2, 2)
	quiet("")
	one := g.load(2)
	if one.Status != deadletter.GroupRegressed || one.Back != (deadletter.Back{Since: back, After: op}) {
		t.Errorf("back: %s, %+v", one.Status, one.Back)
	}
	if e := one.History[0]; e.Kind != "regressed" || e.Detail != "it came back after "+op.String()+" was quiet" {
		t.Errorf("%+v", e)
	}
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"regressed G-2/2"}) {
		t.Error(got)
	}
	if rows := g.list("", deadletter.GroupPage{}); rows[0].ID != 2 || rows[0].Back != one.Back {
		t.Errorf("what came back is not first: %+v", rows)
	}

	sel := "group:G-2 state:dead"
	again := g.freeze(deadletter.VerbRequeue, sel)
	if _, err := g.Advance(t.Context(), again, 10, nil); err != nil {
		t.Fatal(err)
	}
	mark(t, g.Store, g.clock, deadletter.OutcomeConfirmed, claim(t, g.Store, g.clock)...)
	g.settle("email")
	quiet("G-2")
	g.die("email", 2, 1)
	g.advance(time.Minute)
	if got, n := g.load(2), g.deliverNotices("oncall"); got.Back.After != again ||
		!slices.Equal(n, []string{"resolved G-2/2", "quiet G-1/1", "regressed G-2/3"}) {
		t.Errorf("the second time: %+v, %s", got.Back, n)
	}
	if n := countKind(g.load(2).History, "regressed"); n != 2 {
		t.Errorf("%d returns in the history", n)
	}
}

func countKind(list []deadletter.Event, kind string) (n int) {
	for _, e := range list {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// freeze starts an operation on the letters that match a query.
func (g *groups) freeze(verb deadletter.Verb, q string) deadletter.OperationID {
	g.t.Helper()
	parsed, err := query.Parse(q, query.Options{Now: g.clock.now()})
	if err != nil {
		g.t.Fatal(err)
	}
	op := deadletter.Operation{Action: verb, By: "local", Through: "api"}
	if err := g.Freeze(g.t.Context(), &op, query.Selection{Query: &parsed}, 0, anyPlace); err != nil {
		g.t.Fatal(err)
	}
	return op.ID
}

// TestWhatIsNoReturn checks deaths in groups that were not quiet before. Such a group must not come
// back.
func TestWhatIsNoReturn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(g *groups, letters []deadletter.ID)
		status deadletter.GroupStatus
	}{
		"its letters are still watched": {func(g *groups, letters []deadletter.ID) { g.send(letters...) }, "new"},
		"a letter came back": {func(g *groups, letters []deadletter.ID) {
			_, sent := g.send(letters...)
			g.advance(time.Minute)
			g.failAgain(sent[0], "sms", withTrigger(deadletter.ClassifiedRetry), func(c *deadletter.Classified) {
				c.DueAt = g.clock.now().Add(time.Hour)
			})
			g.settle("sms")
		}, "new"},
		"its letters were discarded": {func(g *groups, letters []deadletter.ID) {
			operate(g.t, g.Store, deadletter.VerbDiscard, letters...)
			g.advance(time.Minute)
		}, "new"},
		"a letter was still dead": {func(g *groups, letters []deadletter.ID) {
			g.send(letters[1:]...)
			g.settle("sms")
		}, "new"},
		"it is snoozed": {func(g *groups, letters []deadletter.ID) {
			g.send(letters...)
			g.settle("sms")
			g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Snooze: &deadletter.Snooze{}})
		}, "snoozed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := withGroups(t)
			letters := g.die("sms", 1, 2)
			g.advance(time.Minute)
			c.before(g, letters)
			g.die("sms", 1, 1)
			if one := g.load(1); one.Status != c.status || !one.Back.Since.IsZero() {
				t.Errorf("%s, %+v", one.Status, one.Back)
			}
		})
	}
}

// TestALetterThatReturnsAfterItsWatch checks a letter that fails only after it was quiet. Its group
// must come back.
func TestALetterThatReturnsAfterItsWatch(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	letters := g.die("sms", 1, 2)
	g.advance(time.Minute)
	op, sent := g.send(letters...)
	g.settle("sms")
	g.failAgain(sent[0], "sms")
	if one := g.load(1); one.Status != deadletter.GroupRegressed || one.Back.After != op {
		t.Errorf("%s, %+v", one.Status, one.Back)
	}
}
