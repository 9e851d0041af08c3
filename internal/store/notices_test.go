package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestPeopleAreToldOnce checks which notices people get about one group. They get the first notice
// when the group begins, and the last one when it ends. In between, they get a further notice when
// the number of letters has doubled and some time has passed. Apart from that, the number of
// letters must not matter.
func TestPeopleAreToldOnce(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	var letters []deadletter.ID
	for range 10 {
		letters = append(letters, g.die("sms", 1, 5)...)
	}
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	letters = append(letters, g.die("sms", 1, 50)...)
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("too soon: %v", got)
	}
	g.advance(15 * time.Minute)
	letters = append(letters, g.die("sms", 1, 1)...)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"updated G-1/1"}) {
		t.Error(got)
	}
	g.tend()
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("it still needs people: %v", got)
	}
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	g.tend()
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"resolved G-1/1"}) {
		t.Error(got)
	}
	g.die("sms", 1, 1, withSeverity(deadletter.SeverityDigest))
	g.advance(time.Hour)
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("a digest is no page: %v", got)
	}
}

// TestTheOutboxKeepsOrder checks the order of notices. While a notice is pending on a channel, the
// store must return no later notice with the same key for this channel. Notices with other keys
// must not wait, and neither must notices on other channels. A failed delivery must be tried again
// at its retry time.
func TestTheOutboxKeepsOrder(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	two := func(c *deadletter.Classified) { c.Channels = []string{"oncall", "team"} }
	g.die("a", 1, 1, two)
	g.die("b", 2, 1, two)
	if due, err := g.Due(t.Context(), "oncall", 10); err != nil || len(due) != 0 {
		t.Errorf("before the letters of a flood are counted: %v, %v", due, err)
	}
	g.advance(time.Minute)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	due, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 2 || due[0].Notice.Kind != deadletter.NoticeOpened ||
		due[0].Group.Title != "title of a" || due[1].Notice.Key != "G-2/1" {
		t.Fatalf("%+v %v", due, err)
	}
	retry := deadletter.Delivered{ID: due[0].ID, RetryAt: g.clock.now().Add(time.Minute), Detail: "503"}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{
		retry,
		{ID: due[1].ID, Failed: true, Detail: "401"},
	}); err != nil {
		t.Fatal(err)
	}
	if due, err := g.Due(t.Context(), "oncall", 10); err != nil || len(due) != 0 {
		t.Errorf("the first is tried later: %+v %v", due, err)
	}
	if got := g.deliverNotices("team"); !slices.Equal(got, []string{"opened G-1/1", "opened G-2/1", "resolved G-1/1"}) {
		t.Error(got)
	}
	g.advance(time.Minute)
	if due, err := g.Due(t.Context(), "oncall", 10); err != nil || len(due) != 1 || due[0].Tries != 1 {
		t.Errorf("%+v %v", due, err)
	}
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"opened G-1/1", "resolved G-1/1"}) {
		t.Error(got)
	}
}

// TestALouderDeathIsTold checks a group whose severity rises. The receivers of the first notice
// must be notified again, and so must the receivers that the rule with the higher severity names.
// If several letters die in one transaction, only the highest severity counts, at whatever position
// its letter is.
func TestALouderDeathIsTold(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := func(c *deadletter.Classified) { c.Severity, c.Channels = deadletter.SeverityNotify, []string{"team"} }
	g.die("sms", 1, 1, quiet)
	g.advance(time.Minute)
	if got := g.deliverNotices("team"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	n := 0
	g.die("sms", 1, 3, func(c *deadletter.Classified) {
		if n++; n != 2 { // the second notice pages people
			quiet(c)
		}
	})
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	if got := g.deliverNotices("team"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	page, notify := deadletter.SeverityPage, deadletter.SeverityNotify
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &notify})
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("a lower severity was told: %v", got)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &page})
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"updated G-1/1"}) {
		t.Error(got)
	}
}

// TestWhatQuietHoursHoldBack checks notices that wait for the end of quiet hours. If the group of
// such a notice no longer needs people by then, the notice must not be sent. If people are paged
// about the group during quiet hours, the waiting notice must not be sent either.
func TestWhatQuietHoursHoldBack(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := withSeverity(deadletter.SeverityNotify)
	ids := g.die("sms", 1, 2, quiet)
	g.advance(time.Minute)
	postpone := func() {
		t.Helper()
		due, err := g.Due(t.Context(), "oncall", 10)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		if err := g.Delivered(t.Context(), []deadletter.Delivered{
			{ID: due[0].ID, RetryAt: g.clock.now().Add(8 * time.Hour)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	postpone()
	operate(t, g.Store, deadletter.VerbDiscard, ids...)
	g.tend()
	g.advance(9 * time.Hour)
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("it was over at night: %v", got)
	}
	g.die("sms", 1, 1, quiet)
	g.advance(time.Minute)
	postpone()
	g.die("sms", 1, 1)
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); len(got) != 1 {
		t.Error(got)
	}
	g.advance(9 * time.Hour)
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("the page had said it: %v", got)
	}
}

// TestOpenProblemsAreKnown checks that the store knows about which problems people were notified,
// and on which channels. A problem is open until people are notified of its end. If a problem comes
// back soon, people are notified again.
func TestOpenProblemsAreKnown(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	problem := deadletter.Notice{
		Kind:     deadletter.NoticeProblem,
		Key:      "problem a",
		Severity: deadletter.SeverityPage,
		Text:     "a",
		Channels: []string{"oncall", "team"},
	}
	over := problem
	over.Kind = deadletter.NoticeOver
	open := func(want ...string) {
		t.Helper()
		list, err := g.OpenProblems(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for key, n := range list {
			slices.Sort(n.Channels)
			got = append(got, key+": "+string(n.Severity)+" "+n.Text+" to "+strings.Join(n.Channels, ","))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	tell := func(n deadletter.Notice, want ...string) {
		t.Helper()
		if err := g.Tell(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got := g.deliverNotices("oncall"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	open()
	tell(problem, "problem problem a")
	open("problem a: page a to oncall,team")
	tell(over, "over problem a")
	open()
	tell(problem, "problem problem a")
	open("problem a: page a to oncall,team")
}
