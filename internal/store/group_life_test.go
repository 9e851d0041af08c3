package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestRegression checks when a resolved group is opened again: when one of its letters dies after
// the resolution. A letter that died before the resolution and only arrives after it must not open
// the group.
func TestRegression(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 2)
	g.advance(time.Minute)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.advance(time.Minute)
	g.die("sms", 1, 1, withDeathTime(g.clock.now().Add(-90*time.Second)))
	if one := g.load(1); one.Status != deadletter.GroupResolved || one.Count != 3 {
		t.Errorf("it died before the resolve: %s, %d letters", one.Status, one.Count)
	}
	g.die("sms", 1, 1, withDeathTime(g.clock.now().Add(-30*time.Second)))
	one := g.load(1)
	if one.Status != deadletter.GroupRegressed || len(g.list("", deadletter.GroupPage{})) != 1 {
		t.Errorf("it died after the resolve: %s", one.Status)
	}
	if e := one.History[0]; e.Kind != "regressed" || e.Actor != deadletter.Service.Name {
		t.Errorf("%+v", one.History)
	}
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{
		"opened G-1/1", "resolved G-1/1", "regressed G-1/2",
	}) {
		t.Error(got)
	}
}

// TestAGroupStaysAsLoudAsItsLettersAre checks that a letter with a lower severity does not lower
// the severity of a group that has letters with a higher severity. When no letter with the higher
// severity needs people any more, the next letter determines the severity.
func TestAGroupStaysAsLoudAsItsLettersAre(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := func(c *deadletter.Classified) { c.Severity, c.Channels = deadletter.SeverityDigest, nil }
	severity := func(what string, want deadletter.Severity) {
		t.Helper()
		if got := g.load(1).Severity; got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	g.die("sms", 1, 1, quiet)
	severity("a quiet one", deadletter.SeverityDigest)
	g.die("sms", 1, 1)
	severity("a loud one", deadletter.SeverityPage)
	g.advance(time.Minute)
	g.die("sms", 1, 3, quiet)
	severity("quiet ones beside it", deadletter.SeverityPage)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.advance(time.Minute)
	g.die("sms", 1, 1, quiet)
	severity("after it was resolved", deadletter.SeverityDigest)
}

// TestRegressionByVersion checks a group that a person resolved with the version that contains the
// fix. If consumers with an older version continue to fail, the group must stay resolved. If
// consumers with the version of the fix fail, the group must be opened again.
func TestRegressionByVersion(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	version := func(v string) func(*deadletter.Classified) {
		return func(c *deadletter.Classified) { c.Version = v }
	}
	g.die("sms", 1, 1, version("2026.9.30"))
	g.decide(deadletter.Decision{
		Groups:  []deadletter.GroupID{1},
		Resolve: &deadletter.Resolution{Version: "2026.11.2"},
	})
	g.advance(time.Hour)
	for _, c := range []struct {
		version string
		want    deadletter.GroupStatus
	}{{"2026.9.30", deadletter.GroupResolved}, {"2026.11.2", deadletter.GroupRegressed}} {
		g.die("sms", 1, 1, version(c.version))
		if one := g.load(1); one.Status != c.want || one.Resolved.Version != "2026.11.2" {
			t.Errorf("%s: %s, resolved in %q", c.version, one.Status, one.Resolved.Version)
		}
	}
}

// TestSnoozes checks the three ways in which a snooze can end: at a certain time, after a certain
// number of letters, or when the same error is seen in another queue. Until then, nobody may be
// notified.
func TestSnoozes(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	for key := range byte(4) {
		g.die(fmt.Sprint("q", key), key+1, 1)
	}
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); len(got) != 4 {
		t.Fatal(got)
	}
	until := g.clock.now().Add(time.Hour)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Snooze: &deadletter.Snooze{Until: until}})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Snooze: &deadletter.Snooze{After: 3}})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Snooze: &deadletter.Snooze{Queue: true}})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{4}, Snooze: &deadletter.Snooze{}})
	if got := ids(g.list("", deadletter.GroupPage{Tab: deadletter.TabSnoozed})); got != "G-1 G-2 G-3 G-4" {
		t.Error(got)
	}
	// the snooze ends the alert on the pager
	if got := g.deliverNotices("oncall"); len(got) != 4 || got[0] != "resolved G-1/1" {
		t.Error(got)
	}
	if one := g.load(4); !one.Snooze.Until.Equal(g.clock.now().Add(deadletter.MaxSnooze)) || one.Snooze.By != "ana" {
		t.Errorf("a snooze without an end: %+v", one.Snooze)
	}
	g.advance(time.Minute)
	g.die("q0", 1, 5)
	g.die("q1", 2, 2)
	g.die("q2", 3, 5)
	g.tend()
	if got := ids(g.list("", deadletter.GroupPage{})); got != "" {
		t.Errorf("%s are not snoozed any more", got)
	}
	g.die("q1", 2, 1)
	g.die("other", 3+0x80, 1) // the cause of group 3 is seen in another queue
	g.advance(time.Hour)
	g.tend()
	if got := ids(g.list("-queue:other", deadletter.GroupPage{Order: deadletter.ByFirst})); got != "G-1 G-2 G-3" {
		t.Errorf("in the inbox again: %s", got)
	}
	got := g.deliverNotices("oncall")
	if !slices.Equal(got, []string{"opened G-2/2", "opened G-5/1"}) {
		t.Error(got)
	}
	g.die("q0", 1, 1)
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"opened G-1/2"}) {
		t.Error(got)
	}
}

// TestAHeldLetterIsADeath checks a letter that the dispatcher holds because its queue no longer
// exists. Such a letter needs people. If its group was resolved, the group must therefore be opened
// again, and people must be notified.
func TestAHeldLetterIsADeath(t *testing.T) {
	t.Parallel()
	oncall := []string{"oncall"}
	for name, hold := range map[string]func(g *groups, due deadletter.Due) error{
		"while it is sent": func(g *groups, due deadletter.Due) error {
			return g.Mark(g.t.Context(), []deadletter.Mark{
				{
					Letter: due.Letter.ID, Token: due.Attempt.Token, Outcome: deadletter.OutcomeReturned,
					Detail: "no target", Channels: oncall,
				},
			}, deadletter.Noted{})
		},
		"while it waits in the broker": func(g *groups, due deadletter.Due) error {
			if err := g.Mark(g.t.Context(), []deadletter.Mark{
				{
					Letter: due.Letter.ID, Token: due.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
					WaitsIn: "dlo.wait.ttl", DueAt: g.clock.now(),
				},
			}, deadletter.Noted{}); err != nil {
				return err
			}
			return g.RecordWaitEnds(g.t.Context(), []deadletter.WaitEnd{
				{Letter: due.Letter.ID, Lost: "no target", Channels: oncall},
			})
		},
		"while it is watched": func(g *groups, due deadletter.Due) error {
			if err := g.Mark(g.t.Context(), []deadletter.Mark{
				{
					Letter: due.Letter.ID, Token: due.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
					DueAt: g.clock.now(),
				},
			}, deadletter.Noted{}); err != nil {
				return err
			}
			n, err := g.EndWatch(g.t.Context(), due.Letter.Origin(), g.clock.now(), 10, deadletter.Unseen{
				Why: "it is gone", Since: g.clock.now(),
			}, func(string) []string { return oncall })
			if n != 1 {
				g.t.Errorf("the watch over %d letters ended", n)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := withGroups(t)
			g.die(
				"sms", 1, 1, withTrigger(deadletter.ClassifiedRetry),
				func(c *deadletter.Classified) { c.DueAt = g.clock.now() },
			)
			g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
			g.advance(time.Minute)
			if err := hold(g, claim(t, g.Store, g.clock)[0]); err != nil {
				t.Fatal(err)
			}
			g.advance(time.Minute)
			if got := g.deliverNotices("oncall"); g.load(1).Status != deadletter.GroupRegressed ||
				!slices.Equal(got, []string{"regressed G-1/1"}) {
				t.Error(g.load(1).Status, got)
			}
		})
	}
}

// TestAChosenSeverityCounts checks that notices about a group have the severity that a person chose
// for the group.
func TestAChosenSeverityCounts(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1, withSeverity(deadletter.SeverityDigest))
	page, none := deadletter.SeverityPage, deadletter.Severity("")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &page})
	g.die("sms", 1, 1, withSeverity(deadletter.SeverityDigest))
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); len(got) != 1 {
		t.Error(got)
	}
	if one := g.load(1); one.Severity != page || !one.Chosen {
		t.Errorf("%+v", one.GroupRow)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &none})
	if one := g.load(1); one.Severity != deadletter.SeverityDigest || one.Chosen {
		t.Errorf("%+v", one.GroupRow)
	}
}

// TestEscalation checks a group that receives far more letters in an hour than in earlier hours. It
// must escalate, and the escalation must end later. A group that has only just begun must not
// escalate, because there are no earlier hours to compare with.
func TestEscalation(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	for range 48 {
		g.die("steady", 1, 3)
		g.advance(time.Hour)
	}
	g.deliverNotices("oncall")
	g.die("steady", 1, 19)
	g.die("young", 2, 500)
	g.tend()
	if s := g.load(1).Status; s != deadletter.GroupOpen && s != deadletter.GroupNew {
		t.Errorf("19 in an hour: %s", s)
	}
	g.die("steady", 1, 11)
	g.tend()
	g.tend()
	if one := g.load(1); one.Status != deadletter.GroupEscalating || g.load(2).Status != deadletter.GroupNew {
		t.Errorf("30 in an hour: %s; 500 of a young one: %s", one.Status, g.load(2).Status)
	}
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); !slices.Contains(got, "escalated G-1/1") {
		t.Error(got)
	}
	g.advance(2 * time.Hour)
	g.tend()
	if s := g.load(1).Status; s != deadletter.GroupOpen {
		t.Errorf("two hours later: %s", s)
	}
}

// TestNewGroupsAge checks that a group is no longer new if nobody has touched it for a day.
func TestNewGroupsAge(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	g.tend()
	if s := g.load(1).Status; s != deadletter.GroupNew {
		t.Error(s)
	}
	g.advance(25 * time.Hour)
	g.tend()
	if s := g.load(1).Status; s != deadletter.GroupOpen {
		t.Error(s)
	}
}
