package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// queuesOf returns the number of claimed letters of each queue.
func queuesOf(due []deadletter.Due) map[string]int {
	n := map[string]int{}
	for _, d := range due {
		n[d.Attempt.Queue]++
	}
	return n
}

// TestEachQueueHasItsTurn checks that a claim includes all queues in turn. If one queue has more
// due letters than fit into a claim, the other queues must still get their turn.
func TestEachQueueHasItsTurn(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	for i, queue := range []string{"sms", "email", "billing"} {
		receive(t, s, window(t, int64(i+1), queue, 40))
	}
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	got := map[string]int{}
	for range 6 {
		due, err := s.ClaimDue(t.Context(), "main", c.now(), 10, deadletter.Allowance{
			Allow: func(deadletter.Origin, string) (int, bool) { return 1000, false },
		})
		if err != nil {
			t.Fatal(err)
		}
		for queue, n := range queuesOf(due) {
			got[queue] += n
		}
	}
	if want := map[string]int{"sms": 20, "email": 20, "billing": 20}; !maps.Equal(got, want) {
		t.Errorf("six claims of 10 letters: %v", got)
	}
}

// TestPausedRetriesStay checks that automatic retries of a paused queue or group are not claimed.
// If a person requeues letters of the same queue or group, these letters must be claimed.
func TestPausedRetriesStay(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	receive(t, s, window(t, 1, "sms", 3))
	sms := receive(t, s, window(t, 2, "sms", 1)).New[0]
	receive(t, s, window(t, 3, "email", 3))
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	sends := deadletter.Guard{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		By:     "ada",
		Why:    "the vendor is down",
	}
	if _, err := s.Pause(ctx, sends); err != nil {
		t.Fatal(err)
	}
	if got := queuesOf(claim(t, s, c)); got["sms"] != 0 || got["email"] != 3 {
		t.Errorf("claimed of a paused queue: %v", got)
	}
	if _, due := requeue(t, s, c, sms); len(due) != 1 {
		t.Errorf("%d letters that a person requeued", len(due))
	}
	if err := s.Resume(ctx, sends); err != nil {
		t.Fatal(err)
	}
	group := letter(t, s, sms).Group
	if _, err := s.Pause(ctx, deadletter.Guard{Group: group, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if got := queuesOf(claim(t, s, c)); got["sms"] != 0 {
		t.Errorf("claimed of a paused group: %v", got)
	}
	if err := s.Resume(ctx, deadletter.Guard{Group: group, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if got := queuesOf(claim(t, s, c)); got["sms"] != 3 {
		t.Errorf("after the resume: %v", got)
	}
}

// TestAProbeThatComesBackIsNotCounted checks probes. A probe is an attempt that shows whether a
// queue works again. If a probe comes back, it must not count as an attempt of its letter, even if
// it comes back before its confirm. Every other attempt must count.
func TestAProbeThatComesBackIsNotCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ probe, confirmed bool }{
		"a probe":                          {true, true},
		"a probe, faster than its confirm": {true, false},
		"a retry":                          {false, true},
		"a retry, faster than its confirm": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := open(t)
			id := receive(t, s, window(t, 1, "sms", 1)).New[0]
			classify(t, s, deadletter.ClassifiedRetry, clock.now())
			due, err := s.ClaimDue(context.Background(), "main", clock.now(), 1, deadletter.Allowance{
				Allow: func(deadletter.Origin, string) (int, bool) { return 1, c.probe },
			})
			if err != nil || len(due) != 1 || due[0].Attempt.Probe != c.probe {
				t.Fatal(due, err)
			}
			if c.confirmed {
				mark(t, s, clock, deadletter.OutcomeConfirmed, due...)
			}
			receipt := receive(t, s, returnWindow(t, 2, due[0], "sms", letter(t, s, id).Body))
			if len(receipt.Returned) != 1 || receipt.Returned[0] != id {
				t.Errorf("returned: %v", receipt.Returned)
			}
			want := 1
			if c.probe {
				want = 0
			}
			if got := letter(t, s, id).Attempts; got != want {
				t.Errorf("%d attempts are counted", got)
			}
		})
	}
}

// inTwoLanes stores due letters of one queue. The first letters have the rule "slow", and the
// parameter "slow" is their number. The other letters have the default rule. The letters are
// divided evenly among the given number of groups.
func inTwoLanes(t *testing.T, s *store.Store, c *clock, letters, slow, groups int) {
	t.Helper()
	receive(t, s, window(t, 1, "sms", letters))
	received, err := s.NextReceived(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	for i, l := range received {
		v := deadletter.Classified{
			Letter:     l.ID,
			To:         deadletter.ClassifiedRetry,
			Origin:     deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
			DueAt:      c.now(),
			Rule:       "default",
			GroupKey:   [32]byte{byte(i%groups + 1)},
			GroupTitle: "g",
		}
		if i < slow {
			v.Rule = "slow"
		}
		verdicts = append(verdicts, v)
	}
	if err := s.Classify(t.Context(), verdicts); err != nil {
		t.Fatal(err)
	}
}

// TestRulesWithARateAreClaimedApart checks rules with a rate of their own. In each queue, their
// letters must be claimed separately from the other letters.
func TestRulesWithARateAreClaimedApart(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	inTwoLanes(t, s, c, 10, 6, 1)
	asked := map[string]int{}
	due, err := s.ClaimDue(context.Background(), "main", c.now(), 100, deadletter.Allowance{
		Rules: []string{"slow"},
		Allow: func(o deadletter.Origin, rule string) (int, bool) {
			asked[o.Queue+"/"+rule]++
			return map[string]int{"slow": 2, "": 3}[rule], false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, d := range due {
		got[d.Letter.Rule]++
	}
	if got["slow"] != 2 || got["default"] != 3 || asked["sms/slow"] != 1 || asked["sms/"] != 1 {
		t.Errorf("claimed %v, asked %v", got, asked)
	}
}

// TestTheDueTimeIsChanged checks the actions "retry now" and "reschedule", which change only the
// due time of a retry. They must skip letters that do not wait for a retry.
func TestTheDueTimeIsChanged(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	operate(t, s, deadletter.VerbRetryNow, ids[0])
	later := deadletter.Operation{
		Action: deadletter.VerbReschedule, By: "ada", Reason: "seven", DueAt: c.now().Add(48 * time.Hour),
	}
	if err := s.Freeze(ctx, &later, query.Selection{IDs: ids[1:2]}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, later.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Time{c.now(), later.DueAt, c.now().Add(time.Hour)} {
		if l := letter(
			t, s, ids[i],
		); !l.DueAt.Equal(want) || l.State != deadletter.StateScheduled || l.Operation != 0 || l.Attempts != 0 {
			t.Errorf("letter %d: due %s, want %s: %+v", i, l.DueAt, want, l)
		}
	}
	op, err := s.Operation(ctx, later.ID)
	if err != nil || !op.DueAt.Equal(later.DueAt) || op.State != deadletter.OperationDone ||
		op.Counts[deadletter.ResultChanged] != 1 {
		t.Errorf("%+v, %v", op, err)
	}
	if due := claim(t, s, c); len(due) != 1 || due[0].Letter.ID != ids[0] {
		t.Fatalf("due now: %v", due)
	}
	// Here, the clock was set back by more than the longest back-off, so DrawNear must move a due
	// time. However, a due time that a person chose must stay the same.
	if n, err := s.DrawNear(ctx, c.now().Add(time.Minute)); n != 1 || err != nil {
		t.Errorf("%d letters brought near, %v", n, err)
	}
	if l := letter(t, s, ids[2]); !l.DueAt.Equal(c.now().Add(time.Minute)) {
		t.Errorf("due %s", l.DueAt)
	}
	if l := letter(t, s, ids[1]); !l.DueAt.Equal(later.DueAt) {
		t.Errorf("what a person chose is due %s", l.DueAt)
	}
	if op := operate(t, s, deadletter.VerbRetryNow, ids[0]); resultOf(t, s, op, ids[0]) != deadletter.ResultSkipped {
		t.Error("a letter on its way was made due")
	}
}

func resultOf(t testing.TB, s *store.Store, op deadletter.OperationID, id deadletter.ID) deadletter.Result {
	t.Helper()
	o, err := s.Operation(context.Background(), op)
	if err != nil {
		t.Fatal(err)
	}
	for r, n := range o.Counts {
		if n == 1 {
			return r
		}
	}
	t.Fatalf("letter %s: %v", id, o.Counts)
	return ""
}

// TestRetriesBeginAgainWhenAPersonSaysSo checks a requeue that restarts the retries of a letter.
// The next death of the letter must count as its first one. After any other requeue, dlo must
// continue to count.
func TestRetriesBeginAgainWhenAPersonSaysSo(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{false, true} {
		s, c := open(t)
		ctx := context.Background()
		id := receive(t, s, window(t, 1, "sms", 1)).New[0]
		classify(t, s, deadletter.ClassifiedRetry, c.now())
		due := claim(t, s, c)
		mark(t, s, c, deadletter.OutcomeConfirmed, due...)
		receive(t, s, returnWindow(t, 2, due[0], "sms", letter(t, s, id).Body))
		classify(t, s, deadletter.ClassifiedDead, time.Time{})
		op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ada", Reset: reset}
		if err := s.Freeze(ctx, &op, query.Selection{IDs: []deadletter.ID{id}}, 0, anyPlace); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(ctx, op.ID, 1, nil); err != nil {
			t.Fatal(err)
		}
		due = claim(t, s, c)
		mark(t, s, c, deadletter.OutcomeConfirmed, due...)
		receive(t, s, returnWindow(t, 3, due[0], "sms", letter(t, s, id).Body))
		want := 0
		if reset {
			want = 2
		}
		if l := letter(t, s, id); l.Attempts != 2 || l.Reset != want {
			t.Errorf("reset %v: %d attempts, %d of them before", reset, l.Attempts, l.Reset)
		}
	}
}

// TestAGuardedGroupHasItsShare checks a queue in which one group has a breaker. This group must get
// a share of the letters that the queue may send. The share is for all rules together. The other
// groups must get what is left.
func TestAGuardedGroupHasItsShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		queue  int // number of letters that the queue may send per lane
		shares []deadletter.GroupShare
		want   string // number of claimed letters by group and rule
	}{
		{"none is guarded", 100, nil, "1 default 2, 1 slow 3, 2 default 2, 2 slow 3, 3 default 2, 3 slow 3"},
		{"one is held back", 100, []deadletter.GroupShare{{Group: 1}}, "2 default 2, 2 slow 3, 3 default 2, 3 slow 3"},
		{
			"one is probed",
			100,
			[]deadletter.GroupShare{{Group: 2, N: 4, Probe: true}},
			"1 default 2, 1 slow 3, 2 default 1 probes, 2 slow 3 probes, 3 default 2, 3 slow 3",
		},
		{
			"one is slowed down, one held back",
			100,
			[]deadletter.GroupShare{{Group: 1}, {Group: 3, N: 1}},
			"2 default 2, 2 slow 3, 3 slow 1",
		},
		{"the queue bounds a share", 2, []deadletter.GroupShare{{Group: 2, N: 100}}, "2 default 2, 2 slow 2"},
		{
			"what is left of the queue",
			3,
			[]deadletter.GroupShare{{Group: 2, N: 1}, {Group: 1}},
			"2 slow 1, 3 default 2, 3 slow 2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			inTwoLanes(t, s, clock, 15, 9, 3)
			due, err := s.ClaimDue(t.Context(), "main", clock.now(), 100, deadletter.Allowance{
				Rules: []string{"slow"}, Allow: func(deadletter.Origin, string) (int, bool) { return c.queue, false },
				Shares: func(deadletter.Origin) []deadletter.GroupShare { return slices.Clone(c.shares) },
			})
			if err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, d := range due {
				key := fmt.Sprintf("%d %s", d.Letter.Group, d.Letter.Rule)
				if count[key]++; d.Attempt.Probe {
					count[key+" probes"]++
				}
			}
			var got []string
			for _, key := range slices.Sorted(maps.Keys(count)) {
				n, probes := count[key], count[key+" probes"]
				if strings.HasSuffix(key, " probes") {
					continue
				}
				text := fmt.Sprintf("%s %d", key, n)
				if probes == n {
					text += " probes"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
