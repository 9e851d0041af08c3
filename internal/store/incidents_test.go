package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// deliverDue delivers the due notices of a channel, together with the notices that each delivery
// makes unnecessary. It returns each delivery as "kind key severity: groups".
func (g *groups) deliverDue(channel string) (list []string) {
	g.t.Helper()
	for {
		due, err := g.Due(g.t.Context(), channel, 1)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(due) == 0 {
			return list
		}
		d := due[0]
		said := []string{}
		for _, one := range d.Incident {
			said = append(said, one.ID.String())
		}
		if len(said) == 0 && d.Group != nil {
			said = append(said, d.Group.ID.String())
		}
		list = append(
			list, fmt.Sprintf("%s %s %s: %s", d.Notice.Kind, d.Notice.Key, d.Notice.Severity, strings.Join(said, " ")),
		)
		if err := g.Delivered(g.t.Context(), []deadletter.Delivered{{ID: d.ID, Sent: true, With: d.With}}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// expectDeliveries fails the test unless a channel gets exactly the given notices.
func (g *groups) expectDeliveries(channel string, want ...string) {
	g.t.Helper()
	if got := g.deliverDue(channel); !slices.Equal(got, want) {
		g.t.Errorf("%s is told\n%s\nand not\n%s", channel, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func withChannels(names ...string) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.Channels = names }
}

func (g *groups) deploy(service string) {
	g.t.Helper()
	if _, err := g.Deploy(g.t.Context(), deadletter.Deploy{Service: service, Version: "2", By: "ci"}); err != nil {
		g.t.Fatal(err)
	}
}

// TestAFloodOfOneDeployIsOnePage checks a bad deploy that leads to ten groups in ten queues. People
// must get a single notice about all of them, and a single notice of the end.
func TestAFloodOfOneDeployIsOnePage(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.deploy("billing")
	g.advance(3 * time.Minute)
	for cause := range byte(10) {
		g.die(fmt.Sprint("queue", cause), cause+1, 3)
		g.advance(200 * time.Millisecond)
	}
	g.advance(10 * time.Second)
	const all = "G-1 G-2 G-3 G-4 G-5 G-6 G-7 G-8 G-9 G-10"
	g.expectDeliveries("oncall", "opened G-1/1 page: "+all)
	g.advance(4 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall") // the groups are still failing
	g.advance(time.Minute + 10*time.Second)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: "+all)
	g.die("queue3", 4, 1)
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-4/2 page: G-4") // a later failure is a new incident
}

// TestACauseThatJoinsIsAnUpdate checks groups that join an incident after people were notified
// about the incident. One further notice must cover all groups that joined since the first notice.
func TestACauseThatJoinsIsAnUpdate(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 3)
	g.advance(6 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.advance(10 * time.Second)
	g.die("sms", 2, 1)
	g.die("sms", 3, 1)
	g.expectDeliveries("oncall") // notices about new groups are delayed for a moment
	g.advance(6 * time.Second)
	g.expectDeliveries("oncall", "joined G-1/1 page: G-1 G-2 G-3")
}

// TestWhatPagesByItself covers two groups that must not share an incident. For example, they belong
// to different queues, the second one begins more than a minute later, or it has a higher severity.
// In each case, the second group becomes an incident of its own.
func TestWhatPagesByItself(t *testing.T) {
	t.Parallel()
	quiet := withSeverity(deadletter.SeverityNotify)
	for what, c := range map[string]struct {
		first, second []func(*deadletter.Classified)
		queue         string
		after         time.Duration
		deploys       int // 1 = one deploy before both groups; 2 = also a deploy between the groups
	}{
		"another queue, and no deploy": {queue: "email"},
		"later than a minute":          {queue: "sms", after: 61 * time.Second},
		"a higher severity":            {queue: "sms", first: []func(*deadletter.Classified){quiet}},
		"for somebody else": {
			queue:  "sms",
			second: []func(*deadletter.Classified){withChannels("oncall", "team")},
		},
		"after another deploy": {queue: "email", deploys: 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := withGroups(t)
			if c.deploys > 0 {
				g.deploy("one")
			}
			g.die("sms", 1, 1, c.first...)
			if c.deploys > 1 {
				g.advance(time.Second)
				g.deploy("two")
			}
			g.advance(c.after)
			g.die(c.queue, 2, 1, c.second...)
			g.advance(10 * time.Second)
			got := g.deliverDue("oncall")
			if len(got) != 2 || !strings.HasPrefix(got[0], "opened G-1/1 ") || !strings.HasSuffix(got[0], ": G-1") ||
				!strings.HasPrefix(got[1], "opened G-2/1 page") || !strings.HasSuffix(got[1], ": G-2") {
				t.Error(got)
			}
		})
	}
}

// TestAClockThatIsSetBack sets the clock back by a day after a letter of one group died. After
// that, a letter of another group dies. The notices about both groups must be sent without delay,
// and the two unrelated groups must not join the same incident.
func TestAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.advance(24 * time.Hour) // the clock is wrong by a day
	g.die("sms", 1, 1)
	g.advance(-24 * time.Hour)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.die("sms", 2, 1)
	g.expectDeliveries("oncall") // notices about new groups are delayed for a moment
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-2/1 page: G-2")
}

// TestAQuieterCauseJoins checks a group that joins an incident with a higher severity. The notice
// about the incident must keep the higher severity. It must mention a group only to receivers that
// are notified about this group.
func TestAQuieterCauseJoins(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1, withChannels("oncall", "team"))
	g.die("sms", 2, 1, withSeverity(deadletter.SeverityNotify), withChannels("team"))
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.expectDeliveries("team", "opened G-1/1 page: G-1 G-2")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall")
	g.expectDeliveries("team")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Resolve: &deadletter.Resolution{}})
	// the notice of the end has the severity of the first notice
	g.expectDeliveries("oncall", "resolved G-1/1 page: G-1")
	g.expectDeliveries("team", "resolved G-1/1 page: G-1 G-2")
}

// TestARiseOfSeverityPagesByItself checks an incident with several groups of a low severity. If the
// severity of one group rises, the group must leave the incident and begin a new one, about which
// people are paged. If the severity of a second group rises as well, it must join the new incident,
// so that one notice names both groups.
func TestARiseOfSeverityPagesByItself(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := withSeverity(deadletter.SeverityNotify)
	for cause := range byte(4) {
		g.die("sms", cause+1, 1, quiet)
	}
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 notify: G-1 G-2 G-3 G-4")
	g.die("sms", 1, 1) // the incident has the key of this group
	g.die("sms", 3, 1)
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/2 page: G-1 G-3")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1, 3}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall", "resolved G-1/2 page: G-1 G-3")
	g.die("sms", 2, 1, quiet)
	g.die("sms", 4, 1, quiet)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2, 4}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall", "resolved G-1/1 notify: G-1 G-2 G-3 G-4")
}

// TestARiseToWhatWasPagedIsAnUpdate checks an incident with two groups, in which the severity of
// one group rises to that of the other group. People have already got a notice with the higher
// severity. Therefore, this notice is only updated.
func TestARiseToWhatWasPagedIsAnUpdate(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1, withSeverity(deadletter.SeverityNotify))
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2")
	g.die("sms", 2, 1)
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "updated G-1/1 page: G-1 G-2")
}

// TestAnIncidentEndsWithItsLast checks that an incident of several groups ends when each of its
// groups is quiet or no longer needs people. A group is quiet if no letter of it dies any more.
// Some letters of a quiet group may still wait for people.
func TestAnIncidentEndsWithItsLast(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	letters := g.die("sms", 1, 2)
	g.die("sms", 2, 2)
	g.die("sms", 3, 2)
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2 G-3")
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall")
	g.advance(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: G-1 G-2 G-3")
	g.tend()
	g.expectDeliveries("oncall")
}

// TestAnUndoneGroupBelongsToItsIncidentAgain checks an incident of two groups, one of which a
// person has resolved. If the resolution is undone, the group must belong to this incident again.
func TestAnUndoneGroupBelongsToItsIncidentAgain(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2")
	resolve := func(id deadletter.GroupID) int64 {
		return g.decide(deadletter.Decision{Groups: []deadletter.GroupID{id}, Resolve: &deadletter.Resolution{}}).ID
	}
	if _, err := g.Undo(t.Context(), resolve(1), "ana"); err != nil {
		t.Fatal(err)
	}
	resolve(2)
	g.expectDeliveries("oncall")
	resolve(1)
	g.expectDeliveries("oncall", "resolved G-1/1 page: G-1 G-2")
}

// TestAnUndoneDecisionOnAQuietGroupPagesNobody undoes the resolution of a quiet group. Nobody may
// be paged, because people already know that the failure is over.
func TestAnUndoneDecisionOnAQuietGroupPagesNobody(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.Machines("hook")
	letters := g.die("sms", 1, 1)
	resolve := func() int64 {
		return g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}}).ID
	}
	undo := func(decision int64) {
		t.Helper()
		if _, err := g.Undo(t.Context(), decision, "ana"); err != nil {
			t.Fatal(err)
		}
	}
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.advance(time.Second)
	undo(resolve()) // no notice is sent
	g.expectDeliveries("oncall")
	g.expectDeliveries("hook")
	g.advance(time.Second)
	first := resolve()
	g.expectDeliveries("oncall", "resolved G-1/1 page: G-1")
	g.expectDeliveries("hook", "group.resolved G-1 page: G-1")
	g.advance(time.Second)
	undo(first) // people were notified that the group is over, so they are notified about it again
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/3 page: G-1")
	g.advance(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/3 page: G-1")
	g.expectDeliveries("hook", "group.quiet G-1 page: G-1")
	g.advance(time.Second)
	undo(resolve())
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall")
	g.expectDeliveries("hook")
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	// this notice is sent when the group needs nobody
	g.expectDeliveries("hook", "operation.finished O-1 digest: ", "group.resolved G-1 page: G-1")
}

// TestWhatIsOverBeforeItIsSaid checks an incident in which one group no longer needs people before
// the first notice is sent. This notice must name only the other groups of the incident.
func TestWhatIsOverBeforeItIsSaid(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-2")
}

// TestQuietDoesNotSwallowWhatWaitsForTheMorning checks a notice that waits until quiet hours end in
// the morning. The notice must then be sent even if the group has become quiet during the night,
// because the letters of the group still need people.
func TestQuietDoesNotSwallowWhatWaitsForTheMorning(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 2, withSeverity(deadletter.SeverityNotify))
	g.advance(time.Minute)
	due, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{
		{ID: due[0].ID, RetryAt: g.clock.now().Add(8 * time.Hour)},
	}); err != nil {
		t.Fatal(err)
	}
	g.advance(2 * time.Hour)
	g.tend()
	g.advance(7 * time.Hour)
	g.tend()
	g.expectDeliveries("oncall", "opened G-1/1 notify: G-1")
	g.tend()
	g.expectDeliveries("oncall") // people first get some time to look at the group
	g.advance(6 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 notify: G-1")
}

// TestAReceiverThatIsDownKeepsNothingOpen checks an incident with two receivers, one of which does
// not respond. The other receiver must nevertheless get the notice that the failure is over.
func TestAReceiverThatIsDownKeepsNothingOpen(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 2, withChannels("oncall", "broken"))
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	due, err := g.Due(t.Context(), "broken", 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{
		{ID: due[0].ID, RetryAt: g.clock.now().Add(time.Hour), Detail: "503"},
	}); err != nil {
		t.Fatal(err)
	}
	g.advance(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: G-1")
	g.advance(time.Hour)
	g.expectDeliveries("broken", "opened G-1/1 page: G-1", "quiet G-1/1 page: G-1")
}

// TestAlertsAreRepeatedByIncident checks that an alert is repeated only once for each incident, for
// the first group of the incident. If a group has left the incident, the alert about this group
// must end.
func TestAlertsAreRepeatedByIncident(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.die("email", 3, 1)
	g.advance(10 * time.Second)
	g.deliverDue("oncall")
	told := func() (list []string) {
		t.Helper()
		ds, err := g.Told(t.Context(), "oncall")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			one := d.Notice.Key + " " + d.Group.ID.String()
			for _, left := range d.Left {
				one += " without " + left.ID.String()
			}
			list = append(list, one)
		}
		return list
	}
	if got := told(); !slices.Equal(got, []string{"G-1/1 G-1", "G-3/1 G-3"}) {
		t.Error(got)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	if got := told(); !slices.Equal(got, []string{"G-1/1 G-2 without G-1", "G-3/1 G-3"}) {
		t.Error(got)
	}
}

// TestAnIncidentOutlivesTheProcess checks a restart between the deaths of letters and the notice
// about them. The incident is stored in the same transaction as the deaths, so the next process
// must send the same notice with the same key.
func TestAnIncidentOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	reopen := func() *groups {
		t.Helper()
		s, err := store.Open(t.Context(), path, store.Options{Now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return &groups{Store: s, t: t, clock: c, window: int64(c.at.Second())}
	}
	g := reopen()
	g.die("sms", 1, 1)
	g.advance(time.Second)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = reopen()
	g.die("sms", 2, 1)
	g.advance(10 * time.Second)
	due, err := g.Due(t.Context(), "oncall", 10)
	// the notice is sent, but dlo is killed before the delivery is recorded
	if err != nil || len(due) != 1 || len(due[0].With) != 1 {
		t.Fatalf("%+v, %v", due, err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = reopen()
	again, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(again) != 1 || again[0].Notice.ID != due[0].Notice.ID ||
		again[0].Notice.Key != due[0].Notice.Key {
		t.Fatalf("%+v, %v", again, err)
	}
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2")
}
