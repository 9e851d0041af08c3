package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestTheFactsThatAreAsked(t *testing.T) {
	t.Parallel()
	c := rulesTestCmd{
		Queue:    "sms",
		Header:   map[string]string{"a": "b"},
		Field:    map[string]string{"p.q": "1"},
		Attempts: 2,
	}
	body, err := c.body()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(
		body,
	); string(got) != `{"facts":{"queue":"sms","headers":{"a":"b"},"fields":{"p.q":["1"]},"attempts":2}}` {
		t.Error(string(got))
	}
}

// TestATestAsATable checks the table that `dlo rules test` prints for one letter. Each rule that
// did not match must have a row with the first clause that does not match. Control characters in
// the output must be escaped.
func TestATestAsATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printRuleTest(
		&Program{Stdout: &out},
		json.RawMessage(`{"rule":"b\u001b[31m","was":"a","decision":{"action":"retry","retry":2,"delay":"9.5s","earliest":"9s","latest":"11s","severity":"page","why":"retry 2 of 3 in 9.5s"},"steps":[
		{"rule":"a","matched":false,"applies":false,"clauses":[{"field":"reason","want":"rejected","fits":true},{"field":"queue","want":"billing.*","fits":false},{"field":"type","want":"T","fits":false}]},
		{"rule":"b\u001b[31m","matched":true,"applies":true,"clauses":[]},{"rule":"c","matched":true,"applies":false,"clauses":[]},{"rule":"default","matched":true,"applies":false,"clauses":[]}]}`),
	)
	want := `rule b\x1b[31m applies: retry 2 in 9.5s, between 9s and 11s
rule a applied last
NO  RULE       APPLIES  WHY NOT
1   a          no       queue is not billing.*
2   b\x1b[31m  yes      
3   c          no       would match, but comes later
    default    no       would match, but comes later
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}

	out.Reset()
	err = printRuleTest(
		&Program{Stdout: &out},
		json.RawMessage(
			`{"rule":"noise","decision":{"action":"discard","severity":"","why":"known noise"},"steps":[]}`,
		),
	)
	if err != nil || !strings.HasPrefix(out.String(), "rule noise applies: discarded at once, as known noise\n") {
		t.Error(out.String(), err)
	}

	noise := api.Rule{Discard: true}
	if retryWords(noise) != "discards" || whenWords(noise, false) != "every letter" {
		t.Error(retryWords(noise), whenWords(noise, false))
	}
}

// TestEveryOutcomeOfARuleHasItsLine checks that the output of `dlo rules test` differs for each
// outcome. If the code forgot an outcome, that outcome would have the line of another one.
func TestEveryOutcomeOfARuleHasItsLine(t *testing.T) {
	t.Parallel()
	lines := map[string]deadletter.RuleOutcome{}
	for _, o := range deadletter.RuleOutcomes {
		answer, err := json.Marshal(api.RuleTest{Rule: "a", Decision: api.RuleDecision{Action: o}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printRuleTest(&Program{Stdout: &out}, answer); err != nil {
			t.Fatal(err)
		}
		if other, ok := lines[out.String()]; ok {
			t.Errorf("%s and %s are both %q", o, other, out.String())
		}
		lines[out.String()] = o
	}
}

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

// TestWhatIfHasAColumnForEveryOutcome checks that the table has a column for each outcome, with the
// outcome as its heading.
func TestWhatIfHasAColumnForEveryOutcome(t *testing.T) {
	t.Parallel()
	for _, o := range deadletter.RuleOutcomes {
		var out, asked bytes.Buffer
		if err := printWhatIf(
			&Program{Stdout: &out, Stderr: &asked}, fmt.Appendf(nil, `{"rules":[{"rule":"a","letters":9,%q:7}]}`, o),
		); err != nil {
			t.Fatal(err)
		}
		head, row, _ := strings.Cut(out.String(), "\n")
		at := slices.Index(strings.Fields(head), strings.ToUpper(string(o)))
		if at < 0 || strings.Fields(row)[at] != "7" {
			t.Errorf("7 letters of %s are\n%s", o, out.String())
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
		"a\x1b", api.At(time.Now().Add(-2*time.Minute)),
	), "read from a\\x1b, loaded 2 min ago"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := sourcePhrase("", api.Time{}); got != "no rules file: these are the defaults" {
		t.Error(got)
	}
}
