package view

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

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
