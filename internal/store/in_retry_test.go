package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestLettersInRetryAreCounted checks the number of letters in retry, their queues, and the times
// at which the first of them can die or count as quiet. It also checks the groups of these letters.
// A group leaves the list when one of its letters needs people.
func TestLettersInRetryAreCounted(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	start := g.clock.now()
	in := func() deadletter.InRetry {
		t.Helper()
		in, err := g.InRetry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	retrying := func() map[deadletter.GroupID]time.Time {
		t.Helper()
		next := map[deadletter.GroupID]time.Time{}
		list, _, err := g.Groups(
			t.Context(), query.Query{}, deadletter.GroupPage{Tab: deadletter.TabRetrying, Limit: 10},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range list {
			next[row.ID] = row.NextAt.UTC()
		}
		return next
	}
	if diff := cmp.Diff(deadletter.InRetry{}, in()); diff != "" {
		t.Error(diff)
	}
	g.die("pay", 1, 3, g.withRetry(time.Minute, 10*time.Minute))
	g.die("sms", 2, 2, g.withRetry(2*time.Minute, 5*time.Minute))
	place := func(queue string) deadletter.Origin {
		return deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}
	}
	want := deadletter.InRetry{
		Letters: 5, Groups: 2, DiesAt: start.Add(4 * time.Minute), Queues: []deadletter.Origin{place("pay"), place("sms")},
	}
	if diff := cmp.Diff(want, in()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		map[deadletter.GroupID]time.Time{1: start.Add(time.Minute), 2: start.Add(2 * time.Minute)}, retrying(),
	); diff != "" {
		t.Error(diff)
	}
	g.advance(2 * time.Minute)
	var marks []deadletter.Mark
	quiet := g.clock.now().Add(time.Hour)
	for _, d := range g.claim(5) {
		marks = append(marks, deadletter.Mark{
			Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed, DueAt: quiet,
		})
	}
	if in := in(); in.Letters != 5 { // they are being sent
		t.Errorf("%d letters are in retry", in.Letters)
	}
	if err := g.Mark(t.Context(), marks, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	want.DiesAt, want.QuietAt = time.Time{}, quiet
	if diff := cmp.Diff(want, in()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[deadletter.GroupID]time.Time{1: quiet, 2: quiet}, retrying()); diff != "" {
		t.Error(diff)
	}
	g.die("sms", 2, 1)
	if groups, count := retrying(), in(); len(groups) != 1 || groups[1] != quiet || count.Groups != 1 {
		t.Errorf("the groups are %v, and %d", groups, count.Groups)
	}
}
