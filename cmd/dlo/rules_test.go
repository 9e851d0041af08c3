package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestRulesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p := serve(t, "", "brokers: [{url: 'amqp://127.0.0.1:1/'}]\ndefault: {retry: {delays: [10s, 100s]}}\n", nil).child
	ctx := t.Context()
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in:\n%s", w, text)
			}
		}
	}
	p.dlo(ctx, 0, exportLine(1, "sms", 2)+exportLine(2, "sms", 1), "letters", "import", "-")
	eventually(t, "the letters are classified", func() bool { return p.ask(`SELECT count(*) FROM letters WHERE state = 'dead'`) == 2 })
	list, _ := p.dlo(ctx, 0, "", "letters", "list", "-o", "jsonl")
	var l letterRow
	if err := json.Unmarshal([]byte(strings.SplitN(list, "\n", 2)[0]), &l); err != nil {
		t.Fatal(err)
	}

	out, _ := p.dlo(ctx, 0, "", "rules", "list")
	if !strings.HasPrefix(out, "read from ") || !strings.Contains(strings.SplitN(out, "\n", 2)[0], "dlo.yaml, loaded ") {
		t.Errorf("the first line does not say where the rules were read from:\n%s", out)
	}
	has(out, "NO", "default", "everything else", "10s 1m40s", "digest")
	out, _ = p.dlo(ctx, 0, "", "rules", "list", "-o", "jsonl")
	has(out, `"name":"default"`, `"delays":["10s","1m40s"]`)
	out, _ = p.dlo(ctx, 0, "", "rules", "list", "-o", "json")
	has(out, `"default": {`)
	out, _ = p.dlo(ctx, 0, "", "rules", "list", "--yaml")
	has(out, "default:\n  retry: {delays: [10s")

	out, _ = p.dlo(ctx, 0, "", "rules", "test", l.ID)
	has(out, "rule default applies: retry 1 in 10s", "APPLIES", "yes")
	out, _ = p.dlo(ctx, 0, "", "rules", "test", "--queue", "sms", "--reason", "rejected", "--attempts", "1", "--type", "a.B", "--error", "410", "--header", "a=b,c=d;e", "--header", "x=", "--field", "p.q=1", "--age", "2h")
	has(out, "rule default applies: retry 2 in 1m40s")
	out, _ = p.dlo(ctx, 0, "", "rules", "test", "--reason", "expired")
	has(out, "rule default applies: dead, severity digest: reason expired")
	out, _ = p.dlo(ctx, 0, "", "rules", "test", "--reason", "rejected", "-o", "jsonl")
	has(out, `"action":"retry"`)
	out, errs := p.dlo(ctx, 0, "", "rules", "test", "-q", "state:dead", "-n", "1")
	has(out, "RULE     LETTERS  RETRY  DEAD  DISCARD\ndefault  1        1      0     0")
	has(errs, "looked at 1 of 2 letters, newest first")

	for _, args := range [][]string{{}, {l.ID, "--queue", "sms"}, {l.ID, "-q", "state:dead"}, {"-q", "state:deaf"}, {"-q", "state:dead", "-n", "501"}, {"nonsense"}, {"--attempts", "-1"}} {
		p.dlo(ctx, 2, "", append([]string{"rules", "test"}, args...)...)
	}
	p.dlo(ctx, 1, "", "rules", "test", "01a1f82e-3420-7001-8000-000000000999")
}

func TestTheFactsThatAreAsked(t *testing.T) {
	t.Parallel()
	c := rulesTestCmd{Queue: "sms", Header: map[string]string{"a": "b"}, Field: map[string]string{"p.q": "1"}, Attempts: 2}
	body, err := c.body()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(body); string(got) != `{"facts":{"attempts":2,"fields":{"p.q":["1"]},"headers":{"a":"b"},"queue":"sms"}}` {
		t.Error(string(got))
	}
}

// TestATestAsATable: every rule has its line, and the first clause that does not fit; nothing of it acts on a terminal.
func TestATestAsATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printRuleTest(&program{stdout: &out}, json.RawMessage(`{"rule":"b\u001b[31m","was":"a","decision":{"action":"retry","retry":2,"delay":"9.5s","earliest":"9s","latest":"11s","severity":"page","why":"retry 2 of 3 in 9.5s"},"steps":[
		{"rule":"a","matched":false,"applies":false,"clauses":[{"field":"reason","want":"rejected","fits":true},{"field":"queue","want":"billing.*","fits":false},{"field":"type","want":"T","fits":false}]},
		{"rule":"b\u001b[31m","matched":true,"applies":true,"clauses":[]},{"rule":"c","matched":true,"applies":false,"clauses":[]},{"rule":"default","matched":true,"applies":false,"clauses":[]}]}`))
	want := `rule b\x1b[31m applies: retry 2 in 9.5s, between 9s and 11s
rule a decided about it last
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
	err = printRuleTest(&program{stdout: &out}, json.RawMessage(`{"rule":"noise","decision":{"action":"discard","severity":"","why":"known noise"},"steps":[]}`))
	if err != nil || !strings.HasPrefix(out.String(), "rule noise applies: discarded at once, as known noise\n") {
		t.Error(out.String(), err)
	}

	list := ruleRow{Discard: true}
	if list.retries() != "discards" || list.when(false) != "every letter" {
		t.Error(list.retries(), list.when(false))
	}
}

// TestRulesAsATable: a rule without a severity of its own shows that of the default, and as what it is.
func TestRulesAsATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printRules(&out, []ruleRow{{Name: "billing", Severity: "page"}, {Name: "email"}, {Name: "noise", Discard: true}, {Name: "default", Severity: "digest"}})
	want := `NO  RULE     WHEN             RETRIES                             SEVERITY
1   billing  every letter     as the default, of refused letters  page
2   email    every letter     as the default, of refused letters  digest (default)
3   noise    every letter     discards                            none is dead
    default  everything else  as the default, of refused letters  digest
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	if got := (ruleRow{}).severity(""); got != "" {
		t.Errorf("%q: what nobody knows is said", got)
	}
	if got, want := source("a\x1b", time.Now().Add(-2*time.Minute)), "read from a\\x1b, loaded 2 min ago"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := source("", time.Time{}); got != "there is no file of rules: these are the defaults" {
		t.Error(got)
	}
}
