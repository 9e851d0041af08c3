package view

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestTotalsInWords(t *testing.T) {
	t.Parallel()
	type become = map[deadletter.RuleOutcome]int
	for _, c := range []struct {
		total RuleTotal
		want  string
	}{
		{
			RuleTotal{deadletter.StateDead, 312, become{deadletter.RuleRetry: 24, deadletter.RuleDead: 288}},
			"Of 312 dead letters, 24 would be retried and 288 would still be dead.",
		},
		{
			RuleTotal{
				deadletter.StateDead,
				3,
				become{deadletter.RuleRetry: 1, deadletter.RuleDead: 1, deadletter.RuleDiscard: 1},
			},
			"Of 3 dead letters, 1 would be retried, 1 would still be dead and 1 would be discarded.",
		},
		{
			RuleTotal{deadletter.StateScheduled, 1, become{deadletter.RuleRetry: 1}},
			"Of 1 scheduled letter, 1 would still be retried.",
		},
		{
			RuleTotal{deadletter.StateRequeued, 2, become{deadletter.RuleRetry: 1, deadletter.RuleDiscard: 1}},
			"Of 2 requeued letters, 1 would still be retried and 1 would be discarded.",
		},
		{
			RuleTotal{deadletter.StateDiscarded, 2, become{deadletter.RuleDiscard: 2}},
			"Of 2 discarded letters, 2 would still be discarded.",
		},
		{
			RuleTotal{deadletter.StateHeld, 1200, become{deadletter.RuleDead: 1200}},
			"1,200 held letters would stay held. Once released, 1,200 would be dead.",
		},
	} {
		if got := c.total.Words(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestFatesInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fate       Fate
		was, would string
	}{
		{
			Fate{
				Was:   Decided{State: deadletter.StateDead, Rule: "a", Severity: deadletter.SeverityPage},
				Would: Decided{Outcome: deadletter.RuleDead, Rule: "b", Severity: deadletter.SeverityPage},
				Same:  true,
			},
			"Dead: rule a, severity page",
			"Still dead: rule b, severity page",
		},
		{
			Fate{Was: Decided{State: deadletter.StateDead}, Would: Decided{Outcome: deadletter.RuleRetry, Rule: "b"}},
			"Dead",
			"Retried: rule b",
		},
		{
			Fate{
				Was:   Decided{State: deadletter.StateHeld, Rule: "a"},
				Would: Decided{Outcome: deadletter.RuleDiscard, Rule: "b"},
				Same:  true,
			},
			"Held",
			"Held; once released, discarded: rule b",
		},
	} {
		if was, would := c.fate.Was.words(), c.fate.outcomeWords(); was != c.was || would != c.would {
			t.Errorf("%q and %q, want %q and %q", was, would, c.was, c.would)
		}
	}
	if got := (Decided{Rule: "a"}).delays(); got != "no longer in use" {
		t.Error(got)
	}
}
