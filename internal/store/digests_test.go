package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

// TestDigestOfANight checks the digest, which is sent once a day. It must list the letters that
// died in the night and need people, and count the letters that recovered.
func TestDigestOfANight(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.clock.at = time.Date(2026, 11, 19, 8, 30, 0, 0, time.UTC)
	g.die("old", 1, 7)
	from := g.clock.now().Add(24 * time.Hour)
	g.clock.at = from.Add(time.Hour)
	low := withSeverity(deadletter.SeverityDigest)
	g.die("old", 1, 2, low)
	g.die("new", 2, 5, low)
	g.die("snoozed", 3, 5, low)
	g.die("discarded", 4, 5, withTrigger(deadletter.ClassifiedDiscard))
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Snooze: &deadletter.Snooze{}})
	g.clock.at = from.Add(24 * time.Hour)
	d, err := g.Digest(t.Context(), from, g.clock.now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if d.Groups != 2 || d.Letters != 7 || d.New != 1 || d.More != 1 || len(d.Lines) != 1 || d.Lines[0].Group.ID != 2 ||
		d.Lines[0].Letters != 5 || d.Before.Letters != 7 || d.Before.Groups != 1 || d.Paged != 0 {
		t.Errorf("%+v", d)
	}
	if n, err := g.DigestSize(t.Context(), from, g.clock.now()); err != nil || n != d.Groups {
		t.Errorf("%d groups, %v", n, err)
	}
	for i, want := range []bool{true, false} {
		if sent, err := g.SendDigest(
			t.Context(), "2026-11-21", "dlo", d, []string{"team"},
		); err != nil || sent != want {
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

// TestADigestCountsDeaths checks a letter that died before 08:30, when one digest ended and the
// next one began. The retries of the letter ended after 08:30. The letter must be in the later
// digest, because a digest counts a letter when it begins to need people.
func TestADigestCountsDeaths(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.clock.at = time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)
	ids := g.die(
		"sms", 1, 1, withTrigger(deadletter.ClassifiedRetry),
		func(c *deadletter.Classified) { c.DueAt = g.clock.now().Add(time.Hour) },
	)
	g.advance(time.Hour)
	due := claim(t, g.Store, g.clock)
	if len(due) != 1 || due[0].Letter.ID != ids[0] {
		t.Fatal(due)
	}
	if err := g.Mark(t.Context(), []deadletter.Mark{
		{Letter: ids[0], Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeReturned, Detail: "no target"},
	}, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]int{18: 0, 19: 1, 20: 0} { // each digest covers a day from 08:30 on
		from := time.Date(2026, 11, day, 8, 30, 0, 0, time.UTC)
		if d, err := g.Digest(
			t.Context(), from, from.Add(24*time.Hour), 10,
		); err != nil || d.Letters != want || d.Groups != want {
			t.Errorf("from the %d: %+v %v", day, d, err)
		}
	}
}

// TestADigestAfterASplitAndARegroup checks the deaths of a group that is merged into another group.
// While it is merged, its deaths must count for the other group, and after a split for the group
// itself. If letters move to another group, their times of death must move with them.
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
