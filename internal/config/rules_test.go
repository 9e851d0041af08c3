package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEverySettingOfARule(t *testing.T) {
	t.Parallel()
	before := time.Now()
	got, err := load(t, `
rules:
  - name: billing
    match:
      {queue: "billing.*", vhost: /, broker: main, exchange: [shop, ""], key: "order.*", reason: rejected, type: acme.*, error: "*timeout*",
       header: {x-tenant: 48213, x-source: ["a*", b]}, field: {customer.tier: gold}, attempts: [">=3", 0], age: "<2d"}
    retry: {attempts: 5, first: 10s, factor: 3, max: 30m, jitter: 0.2, waiter: store}
    dead: {severity: page, notify: [], group: money}
    in_doubt: hold
    watch: 30m
    rate: 10
    mirror_x_death: true
  - {name: no schema, match: {schema: none}, retry: {first: 1m, attempts: 2}}
  - {name: never, match: {queue: a}, retry: {delays: []}}
  - {name: slowly, match: {queue: b}, retry: {delays: [1m, 365d], jitter: 1}, discard: false}
  - {name: noise, match: {queue: c}, discard: true, mirror_x_death: false}
  - {name: none, match: {queue: d}, retry: {attempts: 0, first: 0s}}
  - {name: a queue for each delay, match: {queue: e}, retry: {waiter: wait-queue, delays: [1m, 49d]}}
  - {name: a delay for each letter, match: {queue: f}, retry: {first: 1m, attempts: 2, jitter: 0.5, waiter: message-ttl}}
  - {name: a plugin, match: {queue: g}, retry: {delays: [1m], waiter: delayed-exchange}}
  - name: all the rest
default: {retry: {attempts: 3, first: 1m, factor: 1}}
`)
	if err != nil {
		t.Fatal(err)
	}
	rate := 10.0
	store := rules.WaiterStore
	want := []rules.Rule{
		{
			Name: "billing",
			Match: rules.Match{
				Queue:    rules.Patterns{"billing.*"},
				VHost:    rules.Patterns{"/"},
				Broker:   rules.Patterns{"main"},
				Exchange: rules.Patterns{"shop", ""},
				Key:      rules.Patterns{"order.*"},
				Reason:   rules.Patterns{"rejected"},
				Type:     rules.Patterns{"acme.*"},
				Error:    rules.Patterns{"*timeout*"},
				Header: []rules.Named{
					{Name: "x-tenant", Want: rules.Patterns{"48213"}},
					{Name: "x-source", Want: rules.Patterns{"a*", "b"}},
				},
				Field:    []rules.Named{{Name: "customer.tier", Want: rules.Patterns{"gold"}}},
				Attempts: rules.Comparisons{{Op: ">=", Than: 3, Text: ">=3"}, {Op: "=", Text: "0"}},
				Age:      rules.Comparisons{{Op: "<", Than: int64(48 * time.Hour), Text: "<2d"}},
			},
			Retry: &rules.Retry{
				Attempts: 5, First: 10 * time.Second, Factor: 3, Max: 30 * time.Minute, Jitter: 0.2, Waiter: store,
			},
			Severity:     deadletter.SeverityPage,
			Group:        "money",
			InDoubt:      "hold",
			Watch:        30 * time.Minute,
			Rate:         &rate,
			MirrorXDeath: true,
		},
		{
			Name:  "no schema",
			Match: rules.Match{NoSchema: true},
			Retry: &rules.Retry{Attempts: 2, First: time.Minute, Factor: 2, Waiter: store},
		},
		{Name: "never", Match: rules.Match{Queue: rules.Patterns{"a"}}, Retry: &rules.Retry{Waiter: store}},
		{
			Name:  "slowly",
			Match: rules.Match{Queue: rules.Patterns{"b"}},
			Retry: &rules.Retry{Delays: []time.Duration{time.Minute, rules.MaxDelay}, Jitter: 1, Waiter: store},
		},
		{Name: "noise", Match: rules.Match{Queue: rules.Patterns{"c"}}, Discard: true},
		{Name: "none", Match: rules.Match{Queue: rules.Patterns{"d"}}, Retry: &rules.Retry{Factor: 2, Waiter: store}},
		{
			Name:  "a queue for each delay",
			Match: rules.Match{Queue: rules.Patterns{"e"}},
			Retry: &rules.Retry{Delays: []time.Duration{time.Minute, rules.MaxWait}, Waiter: rules.WaiterQueue},
		},
		{
			Name:  "a delay for each letter",
			Match: rules.Match{Queue: rules.Patterns{"f"}},
			Retry: &rules.Retry{Attempts: 2, First: time.Minute, Factor: 2, Jitter: 0.5, Waiter: rules.WaiterTTL},
		},
		{
			Name:  "a plugin",
			Match: rules.Match{Queue: rules.Patterns{"g"}},
			Retry: &rules.Retry{Delays: []time.Duration{time.Minute}, Waiter: rules.WaiterDelayed},
		},
		{Name: "all the rest"},
	}
	if diff := cmp.Diff(
		want, got.Rules.Rules, cmpopts.IgnoreFields(rules.Rule{}, "YAML"), cmpopts.EquateEmpty(),
	); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&rules.Retry{
		Attempts: 3, First: time.Minute, Factor: 1, Waiter: store,
	}, got.Rules.Default.Retry, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(got.Rules.File, "dlo.yaml") || got.Rules.Loaded.Before(before) ||
		got.Rules.Loaded.After(time.Now()) {
		t.Errorf("%s, %s", got.Rules.File, got.Rules.Loaded)
	}
}

// TestAWaiterOfTheDefault checks a default rule that sets only where letters wait for their retry.
// The rule must keep the default delays.
func TestAWaiterOfTheDefault(t *testing.T) {
	t.Parallel()
	got, err := load(t, "default: {retry: {waiter: wait-queue}}")
	want := &rules.Retry{
		Delays: []time.Duration{10 * time.Second, 100 * time.Second, 1000 * time.Second},
		Waiter: rules.WaiterQueue,
	}
	if diff := cmp.Diff(want, got.Rules.Default.Retry); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestTheTextOfARule checks that the text of a rule needs nothing else of the file, and that it has
// the comments inside the rule.
func TestTheTextOfARule(t *testing.T) {
	t.Parallel()
	const first = "name: a # the first\n# its queue\nmatch: {queue: \"a # b\"}"
	block := "# a file\nrules:\n  # above a\n  - name: a # the first\n\n    # its queue\n    match: {queue: \"a # b\"}\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a block", block + "# the default\ndefault: {}\n...\n# over\n", []string{first}},
		{"other line ends", strings.ReplaceAll(block, "\n", "\r\n"), []string{first}},
		{
			"a dash by itself",
			"rules:\n-\n  name: b\n  match:\n      error: |-\n        # no comment\n  # the end of b\nhosts: []",
			[]string{"name: b\nmatch:\n  error: |-\n    # no comment\n  # the end of b"},
		},
		{
			"in brackets",
			"{rules: [ {name: it's, match: {queue: \"a,}\", error: b:'c}}, # one, {\n" +
				"  {\"name\":'d', match: {queue: [x,y]}, # }\n   discard: true} , {name: '\u20ac'}], hosts: []}",
			[]string{
				"{name: it's, match: {queue: \"a,}\", error: 'b:''c'}} # one, {",
				"{\"name\": 'd', match: {queue: [x, y]}, discard: true}", "{name: '\u20ac'}",
			},
		},
		{
			"anchors",
			"rules: [{name: a, match: &m {queue: ! 'x}'}, retry: &r {delays: []}}, &b {name: b, match: {queue: &q \"y]\"}, retry: *r}]",
			[]string{
				"{name: a, match: {queue: 'x}'}, retry: {delays: []}}",
				"{name: b, match: {queue: \"y]\"}, retry: {delays: []}}",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := load(t, c.text)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, r := range got.Rules.Rules {
				texts = append(texts, r.YAML)
			}
			if diff := cmp.Diff(c.want, texts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheManualOfRulesHolds checks that the manual agrees with the program. Every YAML example in
// the manual must be valid, and every mistake must be reported as the manual says.
func TestTheManualOfRulesHolds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllSubmatch(text, -1)
	examples, wrong := 0, ""
	for _, b := range blocks {
		switch kind, block := string(b[1]), string(b[2]); kind {
		case "yaml":
			examples++
			if _, err := load(t, block); err != nil {
				t.Errorf("%v in\n%s", err, block)
			}
		case "mistake":
			wrong = block
		case "answer":
			_, err := load(t, wrong)
			if err == nil {
				t.Fatalf("no mistake in\n%s", wrong)
			}
			got := regexp.MustCompile(`(?m)^.*/dlo\.yaml`).ReplaceAllString(err.Error(), "dlo.yaml")
			if got+"\n" != block {
				t.Errorf("got\n%s\nwant\n%s", got, block)
			}
		}
	}
	if examples < 8 || wrong == "" {
		t.Errorf("%d examples in the manual", examples)
	}
	// Every key of a rule must have a row in a table of the manual. The keys "name" and "match"
	// have sections instead. The keys "retry" and "dead" have sections too, and each key below them
	// has a row.
	for rule, prefix := range map[string]string{
		"{name: a, match: {no_such: b}}": "", "{name: a, no_such: b}": "",
		"{name: a, retry: {no_such: b}}": "", "{name: a, dead: {no_such: b}}": "dead.",
	} {
		_, err := load(t, "rules: ["+rule+"]")
		_, names, ok := strings.Cut(err.Error(), "the keys are ")
		if !ok {
			t.Fatalf("the error names no keys: %v", err)
		}
		for key := range strings.SplitSeq(names, ", ") {
			if slices.Contains([]string{"name", "match", "retry", "dead"}, key) {
				continue
			}
			if row := "\n| " + prefix + key + " |"; !strings.Contains(string(text), row) {
				t.Errorf("%s%s is in no table of the manual", prefix, key)
			}
		}
	}
}

// TestTheManualsNameEveryWaiter checks that rules.md names each waiter in its table of keys, and in
// the list below that table. Each waiter must also have a row in a table of retries.md.
func TestTheManualsNameEveryWaiter(t *testing.T) {
	t.Parallel()
	for manual, lines := range map[string][]string{
		"rules.md":   {"| waiter | .*%s", "- `%s`: "},
		"retries.md": {"| `%s` | "},
	} {
		text, err := os.ReadFile("../../docs/" + manual)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range rules.Waiters {
			for _, line := range lines {
				line = fmt.Sprintf(line, w)
				if !regexp.MustCompile(`(?m)^` + strings.ReplaceAll(line, "|", `\|`)).Match(text) {
					t.Errorf("%s has no line %s", manual, line)
				}
			}
		}
	}
}

// TestEveryOutcomeCanBeWritten checks that a rule in the file can have each outcome. A letter that
// matches the rule must get this outcome.
func TestEveryOutcomeCanBeWritten(t *testing.T) {
	t.Parallel()
	texts := map[deadletter.RuleOutcome]string{
		deadletter.RuleRetry:   "retry: {delays: [1s]}",
		deadletter.RuleDead:    "retry: {delays: []}",
		deadletter.RuleDiscard: "discard: true",
	}
	for _, o := range deadletter.RuleOutcomes {
		c, err := load(t, "rules: [{name: a, match: {queue: sms}, "+texts[o]+"}]")
		if err != nil {
			t.Fatal(err)
		}
		if d := c.Rules.Decide(rules.Facts{Queue: "sms", Reason: "rejected"}); d.Outcome != o || texts[o] == "" {
			t.Errorf("the rule {%s} has a letter become %s, want %s", texts[o], d.Outcome, o)
		}
	}
}

// TestTheRulesOfTheExample checks that the rules and channels in the comments of the example file
// are valid.
func TestTheRulesOfTheExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/examples/dlo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\nrules: []")
	list, _, _ = strings.Cut(list, "\ndefault:")
	_, channels, _ := strings.Cut(string(text), "\nchannels: {}")
	channels, _, _ = strings.Cut(channels, "\nquiet_hours:")
	channels = regexp.MustCompile(`/run/secrets/\w+`).ReplaceAllString(channels, file(t, "https://example.com"))
	got, err := load(
		t, "rules:"+strings.ReplaceAll(list, "\n#", "\n")+"\nchannels:"+strings.ReplaceAll(channels, "\n#", "\n"),
	)
	if err != nil || len(got.Rules.Rules) != 3 || got.Rules.Rules[0].Retry.Count() != 5 ||
		got.Rules.Rules[1].Group != "schema" || !got.Rules.Rules[2].Discard {
		t.Errorf("%v: %+v", err, got.Rules.Rules)
	}
	for _, kind := range kinds() {
		if !slices.ContainsFunc(
			got.Channels, func(c config.Channel) bool { return !reflect.ValueOf(c).FieldByIndex(kind.Index).IsNil() },
		) {
			t.Errorf("docs/examples/dlo.yaml has no channel of the kind %s", kind.Name)
		}
	}
}

// TestTheRuleOfAPlanIsValid checks the rule that a plan proposes. It must be possible to paste the
// rule into the configuration, for queues with any names.
func TestTheRuleOfAPlanIsValid(t *testing.T) {
	t.Parallel()
	p := topology.Plan{Broker: "main", VHost: "/", Drops: []topology.Drop{{Queue: `a"b: {c}, #d`}, {Queue: "metrics"}}}
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte(p.DropRule()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, noEnv)
	if err != nil || len(cfg.Rules.Rules) != 1 || !cfg.Rules.Rules[0].Discard {
		t.Fatalf("%v\n%s", err, p.DropRule())
	}
	for _, d := range p.Drops {
		if got := cfg.Rules.Decide(rules.Facts{
			Broker: "main", VHost: "/", Queue: d.Queue, Reason: "expired",
		}); got.Outcome != deadletter.RuleDiscard {
			t.Errorf("%s: %+v", d.Queue, got)
		}
	}
}

// TestDollarSignsStay copies a rule with dollar signs out of dlo and into a file, or into the text
// of rules to try. It must stay what it is.
func TestDollarSignsStay(t *testing.T) {
	t.Parallel()
	home := env(map[string]string{"HOME": "/root$$"})
	want := rules.Patterns{"a$b", "c$$d", "${HOME}", "/root$$"}
	text := "[{name: 'a$$$${HOME}', match: {queue: ['a$b', 'c$$$$d', '$${HOME}', '${HOME}']}}]"
	for range 2 {
		c, err := config.Parse("", "rules: "+text, home)
		if err != nil || !slices.Equal(c.Rules.Rules[0].Match.Queue, want) {
			t.Fatalf("%v\n%s", err, text)
		}
		text = "[" + c.Rules.Rules[0].YAML + "]"
	}
	pasted, err := config.ReadRules(text, &rules.Set{})
	if err != nil || pasted.Rules.Rules[0].Name != "a$${HOME}" || !slices.Equal(pasted.Rules.Rules[0].Match.Queue, want) {
		t.Errorf("to try: %v\n%s", err, text)
	}
}

// TestNoFileTakesMinutes reads files whose aliases expand to very much, and rules that share a list
// of queues. Each must be accepted or refused soon.
func TestNoFileTakesMinutes(t *testing.T) {
	t.Parallel()
	shared := func(count, queues int) string {
		text := "rules:\n"
		for i := range count {
			list := "*q"
			if i == 0 {
				list = "&q [" + strings.Repeat("q, ", queues) + "q]"
			}
			text += fmt.Sprintf("- {name: r%d, match: {queue: %s, vhost: v%[1]d}}\n", i, list)
		}
		return text
	}
	laughs := "&a0 [x, x, x, x, x, x, x, x, x, x]"
	for i := 1; i < 20; i++ {
		laughs = fmt.Sprintf("&a%d [%s%s]", i, laughs, strings.Repeat(fmt.Sprintf(", *a%d", i-1), 9))
	}
	const tooLong = "with its aliases written out, this text is too long"
	for name, c := range map[string]struct{ text, want string }{
		"3000 rules share 3000 queues": {shared(3000, 3000), tooLong}, "2000 rules share 300": {shared(2000, 300), ""},
		"ten to the twentieth": {"hosts: " + laughs, tooLong}, "a list in itself": {"hosts: &a [*a]", tooLong},
		"a long file without aliases": {"hosts: [" + strings.Repeat("long.example.com, ", 300_000) + "]", ""},
	} {
		begun := time.Now()
		_, err := load(t, c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %.200v", name, err)
		}
		if took := time.Since(begun); took > 20*time.Second { // far below minutes, even on a slow machine
			t.Errorf("%s took %s", name, took)
		}
	}
}
