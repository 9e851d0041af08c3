package view

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestARuleOfEveryOutcomeHasItsWords checks that the texts in the list, the details and the
// severity are different for each outcome. If an outcome were forgotten, it would have the texts of
// another outcome, or of an empty rule.
func TestARuleOfEveryOutcomeHasItsWords(t *testing.T) {
	t.Parallel()
	of := map[deadletter.RuleOutcome]Rule{
		deadletter.RuleRetry: {
			Rule:   rules.Rule{Retry: &rules.Retry{First: time.Second, Attempts: 1}},
			Delays: "1 s, then dead: digest",
		},
		deadletter.RuleDead:    {Rule: rules.Rule{Retry: &rules.Retry{}}, Delays: "no retry, dead: digest"},
		deadletter.RuleDiscard: {Rule: rules.Rule{Discard: true}},
	}
	page := RulesPage{Rules: []Rule{{Rule: rules.Rule{Severity: deadletter.SeverityDigest}, Default: true}}}
	severity := func(o deadletter.RuleOutcome) string { return render(t, ruleSeverity(page, of[o])) }
	said := map[string]deadletter.RuleOutcome{
		of[""].retries(): "nothing", render(t, oneRule(page, of[""])): "nothing",
	}
	for _, o := range deadletter.RuleOutcomes {
		for _, text := range []string{of[o].retries(), render(t, oneRule(page, of[o]))} {
			if other, ok := said[text]; ok {
				t.Errorf("rules of %s and of %s are both described as %q", o, other, text)
			}
			said[text] = o
		}
		dies := o == deadletter.RuleRetry || o == deadletter.RuleDead
		if (severity(o) == severity("")) != dies {
			t.Errorf("a letter of %s can die: %v, and its severity is %q", o, dies, severity(o))
		}
	}
}

func TestRetriesInWords(t *testing.T) {
	t.Parallel()
	plain := samplePlan(0, 10*time.Second, 100*time.Second)
	for want, r := range map[string]rules.Rule{
		"10 s, 1 min 40 s":                          {Retry: plain},
		"same as default (rejected letters only)":   {},
		"discards at once":                          {Retry: plain, Discard: true},
		"no retry":                                  {Retry: &rules.Retry{}},
		"1 min × 2, 1,000 times, at most 6 h, ±20%": {Retry: sampleThousand()},
		"1 s, 1 s, 1 s, 1 s, 1 s, 1 s, 2 more, ±10%": {
			Retry: samplePlan(.1, slicesRepeat(time.Second, 8)...),
		},
	} {
		if got := (Rule{Rule: r}).retries(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
