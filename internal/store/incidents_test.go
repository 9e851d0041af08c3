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

// deliverDue delivers the notices that are due on a channel, together with the notices that each
// delivery includes. It returns each delivery as "kind key severity: groups".
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
		list = append(list, fmt.Sprintf("%s %s %s: %s", d.Notice.Kind, d.Notice.Key, d.Notice.Severity, strings.Join(said, " ")))
		if err := g.Delivered(g.t.Context(), []deadletter.Delivered{{ID: d.ID, Sent: true, With: d.With}}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// expectDeliveries fails the test unless a channel gets exactly these notices.
func (g *groups) expectDeliveries(channel string, want ...string) {
	g.t.Helper()
	if got := g.deliverDue(channel); !slices.Equal(got, want) {
		g.t.Errorf("%s is told\n%s\nand not\n%s", channel, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func channels(names ...string) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.Channels = names }
}

func (g *groups) deploy(service string) {
	g.t.Helper()
	if _, err := g.Deploy(g.t.Context(), deadletter.Deploy{Service: service, Version: "2", By: "ci"}); err != nil {
		g.t.Fatal(err)
	}
}

// Ten causes of one bad deploy, in ten queues, produce one page and one notice of the end.
func TestAFloodOfOneDeployIsOnePage(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.deploy("billing")
	g.pass(3 * time.Minute)
	for cause := range byte(10) {
		g.die(fmt.Sprint("queue", cause), cause+1, 3)
		g.pass(200 * time.Millisecond)
	}
	g.pass(10 * time.Second)
	const all = "G-1 G-2 G-3 G-4 G-5 G-6 G-7 G-8 G-9 G-10"
	g.expectDeliveries("oncall", "opened G-1/1 page: "+all)
	g.pass(4 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall") // the groups are still failing
	g.pass(time.Minute + 10*time.Second)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: "+all)
	g.die("queue3", 4, 1)
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-4/2 page: G-4") // a later failure is a new incident
}

// A group that joins after the page was sent produces an update of the page. One update covers all
// groups that joined in the meantime.
func TestACauseThatJoinsIsAnUpdate(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 3)
	g.pass(6 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.pass(10 * time.Second)
	g.die("sms", 2, 1)
	g.die("sms", 3, 1)
	g.expectDeliveries("oncall") // the letters of the new groups are counted for a moment first
	g.pass(6 * time.Second)
	g.expectDeliveries("oncall", "joined G-1/1 page: G-1 G-2 G-3")
}

// Each of these cases is an incident of its own.
func TestWhatPagesByItself(t *testing.T) {
	t.Parallel()
	quiet := severity(deadletter.SeverityNotify)
	for what, c := range map[string]struct {
		first, second []func(*deadletter.Classified)
		queue         string
		after         time.Duration
		deploys       int // 1 = one deploy before both groups; 2 = a second deploy between the groups
	}{
		"another queue, and no deploy": {queue: "email"},
		"later than a minute":          {queue: "sms", after: 61 * time.Second},
		"a higher severity":            {queue: "sms", first: []func(*deadletter.Classified){quiet}},
		"for somebody else":            {queue: "sms", second: []func(*deadletter.Classified){channels("oncall", "team")}},
		"after another deploy":         {queue: "email", deploys: 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := withGroups(t)
			if c.deploys > 0 {
				g.deploy("one")
			}
			g.die("sms", 1, 1, c.first...)
			if c.deploys > 1 {
				g.pass(time.Second)
				g.deploy("two")
			}
			g.pass(c.after)
			g.die(c.queue, 2, 1, c.second...)
			g.pass(10 * time.Second)
			got := g.deliverDue("oncall")
			if len(got) != 2 || !strings.HasPrefix(got[0], "opened G-1/1 ") || !strings.HasSuffix(got[0], ": G-1") || !strings.HasPrefix(got[1], "opened G-2/1 page") || !strings.HasSuffix(got[1], ": G-2") {
				t.Error(got)
			}
		})
	}
}

// A clock that is set back does not delay a page, and does not join unrelated groups into one
// incident.
func TestAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.pass(24 * time.Hour) // the clock is wrong
	g.die("sms", 1, 1)
	g.pass(-24 * time.Hour)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.die("sms", 2, 1)
	g.expectDeliveries("oncall") // the letters of the group are counted for a moment first
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-2/1 page: G-2")
}

// A group with a lower severity joins without lowering the severity of the page. If only some
// receivers are notified of a group, the notices to the other receivers do not mention it.
func TestAQuieterCauseJoins(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1, channels("oncall", "team"))
	g.die("sms", 2, 1, severity(deadletter.SeverityNotify), channels("team"))
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.expectDeliveries("team", "opened G-1/1 page: G-1 G-2")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall")
	g.expectDeliveries("team")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall", "resolved G-1/1 page: G-1") // the notice of the end has the severity of the opening notice
	g.expectDeliveries("team", "resolved G-1/1 page: G-1 G-2")
}

// A group whose severity rises above that of the other groups pages separately. Two such groups
// share one page.
func TestARiseOfSeverityPagesByItself(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := severity(deadletter.SeverityNotify)
	for cause := range byte(4) {
		g.die("sms", cause+1, 1, quiet)
	}
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 notify: G-1 G-2 G-3 G-4")
	g.die("sms", 1, 1) // the group that gave the incident its key
	g.die("sms", 3, 1)
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/2 page: G-1 G-3")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1, 3}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall", "resolved G-1/2 page: G-1 G-3")
	g.die("sms", 2, 1, quiet)
	g.die("sms", 4, 1, quiet)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2, 4}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall", "resolved G-1/1 notify: G-1 G-2 G-3 G-4")
}

// A group may rise to the severity of another group in its incident. This produces an update,
// because that severity was already paged.
func TestARiseToWhatWasPagedIsAnUpdate(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1, severity(deadletter.SeverityNotify))
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2")
	g.die("sms", 2, 1)
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "updated G-1/1 page: G-1 G-2")
}

// An incident ends when its last group is quiet or no longer needs people. Letters of its other
// groups may still wait.
func TestAnIncidentEndsWithItsLast(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	letters := g.die("sms", 1, 2)
	g.die("sms", 2, 2)
	g.die("sms", 3, 2)
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2 G-3")
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall")
	g.pass(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: G-1 G-2 G-3")
	g.tend()
	g.expectDeliveries("oncall")
}

// When the resolution of a group is undone, the group rejoins its incident. The incident had
// continued without the group.
func TestAnUndoneGroupBelongsToItsIncidentAgain(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.pass(10 * time.Second)
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

// Undoing the resolution of a quiet group pages no one, because people already know that the
// failure is over.
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
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	g.pass(time.Second)
	undo(resolve()) // no notice is sent
	g.expectDeliveries("oncall")
	g.expectDeliveries("hook")
	g.pass(time.Second)
	first := resolve()
	g.expectDeliveries("oncall", "resolved G-1/1 page: G-1")
	g.expectDeliveries("hook", "group.resolved G-1 page: G-1")
	g.pass(time.Second)
	undo(first) // people were notified of the end, so they are notified of the group again
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/3 page: G-1")
	g.pass(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/3 page: G-1")
	g.expectDeliveries("hook", "group.quiet G-1 page: G-1")
	g.pass(time.Second)
	undo(resolve())
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall")
	g.expectDeliveries("hook")
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	g.expectDeliveries("hook", "operation.finished O-1 digest: ", "group.resolved G-1 page: G-1") // sent once the group needs nobody
}

// A group that is over before its first notice was sent is not on the page. The page names only the
// other groups.
func TestWhatIsOverBeforeItIsSaid(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-2")
}

// A notice that waits for the morning is sent in the morning, even if its group is quiet by then.
// The letters of the group still need people.
func TestQuietDoesNotSwallowWhatWaitsForTheMorning(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 2, severity(deadletter.SeverityNotify))
	g.pass(time.Minute)
	due, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{{ID: due[0].ID, RetryAt: g.clock.now().Add(8 * time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	g.pass(2 * time.Hour)
	g.tend()
	g.pass(7 * time.Hour)
	g.tend()
	g.expectDeliveries("oncall", "opened G-1/1 notify: G-1")
	g.tend()
	g.expectDeliveries("oncall") // people get some time to look at the group
	g.pass(6 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 notify: G-1")
}

// A receiver that does not respond does not keep the incident open for other receivers.
func TestAReceiverThatIsDownKeepsNothingOpen(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 2, channels("oncall", "broken"))
	g.pass(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1")
	due, err := g.Due(t.Context(), "broken", 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{{ID: due[0].ID, RetryAt: g.clock.now().Add(time.Hour), Detail: "503"}}); err != nil {
		t.Fatal(err)
	}
	g.pass(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: G-1")
	g.pass(time.Hour)
	g.expectDeliveries("broken", "opened G-1/1 page: G-1", "quiet G-1/1 page: G-1")
}

// Alerts are repeated once per incident, under the incident's first group. The alerts of groups
// that have left the incident are ended.
func TestAlertsAreRepeatedByIncident(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.die("email", 3, 1)
	g.pass(10 * time.Second)
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

// The incident of a group is stored in the same transaction as the deaths of its letters. After a
// restart, the next process therefore sends an equal notice under an equal key.
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
	g.pass(time.Second)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = reopen()
	g.die("sms", 2, 1)
	g.pass(10 * time.Second)
	due, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 1 || len(due[0].With) != 1 { // the notice is sent, but dlo is killed before it records this
		t.Fatalf("%+v, %v", due, err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = reopen()
	again, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(again) != 1 || again[0].Notice.ID != due[0].Notice.ID || again[0].Notice.Key != due[0].Notice.Key {
		t.Fatalf("%+v, %v", again, err)
	}
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2")
}
