package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestMergedGroupsAreOne checks that merged groups behave like one group. Their letters are counted
// and found together, and the death of a letter in any of them is a death in the merged group. A
// split separates the groups again.
func TestMergedGroupsAreOne(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 2)
	g.die("b", 2, 3)
	g.advance(time.Minute)
	g.deliverNotices("oncall")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"resolved G-2/1"}) {
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
	one := g.load(1)
	if one.Count != 5 || len(one.Merged) != 1 || one.Merged[0].Count != 3 || g.load(2).Head != 1 {
		t.Errorf("%+v", one)
	}
	owner := "ana"
	if _, err := g.Decide(t.Context(), deadletter.Decision{
		Groups: []deadletter.GroupID{2},
		Owner:  &owner,
	}); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("one that is merged was changed: %v", err)
	}
	g.die("c", 3, 1)
	if _, err := g.Decide(t.Context(), deadletter.Decision{
		Groups: []deadletter.GroupID{3},
		Into:   2,
	}); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("merged into one that is merged: %v", err)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Snooze: &deadletter.Snooze{Queue: true}})
	g.die("b", 2, 1) // queue b is a queue of the group itself
	if one := g.load(1); one.Status != deadletter.GroupSnoozed {
		t.Errorf("a letter of a queue of its own ended its snooze: %s", one.Status)
	}
	g.die("d", 2+0x80, 1) // the cause of the merged group is seen in another queue
	if one := g.load(1); one.Status != deadletter.GroupOpen {
		t.Errorf("another queue has it: %s", one.Status)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}})
	g.advance(time.Minute)
	g.die("b", 2, 1)
	if one := g.load(1); one.Status != deadletter.GroupRegressed {
		t.Errorf("a letter of the other died: %s", one.Status)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Split: true})
	if n := count(t, g.Store, "group:G-1"); n != 2 || g.load(1).Count != 2 || g.load(2).Count != 5 {
		t.Errorf("after the split: %d, %d, %d", n, g.load(1).Count, g.load(2).Count)
	}
}

// TestARegroupedHeadKeepsItsMembers checks a head, which is a group into which other groups are
// merged. If the letters of the head move to another group, the merged groups must stay merged into
// the head.
func TestARegroupedHeadKeepsItsMembers(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	letters := g.die("a", 1, 1)
	g.die("b", 2, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	g.readAs(9, letters...)
	if one := g.load(1); one.Count != 2 || len(one.Merged) != 2 || g.load(3).Head != 1 {
		t.Errorf("%+v", one)
	}
}

// TestLettersThatBelongToTheHead checks a group that is merged into another group, its head. If its
// letters turn out to belong to the head, no group may be merged into itself.
func TestLettersThatBelongToTheHead(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("waits", 1, 1, func(c *deadletter.Classified) {
		c.To, c.DueAt = deadletter.ClassifiedRetry, g.clock.now().Add(time.Hour)
	})
	letters := g.die("dead", 2, 2, withSeverity(deadletter.SeverityDigest))
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	g.readAs(1, letters[0])
	if one := g.load(1); one.Head != 0 || one.Count != 2 || g.load(2).Head != 1 {
		t.Errorf("%+v", one)
	}
}
