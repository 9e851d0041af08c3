package rules

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	t.Parallel()
	queue := func(q string) Match { return Match{Queue: Patterns{q}} }
	set := Set{
		Rules: []Rule{
			{Name: "noise", Match: Match{Queue: Patterns{"cdn"}, Reason: Patterns{"expired"}}, Discard: true},
			{Name: "cdn", Match: queue("cdn"), Severity: deadletter.SeverityPage, Group: "edge"},
			{
				Name: "billing", Match: queue("billing"), Retry: &Retry{Delays: []time.Duration{time.Minute}},
				Severity: deadletter.SeverityNotify,
			},
			{Name: "never", Match: queue("dead"), Retry: &Retry{}},
			{
				Name: "in the broker", Match: queue("reports"),
				Retry: &Retry{Delays: []time.Duration{time.Hour}, Waiter: WaiterTTL},
			},
			{Name: "late", Match: Match{Attempts: attempts(">=2")}, Retry: &Retry{Attempts: 4, First: time.Hour}},
		},
		Default: Rule{
			Name: DefaultName, Retry: &Retry{Delays: []time.Duration{time.Second, time.Second}},
			Severity: deadletter.SeverityDigest,
		},
	}
	for _, c := range []struct {
		name  string
		facts Facts
		want  Decision
	}{
		{
			"discarded",
			Facts{Queue: "cdn", Reason: "expired"},
			Decision{
				Rule: "noise", Outcome: deadletter.RuleDiscard, Severity: "digest",
				Why: "rule noise: discarded as known noise",
			},
		},
		{
			"without a retry of its own: as the default",
			Facts{Queue: "cdn", Reason: "rejected"},
			Decision{
				Rule: "cdn", Outcome: deadletter.RuleRetry, Delay: time.Second, Rest: 2 * time.Second,
				Waiter: WaiterStore, Severity: "page", Group: "edge", Why: "rule cdn: retry 1 of 2 in 1s",
			},
		},
		{
			"but not what no worker refused",
			Facts{Queue: "cdn", Reason: "maxlen"},
			Decision{
				Rule: "cdn", Outcome: deadletter.RuleDead, Severity: "page", Group: "edge",
				Why: "rule cdn: reason maxlen: no retry, because the rule has none of its own",
			},
		},
		{
			"with a retry of its own: whatever the reason",
			Facts{Queue: "billing", Reason: "expired"},
			Decision{
				Rule: "billing", Outcome: deadletter.RuleRetry, Delay: time.Minute, Rest: time.Minute,
				Waiter: WaiterStore, Severity: "notify", Why: "rule billing: retry 1 of 1 in 1m0s",
			},
		},
		{
			"used up",
			Facts{Queue: "billing", Attempts: 2},
			Decision{
				Rule: "billing", Outcome: deadletter.RuleDead, Severity: "notify",
				Why: "rule billing: retries used up: 1 of 1, sent 2 times in total",
			},
		},
		{
			"dead at once",
			Facts{Queue: "dead", Reason: "rejected"},
			Decision{Rule: "never", Outcome: deadletter.RuleDead, Severity: "digest", Why: "rule never: no retries"},
		},
		{
			"retries started again",
			Facts{Queue: "billing", Attempts: 7, Reset: 7},
			Decision{
				Rule: "billing", Outcome: deadletter.RuleRetry, Delay: time.Minute, Rest: time.Minute,
				Waiter: WaiterStore, Severity: "notify", Why: "rule billing: retry 1 of 1 in 1m0s",
			},
		},
		{
			"behind the waiter of the rule",
			Facts{Queue: "reports"},
			Decision{
				Rule: "in the broker", Outcome: deadletter.RuleRetry, Delay: time.Hour, Rest: time.Hour,
				Waiter: WaiterTTL, Severity: "digest", Why: "rule in the broker: retry 1 of 1 in 1h0m0s",
			},
		},
		{
			"no waiter without a retry",
			Facts{Queue: "reports", Attempts: 1},
			Decision{
				Rule: "in the broker", Outcome: deadletter.RuleDead, Severity: "digest",
				Why: "rule in the broker: retries used up: 1 of 1",
			},
		},
		{
			"by its attempts",
			Facts{Queue: "sms", Attempts: 2},
			Decision{
				Rule: "late", Outcome: deadletter.RuleRetry, Delay: time.Hour, Rest: 2 * time.Hour, Waiter: WaiterStore,
				Severity: "digest", Why: "rule late: retry 3 of 4 in 1h0m0s",
			},
		},
		{
			"the default",
			Facts{Queue: "sms", Attempts: 1},
			Decision{
				Rule: "default", Outcome: deadletter.RuleRetry, Delay: time.Second, Rest: time.Second,
				Waiter: WaiterStore, Severity: "digest", Why: "retry 2 of 2 in 1s",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, set.Decide(c.facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsOfARule(t *testing.T) {
	t.Parallel()
	rate := 10.0
	set := Set{
		Rules:   []Rule{{Name: "a", InDoubt: "hold"}, {Name: "b", Watch: time.Minute, Rate: &rate}},
		Default: Rule{Name: DefaultName, Watch: time.Hour},
	}
	for name, want := range map[string]Settings{
		"a":       {InDoubt: "hold"},
		"b":       {Watch: time.Minute, Rate: &rate},
		"default": {Watch: time.Hour},
		"gone":    {},
	} {
		if got := set.Of(name); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
