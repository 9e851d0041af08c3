package view

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestEveryOutcomeOfARuleHasItsWords for what a rule does next. A forgotten outcome reads like another one.
func TestEveryOutcomeOfARuleHasItsWords(t *testing.T) {
	t.Parallel()
	next := map[string]deadletter.RuleOutcome{}
	for _, o := range deadletter.RuleOutcomes {
		text := RuleAnswer{Rule: "a", Outcome: o}.next()
		if other, ok := next[text]; ok {
			t.Errorf("%s and %s are both %q", o, other, text)
		}
		next[text] = o
	}
}
