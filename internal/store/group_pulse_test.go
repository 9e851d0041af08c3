package store_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestFailingAndQuiet checks that a group is failing for some time after a death: for five minutes,
// or for three times the usual gap between its deaths, whichever is longer. After that, the group
// must be quiet. The lists of failing groups and of quiet groups must agree with this.
func TestFailingAndQuiet(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	check := func(want bool, id deadletter.GroupID) {
		t.Helper()
		if one := g.load(id); one.Failing != want {
			t.Errorf(
				"%s fails: %t at %s, last death %s", id, one.Failing, g.clock.now().Format("15:04"),
				one.LastAt.Format("15:04"),
			)
		}
		failing, quiet := ids(g.list("status:failing", deadletter.GroupPage{})), ids(g.list("status:quiet", deadletter.GroupPage{}))
		for list, in := range map[string]bool{failing: want, quiet: !want} {
			if (list == id.String()) != in {
				t.Errorf("at %s: failing %q, quiet %q", g.clock.now().Format("15:04"), failing, quiet)
			}
		}
		for _, row := range g.list("", deadletter.GroupPage{}) {
			if row.Failing != want {
				t.Errorf("the list says %t", row.Failing)
			}
		}
	}
	g.die("sms", 1, 1)
	g.advance(5 * time.Minute)
	check(true, 1)
	g.advance(time.Second)
	check(false, 1)
	for range 4 { // a letter dies every half hour
		g.advance(30 * time.Minute)
		g.die("sms", 1, 1)
	}
	g.advance(90 * time.Minute)
	check(true, 1)
	g.advance(time.Second)
	check(false, 1)
	if s, err := g.Standing(t.Context()); err != nil || s.Failing != (deadletter.InboxShare{}) || s.Quiet != (deadletter.InboxShare{Groups: 1, Letters: 5}) || !s.LastAt.Equal(g.clock.now().Add(-90*time.Minute-time.Second)) {
		t.Errorf("%+v %v", s, err)
	}

	g.advance(24 * time.Hour)
	// the letter dies and waits for a retry
	g.die(
		"sms", 1, 1, withTrigger(deadletter.ClassifiedRetry),
		func(c *deadletter.Classified) { c.DueAt = g.clock.now().Add(time.Hour) },
	)
	check(true, 1)
	if s, err := g.Standing(t.Context()); err != nil || s.Quiet.Groups != 0 || s.Failing != (deadletter.InboxShare{Groups: 1, Letters: 5}) {
		t.Errorf("%+v %v", s, err)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	if list := g.list("status:failing,quiet", deadletter.GroupPage{Tab: deadletter.TabAll}); len(list) != 0 {
		t.Errorf("a resolved group stands in the inbox: %s", ids(list))
	}
}

// TestAGroupFailsWithWhatIsMergedIntoIt covers a group into which another group is merged. If
// letters of the merged group are dying, the whole group is failing, even if no other letters are
// dying.
func TestAGroupFailsWithWhatIsMergedIntoIt(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1)
	g.advance(time.Hour)
	g.die("mail", 2, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	if list := g.list(
		"status:failing", deadletter.GroupPage{},
	); len(list) != 1 || !list[0].Failing || !list[0].LastAt.Equal(g.clock.now()) {
		t.Errorf("%+v", list)
	}
	if one := g.load(1); !one.Failing || !one.LastAt.Equal(g.clock.now()) {
		t.Errorf("%+v", one)
	}
}

// TestADeathIsOfItsOwnTime checks that letters which waited in the inbox keep their time of death.
// It also checks that a broker whose clock is fast cannot put a death in the future.
func TestADeathIsOfItsOwnTime(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.advance(24 * time.Hour)
	g.die("sms", 1, 1, withDeathTime(g.clock.now().Add(-3*time.Hour)))
	g.die("mail", 2, 1, withDeathTime(g.clock.now().Add(3*time.Hour)))
	if one := g.load(1); one.Failing || !one.LastAt.Equal(g.clock.now().Add(-3*time.Hour)) {
		t.Errorf("%+v", one)
	}
	if one := g.load(2); !one.Failing || !one.LastAt.Equal(g.clock.now()) {
		t.Errorf("%+v", one)
	}
	g.advance(6 * time.Minute)
	if one := g.load(2); one.Failing {
		t.Errorf("%+v", one)
	}
}

// TestTheFixOfAGroup checks which deploys are shown for a group. A deploy after the last death of
// the group is shown as the fix. A deploy within ten minutes before the first death is shown as the
// cause.
func TestTheFixOfAGroup(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	deploy := func(version string) {
		t.Helper()
		if _, err := g.Deploy(t.Context(), deadletter.Deploy{
			Service: "notifications", Version: version, By: "ci",
		}); err != nil {
			t.Fatal(err)
		}
	}
	deploy("1")
	g.advance(11 * time.Minute)
	g.die("sms", 1, 1)
	if one := g.load(1); one.Suspect != nil || one.Fix != nil {
		t.Errorf("%+v, %+v", one.Suspect, one.Fix)
	}
	deploy("2")
	g.advance(time.Minute)
	g.die("mail", 2, 1)
	if one := g.load(2); one.Suspect == nil || one.Suspect.Version != "2" || one.Fix != nil {
		t.Errorf("%+v, %+v", one.Suspect, one.Fix)
	}
	g.advance(10 * time.Minute)
	deploy("3")
	g.advance(10 * time.Minute)
	deploy("4")
	if one := g.load(2); one.Failing || one.Fix == nil || one.Fix.Version != "3" {
		t.Errorf("%t, %+v", one.Failing, one.Fix)
	}
}
