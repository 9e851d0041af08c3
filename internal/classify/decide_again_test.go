package classify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// waitingLetter returns a letter that waits for a retry under the default rule. It was received 21
// minutes ago and died again a minute ago.
func waitingLetter(change func(*deadletter.Waiting)) deadletter.Waiting {
	w := deadletter.Waiting{Letter: deadLetter("sms", "rejected", nil), Since: now.Add(-time.Minute)}
	w.State, w.Queue, w.Reason, w.ReceivedAt, w.DueAt = deadletter.StateScheduled, "sms", "rejected", now.Add(
		-21*time.Minute,
	), now.Add(39*time.Second)
	w.Attempts, w.Rule, w.Severity, w.Why, w.ChangedAt = 1, rules.DefaultName, deadletter.SeverityNotify, "retry 2 of 2 in 1m40s", now.Add(-time.Minute)
	if change != nil {
		change(&w)
	}
	return w
}

func TestDecidedAgain(t *testing.T) {
	t.Parallel()
	byAge := func(condition string) rules.Rule {
		c, err := rules.ParseComparison(condition, func(text string) (int64, error) {
			d, err := time.ParseDuration(text)
			return int64(d), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return rules.Rule{Name: "old", Match: rules.Match{Age: rules.Comparisons{c}}, Retry: &rules.Retry{}}
	}
	for _, c := range []struct {
		name    string
		rules   []rules.Rule
		change  func(*deadletter.Waiting)
		outcome deadletter.RuleOutcome
		left    string
		why     string
		due     time.Duration // time from now; 0 = no due time
	}{
		{name: "nothing has changed", why: "retry 2 of 2 in 1m40s", due: 39 * time.Second},
		{
			name:    "another delay",
			rules:   []rules.Rule{{Name: "a", Retry: &rules.Retry{Delays: []time.Duration{0, 10 * time.Minute}}}},
			outcome: deadletter.RuleRetry,
			why:     "rule a: retry 2 of 2 in 10m0s",
			due:     9 * time.Minute,
		},
		{
			name:    "a delay that is over",
			rules:   []rules.Rule{{Name: "a", Retry: &rules.Retry{Delays: []time.Duration{0, time.Second}}}},
			outcome: deadletter.RuleRetry,
			why:     "rule a: retry 2 of 2 in 1s",
		},
		{
			name:    "dead",
			rules:   []rules.Rule{{Name: "a", Retry: &rules.Retry{Delays: []time.Duration{time.Second}}}},
			outcome: deadletter.RuleDead,
			why:     "rule a: retries used up: 1 of 1",
		},
		{
			name:    "discarded",
			rules:   []rules.Rule{{Name: "a", Discard: true}},
			outcome: deadletter.RuleDiscard,
			why:     "rule a: discarded as known noise",
		},
		{
			name: "another severity", change: func(w *deadletter.Waiting) { w.Severity = deadletter.SeverityPage },
			outcome: deadletter.RuleRetry, why: "retry 2 of 2 in 1m40s", due: 39 * time.Second,
		},
		{
			name:  "its age is that of its death",
			rules: []rules.Rule{byAge(">20m30s")},
			why:   "retry 2 of 2 in 1m40s",
			due:   39 * time.Second,
		},
		{
			name:    "and not less",
			rules:   []rules.Rule{byAge(">19m")},
			outcome: deadletter.RuleDead,
			why:     "rule old: no retries",
		},
		{name: "refused by its queue", change: func(w *deadletter.Waiting) { w.Why = "" }, due: 39 * time.Second},
		{
			name:    "refused by its queue, and another delay",
			rules:   []rules.Rule{{Name: "a", Retry: &rules.Retry{Delays: []time.Duration{0, time.Hour}}}},
			change:  func(w *deadletter.Waiting) { w.Why = "" },
			outcome: deadletter.RuleRetry,
			due:     39 * time.Second,
		},
		{
			name: "a person", change: func(w *deadletter.Waiting) { w.Chosen = true }, left: "someone set its due time",
			why: "retry 2 of 2 in 1m40s", due: 39 * time.Second,
		},
		{
			name: "an operation", change: func(w *deadletter.Waiting) { w.Operation = 7 },
			left: "an operation has released it", why: "retry 2 of 2 in 1m40s", due: 39 * time.Second,
		},
		{
			name: "the broker", change: func(w *deadletter.Waiting) { w.WaitsIn = "q" }, left: "it waits in the broker",
			why: "retry 2 of 2 in 1m40s", due: 39 * time.Second,
		},
		{
			name: "dead already", change: func(w *deadletter.Waiting) { w.State = deadletter.StateDead },
			left: "it has changed meanwhile", why: "retry 2 of 2 in 1m40s", due: 39 * time.Second,
		},
		{
			name: "unreadable", change: func(w *deadletter.Waiting) { w.Crashes = deadletter.MaxCrashes },
			left: "it cannot be read", why: "retry 2 of 2 in 1m40s", due: 39 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options()
			set := *o.Rules.Set()
			set.Rules = c.rules
			o.Rules.Replace(&set)
			list, err := classify.New(&fake{}, o).DecideAgain(
				context.Background(), []deadletter.Waiting{waitingLetter(c.change)},
			)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			want := time.Time{}
			if c.due > 0 || c.outcome == deadletter.RuleRetry {
				want = now.Add(c.due)
			}
			if a := list[0]; a.Outcome != c.outcome || a.Left != c.left || a.Why != c.why || !a.DueAt.Equal(want) ||
				a.WasRule != rules.DefaultName || a.Origin.Queue != "sms" {
				t.Errorf("%+v, want due %s", a, want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := classify.New(&fake{}, options()).DecideAgain(
		ctx, []deadletter.Waiting{waitingLetter(nil)},
	); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
