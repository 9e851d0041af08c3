package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// groups is a store with groups that tests let letters die in.
type groups struct {
	*store.Store
	t      *testing.T
	clock  *clock
	window int64
}

func withGroups(t *testing.T) *groups {
	s, c := open(t)
	return &groups{Store: s, t: t, clock: c}
}

// die lets n letters of a queue come to need people in the group of a key, by what set says.
func (g *groups) die(queue string, key byte, n int, set ...func(*deadletter.Classified)) []deadletter.ID {
	g.t.Helper()
	g.window++
	receive(g.t, g.Store, window(g.t, g.window, queue, n))
	letters, err := g.ClaimReceived(g.t.Context(), 500)
	if err != nil {
		g.t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	var ids []deadletter.ID
	for _, l := range letters {
		v := deadletter.Classified{
			Letter: l.ID, To: deadletter.ClassifiedDead, Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}, Reason: "rejected", Type: "acme.T", Error: "e", GroupKey: [32]byte{key},
			GroupTitle: "title of " + queue, GroupVersion: 1, GroupCause: []byte{key & 0x7f}, Severity: deadletter.SeverityPage, Channels: []string{"oncall"}, DiedAt: g.clock.now().Truncate(time.Second),
		}
		for _, f := range set {
			f(&v)
		}
		verdicts, ids = append(verdicts, v), append(ids, l.ID)
	}
	if err := g.Classify(g.t.Context(), verdicts); err != nil {
		g.t.Fatal(err)
	}
	return ids
}

func (g *groups) list(q string, p deadletter.GroupPage) []deadletter.GroupRow {
	g.t.Helper()
	parsed, err := query.Parse(q, query.Options{Now: g.clock.now()})
	if err != nil {
		g.t.Fatal(err)
	}
	if p.Limit == 0 {
		p.Limit = 100
	}
	list, _, err := g.Groups(g.t.Context(), parsed, p)
	if err != nil {
		g.t.Fatal(err)
	}
	return list
}

func (g *groups) one(id deadletter.GroupID) deadletter.Group {
	g.t.Helper()
	one, err := g.Group(g.t.Context(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return one
}

// readAs reads letters anew, into the group of a key.
func (g *groups) readAs(key byte, letters ...deadletter.ID) {
	g.t.Helper()
	for _, id := range letters {
		l := letter(g.t, g.Store, id)
		if err := g.Read(g.t.Context(), []deadletter.Read{{AsOf: l.ChangedAt, Classified: deadletter.Classified{
			Letter: l.ID, Type: "acme.T", Reading: l.Reading, Error: "e", GroupKey: [32]byte{key}, GroupTitle: "anew", GroupVersion: 2, Severity: deadletter.SeverityPage, Channels: []string{"oncall"},
		}}}); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *groups) decide(d deadletter.Decision) deadletter.Decided {
	g.t.Helper()
	d.By = "ana"
	out, err := g.Decide(g.t.Context(), d)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// told delivers what is due on a channel and returns it as "kind key".
func (g *groups) told(channel string) []string {
	g.t.Helper()
	var list []string
	for {
		due, err := g.Due(g.t.Context(), channel, 100)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(due) == 0 {
			return list
		}
		for _, d := range due {
			list = append(list, fmt.Sprintf("%s %s", d.Notice.Kind, d.Notice.Key))
			if err := g.Delivered(g.t.Context(), []deadletter.Delivered{{ID: d.ID, Sent: true}}); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

func (g *groups) tend() {
	g.t.Helper()
	if _, err := g.Tend(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
}

func (g *groups) pass(d time.Duration) { g.clock.at = g.clock.at.Add(d) }

func severity(s deadletter.Severity) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.Severity = s }
}

func died(at time.Time) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.DiedAt = at.Truncate(time.Second) }
}

func to(tr deadletter.Trigger) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.To = tr }
}

func ids(list []deadletter.GroupRow) string {
	var names []string
	for i := range list {
		names = append(names, list[i].ID.String())
	}
	return strings.Join(names, " ")
}

func TestGroupsByWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	if list := g.list("", deadletter.GroupPage{}); len(list) != 0 {
		t.Fatal(list)
	}
	g.die("old", 1, 3)
	g.pass(25 * time.Hour)
	g.die("sms", 2, 2)
	g.die("sms", 2, 1, to(deadletter.ClassifiedHold))
	g.die("sms", 2, 4, to(deadletter.ClassifiedDiscard))
	g.pass(90 * time.Minute)
	g.die("sms", 2, 2)
	g.die("sms", 2, 3, to(deadletter.ClassifiedRetry), func(c *deadletter.Classified) { c.DueAt = g.clock.now() })
	g.die("quiet", 3, 9, to(deadletter.ClassifiedDiscard))
	list := g.list("", deadletter.GroupPage{Order: deadletter.ByLetters})
	if len(list) != 2 {
		t.Fatal(list)
	}
	sms, old := list[0], list[1]
	want := deadletter.GroupRow{
		ID: 2, Title: "title of sms", Broker: "main", VHost: "/", Queue: "sms", Type: "acme.T", Reason: "rejected", Error: "e", Status: deadletter.GroupNew, Severity: deadletter.SeverityPage,
		Count: 5, Waiting: 3, FirstAt: g.clock.now().Add(-90 * time.Minute), LastAt: g.clock.now(), Spark: append(make([]int, 22), 7, 5),
	}
	if diff := cmp.Diff(want, sms); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(old.Spark, make([]int, 24)) || old.Count != 3 {
		t.Errorf("%+v", old)
	}
	counts, err := g.GroupCounts(t.Context(), "ana")
	if diff := cmp.Diff(deadletter.GroupCounts{Inbox: 2, Letters: 8, Severities: map[deadletter.Severity]int{deadletter.SeverityPage: 2}}, counts); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Lists of groups: by urgency, page after page, none twice and none missing, filtered by what groups have.
func TestListsOfGroups(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 5, severity(deadletter.SeverityDigest))
	g.die("b", 2, 1)
	g.die("c", 3, 2)
	g.die("d", 4, 9, severity(deadletter.SeverityNotify), func(c *deadletter.Classified) { c.Error, c.GroupTitle = "100% wrong", "100% wrong" })
	owner := "ana"
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Owner: &owner})
	if got := ids(g.list("", deadletter.GroupPage{})); got != "G-2 G-3 G-4 G-1" { // page first; of these what is new
		t.Error(got)
	}
	for _, order := range append(deadletter.GroupOrders, "") {
		var all []deadletter.GroupRow
		after := ""
		for {
			list, next, err := g.Groups(t.Context(), query.Query{}, deadletter.GroupPage{Order: order, Limit: 1, After: after})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, list...)
			if after = next; next == "" {
				break
			}
		}
		if whole := g.list("", deadletter.GroupPage{Order: order}); ids(whole) != ids(all) || len(all) != 4 {
			t.Errorf("%s: %s, page by page %s", order, ids(whole), ids(all))
		}
	}
	for q, want := range map[string]string{
		"severity:page": "G-2 G-3", "-severity:page": "G-4 G-1", "queue:a,b": "G-2 G-1", "queue:*": "G-2 G-3 G-4 G-1", "owner:ana": "G-3", "-owner:*": "", "owner:nobody": "", "status:open": "G-3",
		"error:*wrong*": "G-4", "100%": "G-4", "group:G-1,G-4": "G-4 G-1", "type:acme.T severity:notify": "G-4", "type:none": "", "since:1h": "G-2 G-3 G-4 G-1", "before:1h": "", "age:<1h": "G-2 G-3 G-4 G-1",
		"age:>1h": "", "reason:rejected queue:c": "G-3",
	} {
		if got := ids(g.list(q, deadletter.GroupPage{})); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	for _, p := range []deadletter.GroupPage{{}, {Limit: 1001}, {Limit: 1, Tab: "x"}, {Limit: 1, Order: "x"}, {Limit: 1, After: "no cursor!"}, {Limit: 1, After: "W10"}} {
		if _, _, err := g.Groups(t.Context(), query.Query{}, p); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	attempts, _ := query.Parse("attempts:>1", query.Options{})
	if _, _, err := g.Groups(t.Context(), attempts, deadletter.GroupPage{Limit: 1}); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
}

// A resolved group comes back when a letter dies after that, not when one arrives after it that died before.
func TestRegression(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 2)
	g.pass(time.Minute)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.pass(time.Minute)
	g.die("sms", 1, 1, died(g.clock.now().Add(-90*time.Second)))
	if one := g.one(1); one.Status != deadletter.GroupResolved || one.Count != 3 {
		t.Errorf("it died before the resolve: %s, %d letters", one.Status, one.Count)
	}
	g.die("sms", 1, 1, died(g.clock.now().Add(-30*time.Second)))
	one := g.one(1)
	if one.Status != deadletter.GroupRegressed || len(g.list("", deadletter.GroupPage{})) != 1 {
		t.Errorf("it died after the resolve: %s", one.Status)
	}
	if e := one.History[0]; e.Kind != "regressed" || e.Actor != deadletter.Service.Name {
		t.Errorf("%+v", one.History)
	}
	g.pass(time.Minute)
	if got := g.told("oncall"); !slices.Equal(got, []string{"opened G-1/1", "resolved G-1/1", "regressed G-1/2"}) {
		t.Error(got)
	}
}

// Resolved in a version: consumers of an older one may go on failing.
func TestRegressionByVersion(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	version := func(v string) func(*deadletter.Classified) {
		return func(c *deadletter.Classified) { c.Version = v }
	}
	g.die("sms", 1, 1, version("2026.9.30"))
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{Version: "2026.11.2"}})
	g.pass(time.Hour)
	for _, c := range []struct {
		version string
		want    deadletter.GroupStatus
	}{{"2026.9.30", deadletter.GroupResolved}, {"2026.11.2", deadletter.GroupRegressed}} {
		g.die("sms", 1, 1, version(c.version))
		if one := g.one(1); one.Status != c.want || one.Resolved.Version != "2026.11.2" {
			t.Errorf("%s: %s, resolved in %q", c.version, one.Status, one.Resolved.Version)
		}
	}
}

// A snooze ends by time, by letters, or when the same error is seen in another queue; meanwhile nobody is told.
func TestSnoozes(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	for key := range byte(4) {
		g.die(fmt.Sprint("q", key), key+1, 1)
	}
	g.pass(time.Minute)
	if got := g.told("oncall"); len(got) != 4 {
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
	if got := g.told("oncall"); len(got) != 4 || got[0] != "resolved G-1/1" { // the pager rests
		t.Error(got)
	}
	if one := g.one(4); !one.Snooze.Until.Equal(g.clock.now().Add(deadletter.MaxSnooze)) || one.Snooze.By != "ana" {
		t.Errorf("a snooze without an end: %+v", one.Snooze)
	}
	g.pass(time.Minute)
	g.die("q0", 1, 5)
	g.die("q1", 2, 2)
	g.die("q2", 3, 5)
	g.tend()
	if got := ids(g.list("", deadletter.GroupPage{})); got != "" {
		t.Errorf("%s are not snoozed any more", got)
	}
	g.die("q1", 2, 1)
	g.die("other", 3+0x80, 1) // the cause of group 3
	g.pass(time.Hour)
	g.tend()
	if got := ids(g.list("-queue:other", deadletter.GroupPage{Order: deadletter.ByFirst})); got != "G-1 G-2 G-3" {
		t.Errorf("in the inbox again: %s", got)
	}
	got := g.told("oncall")
	if !slices.Equal(got, []string{"opened G-2/2", "opened G-5/1"}) {
		t.Error(got)
	}
	g.die("q0", 1, 1)
	g.pass(time.Minute)
	if got := g.told("oncall"); !slices.Equal(got, []string{"opened G-1/2"}) {
		t.Error(got)
	}
}

// One message at the start, another when there are twice as many and some time has passed, and one at the end: whatever the number of letters.
func TestPeopleAreToldOnce(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	var letters []deadletter.ID
	for range 10 {
		letters = append(letters, g.die("sms", 1, 5)...)
	}
	g.pass(time.Minute)
	if got := g.told("oncall"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	letters = append(letters, g.die("sms", 1, 50)...)
	if got := g.told("oncall"); got != nil {
		t.Errorf("too soon: %v", got)
	}
	g.pass(15 * time.Minute)
	letters = append(letters, g.die("sms", 1, 1)...)
	if got := g.told("oncall"); !slices.Equal(got, []string{"updated G-1/1"}) {
		t.Error(got)
	}
	g.tend()
	if got := g.told("oncall"); got != nil {
		t.Errorf("it still needs people: %v", got)
	}
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	g.tend()
	if got := g.told("oncall"); !slices.Equal(got, []string{"resolved G-1/1"}) {
		t.Error(got)
	}
	g.die("sms", 1, 1, severity(deadletter.SeverityDigest))
	g.pass(time.Hour)
	if got := g.told("oncall"); got != nil {
		t.Errorf("a digest is no page: %v", got)
	}
}

// What the dispatcher holds needs people as well: its queue is gone, so its group comes back, and they are told.
func TestAHeldLetterIsADeath(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1, to(deadletter.ClassifiedRetry), func(c *deadletter.Classified) { c.DueAt = g.clock.now() })
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.pass(time.Minute)
	due := claim(t, g.Store, g.clock)
	if err := g.Mark(t.Context(), []deadletter.Mark{{Letter: due[0].Letter.ID, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeReturned, Detail: "no target", Channels: []string{"oncall"}}}); err != nil {
		t.Fatal(err)
	}
	g.pass(time.Minute)
	if got := g.told("oncall"); g.one(1).Status != deadletter.GroupRegressed || !slices.Equal(got, []string{"regressed G-1/1"}) {
		t.Error(g.one(1).Status, got)
	}
}

// A group that somebody gave another severity calls by that one.
func TestAChosenSeverityCounts(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 1, severity(deadletter.SeverityDigest))
	page, none := deadletter.SeverityPage, deadletter.Severity("")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &page})
	g.die("sms", 1, 1, severity(deadletter.SeverityDigest))
	g.pass(time.Minute)
	if got := g.told("oncall"); len(got) != 1 {
		t.Error(got)
	}
	if one := g.one(1); one.Severity != page || !one.Chosen {
		t.Errorf("%+v", one.GroupRow)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &none})
	if one := g.one(1); one.Severity != deadletter.SeverityDigest || one.Chosen {
		t.Errorf("%+v", one.GroupRow)
	}
}

// What somebody decided can be undone, unless the group has changed since.
func TestUndo(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	g.die("b", 2, 1)
	both := []deadletter.GroupID{1, 2}
	before := g.one(1)
	owner, ticket, page := "ben", "OPS-1", deadletter.SeverityNotify
	for _, d := range []deadletter.Decision{
		{Groups: both, Owner: &owner, Ticket: &ticket, Severity: &page, Note: "looked at it"},
		{Groups: both, Resolve: &deadletter.Resolution{Version: "2"}},
		{Groups: both, Snooze: &deadletter.Snooze{Until: g.clock.now().Add(time.Hour + 1234567)}},
		{Groups: []deadletter.GroupID{1}, Into: 2},
	} {
		done := g.decide(d)
		undone, err := g.Undo(t.Context(), done.ID, "ben")
		if err != nil || len(undone.Groups) != len(d.Groups) {
			t.Fatal(undone, err)
		}
		after := g.one(1)
		if diff := cmp.Diff(before.GroupRow, after.GroupRow); diff != "" || after.Head != 0 {
			t.Errorf("%s: %s", done.Kind, diff)
		}
		if _, err := g.Undo(t.Context(), done.ID, "ben"); !errors.Is(err, deadletter.ErrConflict) {
			t.Errorf("a second undo: %v", err)
		}
	}
	done := g.decide(deadletter.Decision{Groups: both, Resolve: &deadletter.Resolution{}})
	g.pass(time.Hour)
	g.die("a", 1, 1)
	undone, err := g.Undo(t.Context(), done.ID, "ben")
	if err != nil || !slices.Equal(undone.Groups, []deadletter.GroupID{2}) || len(undone.Skipped) != 1 || undone.Skipped[0].Group != 1 {
		t.Errorf("%+v %v", undone, err)
	}
	if one := g.one(1); one.Status != deadletter.GroupRegressed {
		t.Errorf("an undo undid what the group did by itself: %s", one.Status)
	}
	if _, err := g.Undo(t.Context(), 99, "ben"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	list, err := g.Decisions(t.Context(), time.Time{}, 10)
	if err != nil || len(list) != 5 || list[0].ID != done.ID || list[0].UndoneAt.IsZero() || list[4].By != "ana" || !slices.Equal(list[4].Groups, both) {
		t.Errorf("%+v %v", list, err)
	}
}

func TestDecisionsThatAreRefused(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	long, loud := strings.Repeat("x", 5000), deadletter.Severity("loud")
	one := []deadletter.GroupID{1}
	for what, d := range map[string]deadletter.Decision{
		"nothing": {Groups: one}, "no group": {Note: "n"}, "two at once": {Groups: one, Reopen: true, Split: true}, "a long note": {Groups: one, Note: long}, "a long owner": {Groups: one, Owner: &long},
		"a severity that is none": {Groups: one, Severity: &loud}, "the past": {Groups: one, Snooze: &deadletter.Snooze{Until: g.clock.now()}},
		"for ever": {Groups: one, Snooze: &deadletter.Snooze{Until: g.clock.now().Add(91 * 24 * time.Hour)}}, "fewer letters": {Groups: one, Snooze: &deadletter.Snooze{After: -1}},
	} {
		if _, err := g.Decide(t.Context(), d); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, d := range map[string]deadletter.Decision{
		"open": {Groups: one, Reopen: true}, "not merged": {Groups: one, Split: true}, "itself": {Groups: one, Into: 1},
	} {
		if _, err := g.Decide(t.Context(), d); !errors.Is(err, deadletter.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, d := range map[string]deadletter.Decision{"no such group": {Groups: []deadletter.GroupID{1, 9}, Note: "n"}, "into none": {Groups: one, Into: 9}} {
		if _, err := g.Decide(t.Context(), d); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if one := g.one(1); len(one.History) != 0 || one.Note != "" {
		t.Errorf("refused, and yet %+v", one.History)
	}
}

// Groups that are merged are one: their letters count and are found together, what dies in either is theirs, and a split makes two of them again.
func TestMergedGroupsAreOne(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 2)
	g.die("b", 2, 3)
	g.pass(time.Minute)
	g.told("oncall")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	if got := g.told("oncall"); !slices.Equal(got, []string{"resolved G-2/1"}) {
		t.Error(got)
	}
	list := g.list("", deadletter.GroupPage{})
	if len(list) != 1 || list[0].ID != 1 || list[0].Count != 5 || list[0].Spark[23] != 5 {
		t.Errorf("%+v", list)
	}
	if got := g.list("queue:b", deadletter.GroupPage{}); len(got) != 1 || got[0].ID != 1 {
		t.Error(got)
	}
	if n := count(t, g.Store, "group:G-1"); n != 5 {
		t.Errorf("group:G-1 has %d letters", n)
	}
	one := g.one(1)
	if one.Count != 5 || len(one.Merged) != 1 || one.Merged[0].Count != 3 || g.one(2).Head != 1 {
		t.Errorf("%+v", one)
	}
	owner := "ana"
	if _, err := g.Decide(t.Context(), deadletter.Decision{Groups: []deadletter.GroupID{2}, Owner: &owner}); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("one that is merged was changed: %v", err)
	}
	g.die("c", 3, 1)
	if _, err := g.Decide(t.Context(), deadletter.Decision{Groups: []deadletter.GroupID{3}, Into: 2}); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("merged into one that is merged: %v", err)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Snooze: &deadletter.Snooze{Queue: true}})
	g.die("b", 2, 1) // is one of its own queues
	if one := g.one(1); one.Status != deadletter.GroupSnoozed {
		t.Errorf("a letter of a queue of its own ended its snooze: %s", one.Status)
	}
	g.die("d", 2+0x80, 1) // the cause of the one that is merged, in another queue
	if one := g.one(1); one.Status != deadletter.GroupOpen {
		t.Errorf("another queue has it: %s", one.Status)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.pass(time.Minute)
	g.die("b", 2, 1)
	if one := g.one(1); one.Status != deadletter.GroupRegressed {
		t.Errorf("a letter of the other died: %s", one.Status)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Split: true})
	if n := count(t, g.Store, "group:G-1"); n != 2 || g.one(1).Count != 2 || g.one(2).Count != 5 {
		t.Errorf("after the split: %d, %d, %d", n, g.one(1).Count, g.one(2).Count)
	}
}

// What comes out of a group that others are merged into stays with them.
func TestARegroupedHeadKeepsItsMembers(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	letters := g.die("a", 1, 1)
	g.die("b", 2, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	g.readAs(9, letters...)
	if one := g.one(1); one.Count != 2 || len(one.Merged) != 2 || g.one(3).Head != 1 {
		t.Errorf("%+v", one)
	}
}

// A group escalates when an hour brings far more than its own history, and calms down; what is young has no history.
func TestEscalation(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	for range 48 {
		g.die("steady", 1, 3)
		g.pass(time.Hour)
	}
	g.told("oncall")
	g.die("steady", 1, 19)
	g.die("young", 2, 500)
	g.tend()
	if s := g.one(1).Status; s != deadletter.GroupOpen && s != deadletter.GroupNew {
		t.Errorf("19 in an hour: %s", s)
	}
	g.die("steady", 1, 11)
	g.tend()
	g.tend()
	if one := g.one(1); one.Status != deadletter.GroupEscalating || g.one(2).Status != deadletter.GroupNew {
		t.Errorf("30 in an hour: %s; 500 of a young one: %s", one.Status, g.one(2).Status)
	}
	g.pass(time.Minute)
	if got := g.told("oncall"); !slices.Contains(got, "escalated G-1/1") {
		t.Error(got)
	}
	g.pass(2 * time.Hour)
	g.tend()
	if s := g.one(1).Status; s != deadletter.GroupOpen {
		t.Errorf("two hours later: %s", s)
	}
}

// What nobody has touched for a day is no longer new.
func TestNewGroupsAge(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	g.tend()
	if s := g.one(1).Status; s != deadletter.GroupNew {
		t.Error(s)
	}
	g.pass(25 * time.Hour)
	g.tend()
	if s := g.one(1).Status; s != deadletter.GroupOpen {
		t.Error(s)
	}
}

// While a notice of a key is on its way to a channel, none after it is given; other keys and channels go on. What failed is tried again at its time.
func TestTheOutboxKeepsOrder(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	two := func(c *deadletter.Classified) { c.Channels = []string{"oncall", "team"} }
	g.die("a", 1, 1, two)
	g.die("b", 2, 1, two)
	if due, err := g.Due(t.Context(), "oncall", 10); err != nil || len(due) != 0 {
		t.Errorf("before the letters of a flood are counted: %v, %v", due, err)
	}
	g.pass(time.Minute)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	due, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 2 || due[0].Notice.Kind != deadletter.NoticeOpened || due[0].Group.Title != "title of a" || due[1].Notice.Key != "G-2/1" {
		t.Fatalf("%+v %v", due, err)
	}
	retry := deadletter.Delivered{ID: due[0].ID, RetryAt: g.clock.now().Add(time.Minute), Detail: "503"}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{retry, {ID: due[1].ID, Failed: true, Detail: "401"}}); err != nil {
		t.Fatal(err)
	}
	if due, err := g.Due(t.Context(), "oncall", 10); err != nil || len(due) != 0 {
		t.Errorf("the first is tried later: %+v %v", due, err)
	}
	if got := g.told("team"); !slices.Equal(got, []string{"opened G-1/1", "opened G-2/1", "resolved G-1/1"}) {
		t.Error(got)
	}
	g.pass(time.Minute)
	if due, err := g.Due(t.Context(), "oncall", 10); err != nil || len(due) != 1 || due[0].Tries != 1 {
		t.Errorf("%+v %v", due, err)
	}
	if got := g.told("oncall"); !slices.Equal(got, []string{"opened G-1/1", "resolved G-1/1"}) {
		t.Error(got)
	}
}

// The deploy shortly before a group began is its suspect.
func TestSuspects(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	deploy := func(service string) {
		t.Helper()
		if _, err := g.Deploy(t.Context(), deadletter.Deploy{Service: service, Version: "1", By: "ci"}); err != nil {
			t.Fatal(err)
		}
	}
	deploy("long-ago")
	g.pass(3 * time.Hour)
	g.die("a", 1, 1)
	if one := g.one(1); one.Suspect != nil || len(one.Deploys) != 1 {
		t.Errorf("%+v", one)
	}
	deploy("billing")
	deploy("billing")
	g.pass(2 * time.Minute)
	g.die("b", 2, 1)
	g.pass(time.Minute)
	deploy("after")
	one := g.one(2)
	if one.Suspect == nil || one.Suspect.Service != "billing" || len(one.Deploys) != 3 || one.Deploys[0].Service != "after" {
		t.Errorf("%+v", one)
	}
}

// The digest of a night: what died in it and needs people, and what recovered; once a day.
func TestDigestOfANight(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.clock.at = time.Date(2026, 11, 19, 8, 30, 0, 0, time.UTC)
	g.die("old", 1, 7)
	from := g.clock.now().Add(24 * time.Hour)
	g.clock.at = from.Add(time.Hour)
	low := severity(deadletter.SeverityDigest)
	g.die("old", 1, 2, low)
	g.die("new", 2, 5, low)
	g.die("snoozed", 3, 5, low)
	g.die("discarded", 4, 5, to(deadletter.ClassifiedDiscard))
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Snooze: &deadletter.Snooze{}})
	g.clock.at = from.Add(24 * time.Hour)
	d, err := g.Digest(t.Context(), from, g.clock.now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if d.Groups != 2 || d.Letters != 7 || d.New != 1 || d.More != 1 || len(d.Lines) != 1 || d.Lines[0].Group.ID != 2 || d.Lines[0].Letters != 5 || d.Before.Letters != 7 || d.Before.Groups != 1 || d.Paged != 0 {
		t.Errorf("%+v", d)
	}
	if n, err := g.DigestSize(t.Context(), from, g.clock.now()); err != nil || n != d.Groups {
		t.Errorf("%d groups, %v", n, err)
	}
	for i, want := range []bool{true, false} {
		if sent, err := g.SendDigest(t.Context(), "2026-11-21", d, []string{"team"}); err != nil || sent != want {
			t.Errorf("time %d: %v %v", i+1, sent, err)
		}
	}
	due, err := g.Due(context.Background(), "team", 10)
	if err != nil || len(due) != 1 || cmp.Diff(&d, due[0].Digest) != "" {
		t.Errorf("%+v %v", due, err)
	}
	if day, last, err := g.LastDigest(t.Context()); err != nil || day != "2026-11-21" || last.Letters != 7 {
		t.Error(day, last, err)
	}
}

// Whoever was told quietly is told again when it gets loud, and so are those whom the louder rule names; by the loudest letter of a commit, whatever comes after it.
func TestALouderDeathIsTold(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := func(c *deadletter.Classified) { c.Severity, c.Channels = deadletter.SeverityNotify, []string{"team"} }
	g.die("sms", 1, 1, quiet)
	g.pass(time.Minute)
	if got := g.told("team"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	n := 0
	g.die("sms", 1, 3, func(c *deadletter.Classified) {
		if n++; n != 2 { // the one in the middle pages
			quiet(c)
		}
	})
	g.pass(time.Minute)
	if got := g.told("oncall"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	if got := g.told("team"); !slices.Equal(got, []string{"opened G-1/1"}) {
		t.Error(got)
	}
	page, notify := deadletter.SeverityPage, deadletter.SeverityNotify
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &notify})
	if got := g.told("oncall"); got != nil {
		t.Errorf("a lower severity was told: %v", got)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Severity: &page})
	if got := g.told("oncall"); !slices.Equal(got, []string{"updated G-1/1"}) {
		t.Error(got)
	}
}

// An undo gives back what people were told: an end that they have not heard of yet they never hear, and where they have, it begins anew.
func TestUndoAndWhatPeopleWereTold(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 5)
	g.pass(time.Minute)
	g.told("oncall")
	resolve := deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}}
	undo := func(d deadletter.Decided) {
		t.Helper()
		if _, err := g.Undo(t.Context(), d.ID, "ana"); err != nil {
			t.Fatal(err)
		}
	}
	undo(g.decide(resolve))
	if got := g.told("oncall"); got != nil {
		t.Errorf("nobody had heard of the end: %v", got)
	}
	done := g.decide(resolve)
	if got := g.told("oncall"); !slices.Equal(got, []string{"resolved G-1/1"}) {
		t.Error(got)
	}
	undo(done)
	g.pass(time.Minute)
	if got := g.told("oncall"); len(got) != 1 || !strings.HasPrefix(got[0], "opened G-1/") {
		t.Error(got)
	}
	g.decide(resolve)
	g.told("oncall")
	reopened := g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Reopen: true})
	g.die("sms", 1, 1)
	g.pass(time.Minute)
	if got := g.told("oncall"); len(got) != 1 {
		t.Error(got)
	}
	undo(reopened)
	if got := g.told("oncall"); len(got) != 1 || !strings.HasPrefix(got[0], "resolved G-1/") {
		t.Errorf("it is resolved again, and its incident stays open: %v", got)
	}
}

// An undo never merges into a group that is merged itself.
func TestUndoOfASplitMakesNoChains(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	for key := range byte(3) {
		g.die(fmt.Sprint("q", key), key+1, 1)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	split := g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Split: true})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Into: 2})
	if _, err := g.Undo(t.Context(), split.ID, "ana"); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("G-3 is in G-2, which is in G-1: %v", err)
	}
	if counts, err := g.GroupCounts(t.Context(), ""); err != nil || counts.Letters != 3 || counts.Inbox != 2 {
		t.Errorf("%+v %v", counts, err)
	}
}

// What waits for the end of quiet hours is not said once it is over, and a page says all of it at once.
func TestWhatQuietHoursHoldBack(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	quiet := severity(deadletter.SeverityNotify)
	ids := g.die("sms", 1, 2, quiet)
	g.pass(time.Minute)
	postpone := func() {
		t.Helper()
		due, err := g.Due(t.Context(), "oncall", 10)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		if err := g.Delivered(t.Context(), []deadletter.Delivered{{ID: due[0].ID, RetryAt: g.clock.now().Add(8 * time.Hour)}}); err != nil {
			t.Fatal(err)
		}
	}
	postpone()
	operate(t, g.Store, deadletter.VerbDiscard, ids...)
	g.tend()
	g.pass(9 * time.Hour)
	if got := g.told("oncall"); got != nil {
		t.Errorf("it was over at night: %v", got)
	}
	g.die("sms", 1, 1, quiet)
	g.pass(time.Minute)
	postpone()
	g.die("sms", 1, 1)
	g.pass(time.Minute)
	if got := g.told("oncall"); len(got) != 1 {
		t.Error(got)
	}
	g.pass(9 * time.Hour)
	if got := g.told("oncall"); got != nil {
		t.Errorf("the page had said it: %v", got)
	}
}

// A letter whose retries went past the morning is told the next morning: digests count by when it came to need people.
func TestADigestCountsDeaths(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.clock.at = time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)
	ids := g.die("sms", 1, 1, to(deadletter.ClassifiedRetry), func(c *deadletter.Classified) { c.DueAt = g.clock.now().Add(time.Hour) })
	g.pass(time.Hour)
	due := claim(t, g.Store, g.clock)
	if len(due) != 1 || due[0].Letter.ID != ids[0] {
		t.Fatal(due)
	}
	if err := g.Mark(t.Context(), []deadletter.Mark{{Letter: ids[0], Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeReturned, Detail: "no target"}}); err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]int{18: 0, 19: 1, 20: 0} { // from half past eight of that day
		from := time.Date(2026, 11, day, 8, 30, 0, 0, time.UTC)
		if d, err := g.Digest(t.Context(), from, from.Add(24*time.Hour), 10); err != nil || d.Letters != want || d.Groups != want {
			t.Errorf("from the %d: %+v %v", day, d, err)
		}
	}
}

// What died in a group while it was merged is its own again once it is split off, and a group that letters are moved to takes along when they died.
func TestADigestAfterASplitAndARegroup(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("old", 1, 5)
	from := g.clock.now().Add(24 * time.Hour)
	g.clock.at = from.Add(time.Hour)
	letters := g.die("night", 2, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	letters = append(letters, g.die("night", 2, 9)...)
	digest := func(want map[deadletter.GroupID]int) {
		t.Helper()
		d, err := g.Digest(t.Context(), from, from.Add(24*time.Hour), 10)
		got := map[deadletter.GroupID]int{}
		for _, l := range d.Lines {
			got[l.Group.ID] = l.Letters
		}
		size, sizeErr := g.DigestSize(t.Context(), from, from.Add(24*time.Hour))
		if diff := cmp.Diff(want, got); err != nil || sizeErr != nil || diff != "" || size != len(want) {
			t.Errorf("%v %v, %d groups: %s", err, sizeErr, size, diff)
		}
	}
	digest(map[deadletter.GroupID]int{1: 10})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Split: true})
	digest(map[deadletter.GroupID]int{2: 10})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Note: "seen"})
	g.readAs(9, letters...)
	digest(map[deadletter.GroupID]int{3: 10})
}

// Letters of a merged group that turn out to belong to the one it is merged into make no group a part of itself.
func TestLettersThatBelongToTheHead(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("waits", 1, 1, func(c *deadletter.Classified) {
		c.To, c.DueAt = deadletter.ClassifiedRetry, g.clock.now().Add(time.Hour)
	})
	letters := g.die("dead", 2, 2, severity(deadletter.SeverityDigest))
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	g.readAs(1, letters[0])
	if one := g.one(1); one.Head != 0 || one.Count != 2 || g.one(2).Head != 1 {
		t.Errorf("%+v", one)
	}
}
