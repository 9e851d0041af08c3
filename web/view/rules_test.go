package view

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestEveryOutcomeOfARuleHasItsWords checks that the text about the next action of a rule is
// different for each outcome. If an outcome were forgotten, it would have the text of another
// outcome.
func TestEveryOutcomeOfARuleHasItsWords(t *testing.T) {
	t.Parallel()
	next := map[string]deadletter.RuleOutcome{}
	for _, o := range deadletter.RuleOutcomes {
		text := RuleAnswer{Rule: "a", Outcome: o}.nextStep()
		if other, ok := next[text]; ok {
			t.Errorf("%s and %s are both %q", o, other, text)
		}
		next[text] = o
	}
}

// TestARuleOfEveryOutcomeHasItsWords checks that the texts in the list, the details and the
// severity are different for each outcome. If an outcome were forgotten, it would have the texts of
// another outcome, or of an empty rule.
func TestARuleOfEveryOutcomeHasItsWords(t *testing.T) {
	t.Parallel()
	delay := func(int) (low, planned, high time.Duration) { return time.Second, time.Second, time.Second }
	rules := map[deadletter.RuleOutcome]Rule{
		deadletter.RuleRetry:   {OwnRetry: true, Retry: RetryPlan{First: time.Second, Curve: NewCurve(1, 0, delay)}},
		deadletter.RuleDead:    {OwnRetry: true},
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
