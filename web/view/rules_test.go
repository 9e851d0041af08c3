package view

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestARuleOfEveryOutcomeHasItsWords checks that the texts in the list, the details and the
// severity are different for each outcome. If an outcome were forgotten, it would have the texts of
// another outcome, or of an empty rule.
func TestARuleOfEveryOutcomeHasItsWords(t *testing.T) {
	t.Parallel()
	rules := map[deadletter.RuleOutcome]Rule{
		deadletter.RuleRetry: {
			OwnRetry: true,
			Retry:    RetryPlan{First: time.Second, Count: 1},
			Delays:   "1 s, then dead: digest",
		},
		deadletter.RuleDead:    {OwnRetry: true, Delays: "no retry, dead: digest"},
		deadletter.RuleDiscard: {Discard: true},
	}
	page := RulesPage{Rules: []Rule{{Default: true, Severity: deadletter.SeverityDigest}}}
	severity := func(o deadletter.RuleOutcome) string { return render(t, ruleSeverity(page, rules[o])) }
	of := map[string]deadletter.RuleOutcome{
		rules[""].retries(): "nothing", render(t, oneRule(page, rules[""])): "nothing",
	}
	for _, o := range deadletter.RuleOutcomes {
		for _, text := range []string{rules[o].retries(), render(t, oneRule(page, rules[o]))} {
			if other, ok := of[text]; ok {
				t.Errorf("rules of %s and of %s are both described as %q", o, other, text)
			}
			of[text] = o
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
	for want, r := range map[string]Rule{
		"10 s, 1 min 40 s":                          {OwnRetry: true, Retry: plain},
		"same as default (rejected letters only)":   {Retry: plain},
		"discards at once":                          {Retry: plain, Discard: true},
		"no retry":                                  {OwnRetry: true},
		"1 min × 2, 1,000 times, at most 6 h, ±20%": {OwnRetry: true, Retry: sampleThousand()},
		"1 s, 1 s, 1 s, 1 s, 1 s, 1 s, 2 more, ±10%": {
			OwnRetry: true, Retry: samplePlan(.1, slicesRepeat(time.Second, 8)...),
		},
	} {
		if got := r.retries(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
