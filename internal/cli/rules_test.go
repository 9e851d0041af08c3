package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestARuleOfEveryOutcomeHasItsWords checks that the description of a rule differs for each
// outcome. If the code forgot an outcome, a rule with that outcome would have the description of
// another rule.
func TestARuleOfEveryOutcomeHasItsWords(t *testing.T) {
	t.Parallel()
	of := map[deadletter.RuleOutcome]rules.Rule{
		deadletter.RuleRetry:   {Retry: &rules.Retry{Delays: []time.Duration{time.Second}}},
		deadletter.RuleDead:    {Retry: &rules.Retry{}},
		deadletter.RuleDiscard: {Discard: true},
	}
	words := func(name string, rule rules.Rule) string {
		text, err := textOf(name, rule)
		if err != nil {
			t.Error(err)
		}
		return text
	}
	said := map[string]deadletter.RuleOutcome{words("delays", of[""]): "nothing"}
	for _, o := range deadletter.RuleOutcomes {
		text, severity := words("delays", of[o]), words("severity", of[o])
		if other, ok := said[text]; ok {
			t.Errorf("rules of %s and of %s are both described as %q", o, other, text)
		}
		said[text] = o
		dies := o == deadletter.RuleRetry || o == deadletter.RuleDead
		if (severity == words("severity", of[""])) != dies {
			t.Errorf("a letter of %s can die: %v, and its severity is %q", o, dies, severity)
		}
	}
}

// TestRulesAsATable checks the table of rules. The last line is the default rule.
func TestRulesAsATable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"file": "a\u001b", "rules": [
			{"name": "billing", "severity": "page", "when": [{"field": "queue", "want": "b"}]},
			{"name": "noise", "discard": true}
		], "default": {"name": "default", "retry": {"delays": ["10s"]}, "severity": "digest"}}`)
	}))
	defer server.Close()
	var out bytes.Buffer
	err := Run(Program{
		Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdout: &out, Stderr: io.Discard,
	}, &struct{}{}, []string{"rules", "--server", server.URL})
	want := `read from a\x1b
RULE     WHEN         RETRIES                                  SEVERITY
billing  queue is b   same as default (rejected letters only)  page
noise    every letter  discards                                 none is dead
default  every letter  10s                                      digest
`
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if err != nil || words(out.String()) != words(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	loaded, _ := textOf("rules", api.Rules{File: "a", LoadedAt: time.Now().Add(-2 * time.Minute)})
	none, _ := textOf("rules", api.Rules{})
	if loaded != "read from a, loaded 2 min ago" || none != "no rules file: these are the defaults" {
		t.Error(loaded, none)
	}
}
