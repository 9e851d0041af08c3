package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gauges returns the collector's values. The key of a value is the name of the gauge and its label
// values in order, separated by spaces. Zeros are omitted.
func gauges(t *testing.T, s *store.Store) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			words := []string{strings.TrimPrefix(f.GetName(), "dlo_")}
			for _, l := range m.GetLabel() {
				words = append(words, l.GetValue())
			}
			got[strings.Join(words, " ")] = m.GetGauge().GetValue()
		}
	}
	if n := len(deadletter.States) + 4*3 + 2; len(got) != n {
		t.Errorf("%d series, not %d: what is 0 is said", len(got), n)
	}
	for k, v := range got {
		if v == 0 {
			delete(got, k)
		}
	}
	return got
}

func TestGaugesOfLettersAndGroups(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	if got := gauges(t, g.Store); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
	g.die("sms", 1, 3)
	g.die("sms", 2, 1, withSeverity(deadletter.SeverityNotify))
	g.die("sms", 3, 1, withSeverity(""), withTrigger(deadletter.ClassifiedHold))
	g.die("email", 4, 1)
	g.die("email", 5, 2)
	g.die("push", 6, 1, withTrigger(deadletter.ClassifiedDiscard))
	g.die("push", 7, 1)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{4}, Resolve: &deadletter.Resolution{}})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{5}, Snooze: &deadletter.Snooze{After: 5}})
	ana := "ana"
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{7}, Owner: &ana})
	receive(t, g.Store, window(t, 100, "late", 2))
	want := map[string]float64{
		"letters dead": 8, "letters held": 1, "letters discarded": 1, "letters received": 2, "classify_backlog": 2,
		"groups page new": 1, "groups notify new": 1, "groups digest new": 1, "groups page open": 1,
	}
	if diff := cmp.Diff(want, gauges(t, g.Store)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheLagOfTheSchedule checks which letters count as late. A letter that waits for its due time
// is not late, and neither is a letter that a pause holds back.
func TestTheLagOfTheSchedule(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	in := func(d time.Duration) func(*deadletter.Classified) {
		return func(c *deadletter.Classified) { c.To, c.DueAt = deadletter.ClassifiedRetry, g.clock.now().Add(d) }
	}
	lag := func(what string, want float64) {
		t.Helper()
		if got := gauges(t, g.Store)["schedule_lag_seconds"]; got != want {
			t.Errorf("%s: %v seconds, want %v", what, got, want)
		}
	}
	g.die("sms", 1, 2, in(10*time.Second))
	g.die("sms", 2, 1, in(15*time.Second))
	g.die("email", 3, 1, in(30*time.Second))
	lag("nothing is due", 0)
	g.advance(40 * time.Second)
	lag("all is due", 30)
	if _, err := g.Pause(t.Context(), deadletter.Guard{Group: 1, Why: "the gateway is down", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	lag("the group that waits longest is paused", 25)
	if _, err := g.Pause(t.Context(), ofQueue("sms", "the gateway is down", "ana")); err != nil {
		t.Fatal(err)
	}
	lag("its queue is paused", 10)
	if due, err := g.ClaimDue(t.Context(), "main", g.clock.now(), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	}); err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	lag("the rest was sent", 0)
}
