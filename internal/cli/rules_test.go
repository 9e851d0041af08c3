package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestARuleOfEveryOutcomeHasItsWords checks that the description of a rule differs for each
// outcome. If the code forgot an outcome, a rule with that outcome would have the description of
// another rule.
func TestARuleOfEveryOutcomeHasItsWords(t *testing.T) {
	t.Parallel()
	rules := map[deadletter.RuleOutcome]api.Rule{
		deadletter.RuleRetry:   {Retry: &api.Retry{Delays: []string{"1s"}}},
		deadletter.RuleDead:    {Retry: &api.Retry{}},
		deadletter.RuleDiscard: {Discard: true},
	}
	of := map[string]deadletter.RuleOutcome{retryWords(rules[""]): "nothing"}
	for _, o := range deadletter.RuleOutcomes {
		text, severity := retryWords(rules[o]), severityWords(rules[o], deadletter.SeverityDigest)
		if other, ok := of[text]; ok {
			t.Errorf("rules of %s and of %s are both described as %q", o, other, text)
		}
		of[text] = o
		dies := o == deadletter.RuleRetry || o == deadletter.RuleDead
		if (severity == severityWords(rules[""], deadletter.SeverityDigest)) != dies {
			t.Errorf("a letter of %s can die: %v, and its severity is %q", o, dies, severity)
		}
	}
}

// TestRulesAsATable checks the table of rules. A rule without its own severity must show the
// severity of the default rule, followed by "(default)".
func TestRulesAsATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printRules(&out, []api.Rule{
		{Name: "billing", Severity: "page"},
		{Name: "email"},
		{Name: "noise", Discard: true},
		{Name: "default", Severity: "digest"},
	})
	want := `NO  RULE     WHEN             RETRIES                                  SEVERITY
1   billing  every letter     same as default (rejected letters only)  page
2   email    every letter     same as default (rejected letters only)  digest (default)
3   noise    every letter     discards                                 none is dead
    default  everything else  same as default (rejected letters only)  digest
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	if got := severityWords(api.Rule{}, ""); got != "" {
		t.Errorf("%q: what nobody knows is said", got)
	}
	if got, want := sourcePhrase(
		"a\x1b", time.Now().Add(-2*time.Minute),
	), "read from a\\x1b, loaded 2 min ago"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := sourcePhrase("", time.Time{}); got != "no rules file: these are the defaults" {
		t.Error(got)
	}
}
