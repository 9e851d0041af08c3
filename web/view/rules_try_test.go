package view

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

func TestFatesInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fate       rules.Fate
		was, would string
	}{
		{
			rules.Fate{
				Was:   rules.Outcome{State: deadletter.StateDead, Rule: "a", Severity: deadletter.SeverityPage},
				Would: rules.Outcome{Action: deadletter.RuleDead, Rule: "b", Severity: deadletter.SeverityPage},
				Same:  true,
			},
			"Dead: rule a, severity page",
			"Still dead: rule b, severity page",
		},
		{
			rules.Fate{Was: rules.Outcome{State: deadletter.StateDead}, Would: rules.Outcome{Action: deadletter.RuleRetry, Rule: "b"}},
			"Dead",
			"Retried: rule b",
		},
		{
			rules.Fate{
				Was:   rules.Outcome{State: deadletter.StateHeld, Rule: "a"},
				Would: rules.Outcome{Action: deadletter.RuleDiscard, Rule: "b"},
				Same:  true,
			},
			"Held",
			"Held; once released, discarded: rule b",
		},
	} {
		if was, would := realOutcome(c.fate.Was), outcomeWords(c.fate); was != c.was || would != c.would {
			t.Errorf("%q and %q, want %q and %q", was, would, c.was, c.would)
		}
	}
	if got := outcomeDelays(rules.Outcome{Rule: "a"}); got != "no longer in use" {
		t.Error(got)
	}
}
