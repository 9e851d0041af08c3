package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// groups is a store with helpers that let letters of groups die.
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

// die lets n letters of a queue die in the group that has the given key. Each of the given
// functions changes the verdict of each letter.
func (g *groups) die(queue string, key byte, n int, changes ...func(*deadletter.Classified)) []deadletter.ID {
	g.t.Helper()
	g.window++
	receive(g.t, g.Store, window(g.t, g.window, queue, n))
	letters, err := g.NextReceived(g.t.Context(), 500)
	if err != nil {
		g.t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	var ids []deadletter.ID
	for _, l := range letters {
		v := deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedDead,
			Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: queue},
			Reason:       "rejected",
			Type:         "acme.T",
			Error:        "e",
			GroupKey:     [32]byte{key},
			GroupTitle:   "title of " + queue,
			GroupVersion: 1,
			GroupCause:   []byte{key & 0x7f},
			Severity:     deadletter.SeverityPage,
			Channels:     []string{"oncall"},
			DiedAt:       g.clock.now().Truncate(time.Second),
		}
		for _, f := range changes {
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

func (g *groups) load(id deadletter.GroupID) deadletter.Group {
	g.t.Helper()
	one, err := g.Group(g.t.Context(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return one
}

// readAs records that letters were read again and now belong to the group with the given key.
func (g *groups) readAs(key byte, letters ...deadletter.ID) {
	g.t.Helper()
	for _, id := range letters {
		l := letter(g.t, g.Store, id)
		if err := g.Read(g.t.Context(), []deadletter.Read{{AsOf: l.ChangedAt, Classified: deadletter.Classified{
			Letter:       l.ID,
			Type:         "acme.T",
			Reading:      l.Reading,
			Error:        "e",
			GroupKey:     [32]byte{key},
			GroupTitle:   "again",
			GroupVersion: 2,
			Severity:     deadletter.SeverityPage,
			Channels:     []string{"oncall"},
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

// deliverNotices delivers the due notices of a channel. It returns each notice as its kind and key.
func (g *groups) deliverNotices(channel string) []string {
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

func (g *groups) advance(d time.Duration) { g.clock.at = g.clock.at.Add(d) }

func withSeverity(s deadletter.Severity) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.Severity = s }
}

func withDeathTime(at time.Time) func(*deadletter.Classified) {
	return func(c *deadletter.Classified) { c.DiedAt = at.Truncate(time.Second) }
}

func withTrigger(tr deadletter.Trigger) func(*deadletter.Classified) {
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
	g.advance(25 * time.Hour)
	g.die("sms", 2, 2)
	g.die("sms", 2, 1, withTrigger(deadletter.ClassifiedHold))
	g.die("sms", 2, 4, withTrigger(deadletter.ClassifiedDiscard))
	g.advance(90 * time.Minute)
	g.die("sms", 2, 2)
	g.die(
		"sms", 2, 3, withTrigger(deadletter.ClassifiedRetry),
		func(c *deadletter.Classified) { c.DueAt = g.clock.now() },
	)
	g.die("quiet", 3, 9, withTrigger(deadletter.ClassifiedDiscard))
	list := g.list("", deadletter.GroupPage{Order: deadletter.ByLetters})
	if len(list) != 2 {
		t.Fatal(list)
	}
	sms, old := list[0], list[1]
	want := deadletter.GroupRow{
		ID: 2, Title: "title of sms", Broker: "main", VHost: "/", Queue: "sms", Type: "acme.T", Reason: "rejected",
		Error: "e", Status: deadletter.GroupNew, Severity: deadletter.SeverityPage,
		Count: 5, Waiting: 3, FirstAt: g.clock.now().Add(-90 * time.Minute), LastAt: g.clock.now(), Failing: true,
		Retrying: 3,
		Spark:    append(make([]int, 22), 7, 5),
	}
	if diff := cmp.Diff(want, sms); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(old.Spark, make([]int, 24)) || old.Count != 3 {
		t.Errorf("%+v", old)
	}
	counts, err := g.GroupCounts(t.Context(), "ana")
	if diff := cmp.Diff(deadletter.GroupCounts{
		Inbox:      2,
		Letters:    8,
		Severities: map[deadletter.Severity]int{deadletter.SeverityPage: 2},
	}, counts); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestListsOfGroups checks lists of groups. They must be sorted by urgency, and it must be possible
// to filter them. Several pages of a list must neither repeat nor omit a group.
func TestListsOfGroups(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 5, withSeverity(deadletter.SeverityDigest))
	g.die("b", 2, 1)
	g.die("c", 3, 2)
	g.die(
		"d", 4, 9, withSeverity(deadletter.SeverityNotify),
		func(c *deadletter.Classified) { c.Error, c.GroupTitle = "100% wrong", "100% wrong" },
	)
	owner := "ana"
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Owner: &owner})
	// the groups with severity page come first, then the new groups
	if got := ids(g.list("", deadletter.GroupPage{})); got != "G-2 G-3 G-4 G-1" {
		t.Error(got)
	}
	for _, order := range append(deadletter.GroupOrders, "") {
		var all []deadletter.GroupRow
		after := ""
		for {
			list, next, err := g.Groups(t.Context(), query.Query{}, deadletter.GroupPage{
				Order: order, Limit: 1, After: after,
			})
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
		"severity:page": "G-2 G-3", "-severity:page": "G-4 G-1", "queue:a,b": "G-2 G-1", "queue:*": "G-2 G-3 G-4 G-1",
		"owner:ana": "G-3", "-owner:*": "", "owner:nobody": "", "status:open": "G-3",
		"error:*wrong*": "G-4", "100%": "G-4", "group:G-1,G-4": "G-4 G-1", "type:acme.T severity:notify": "G-4",
		"type:none": "", "since:1h": "G-2 G-3 G-4 G-1", "before:1h": "", "age:<1h": "G-2 G-3 G-4 G-1",
		"age:>1h": "", "reason:rejected queue:c": "G-3",
	} {
		if got := ids(g.list(q, deadletter.GroupPage{})); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	for _, p := range []deadletter.GroupPage{
		{},
		{Limit: 1001},
		{Limit: 1, Tab: "x"},
		{Limit: 1, Order: "x"},
		{Limit: 1, After: "no cursor!"},
		{Limit: 1, After: "W10"},
	} {
		if _, _, err := g.Groups(t.Context(), query.Query{}, p); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	attempts, _ := query.Parse("attempts:>1", query.Options{})
	if _, _, err := g.Groups(
		t.Context(), attempts, deadletter.GroupPage{Limit: 1},
	); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
}

// TestSuspects checks that a deploy shortly before the beginning of a group is suspected to be the
// cause of the failure.
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
	g.advance(3 * time.Hour)
	g.die("a", 1, 1)
	if one := g.load(1); one.Suspect != nil || len(one.Deploys) != 1 {
		t.Errorf("%+v", one)
	}
	deploy("billing")
	deploy("billing")
	g.advance(2 * time.Minute)
	g.die("b", 2, 1)
	g.advance(time.Minute)
	deploy("after")
	one := g.load(2)
	if one.Suspect == nil || one.Suspect.Service != "billing" || len(one.Deploys) != 3 ||
		one.Deploys[0].Service != "after" {
		t.Errorf("%+v", one)
	}
}

// TestGroupsOfOneErrorInOneQueueAreAlike checks that groups with the same error in the same queue
// are alike, even if their types differ. Groups with another queue or another error are not alike.
// A merged group is not listed as alike either.
func TestGroupsOfOneErrorInOneQueueAreAlike(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	g.die("a", 0x81, 2)
	g.die("a", 2, 1)
	g.die("b", 9, 1, func(c *deadletter.Classified) { c.GroupCause = []byte{1} })
	one, err := g.Group(t.Context(), 1)
	if err != nil || len(one.Alike) != 1 || one.Alike[0].ID != 2 || one.Alike[0].Count != 2 {
		t.Errorf("%+v %v", one.Alike, err)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	for id := range deadletter.GroupID(4) {
		if one, err := g.Group(t.Context(), id+1); err != nil || len(one.Alike) != 0 {
			t.Errorf("G-%d: %+v %v", id+1, one.Alike, err)
		}
	}
}
