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

func TestMistakesInRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []place
	}{
		{"none", "[{name: a, match: {queue: a}}, {name: b}]", nil},
		{"no rules", "", nil},
		{"a text", "billing", []place{{1, 8, "give a list"}}},
		{"a list of texts", "[a]", []place{{1, 9, "rules: give keys with values"}, {1, 9, "a rule needs a name"}}},
		{"without a name", "[{match: {queue: a}}]", []place{{1, 9, "a rule needs a name"}}},
		{"an empty name", "[{name: ' '}]", []place{{1, 16, "a rule needs a name"}}},
		{
			"a name twice",
			"[{name: a, match: {queue: a}}, {name: a, match: {queue: b}}]",
			[]place{{2, 8, "another rule is named a already, in line 1"}},
		},
		{"the name of the default", "[{name: default}]", []place{{1, 16, "the name default is taken"}}},
		{
			"the name of dlo's own rule",
			"[{name: dlo.try}]",
			[]place{{1, 16, "the name dlo.try is taken by dlo's own rule"}},
		},
		{"a name that nobody sees", `[{name: "\u200b"}]`, []place{{1, 16, "visible characters only"}}},
		{"a long name", "[{name: " + strings.Repeat("a", 101) + "}]", []place{{1, 16, "at most 100 bytes"}}},
		{
			"unknown keys",
			"[{name: a, mach: {}}, {name: b, match: {queues: a}}]",
			[]place{
				{
					1, 19,
					`there is no key "mach" in rules; the keys are dead, discard, in_doubt, match, mirror_x_death, name, rate, retry, watch`,
				},
				{2, 19, `there is no key "queues" in rules.match; the keys are age, attempts, broker,`},
			},
		},
		{
			"shadowed",
			"[{name: a, match: {queue: a*}}, {name: b, match: {queue: abc, reason: expired}}]",
			[]place{{2, 8, "never reached: the rule in line 1 matches all that it matches"}},
		},
		{"behind a rule for all", "[{name: a}, {name: b, match: {queue: a}}]", []place{{2, 8, "never reached"}}},
		{"not shadowed", "[{name: a, match: {queue: [a, b]}}, {name: b, match: {queue: [a, c]}}]", nil},
		{
			"a rule that is not read shadows none",
			"[{name: a, match: {queeu: a}}, {name: b, match: {queue: a}}]",
			[]place{{1, 27, "there is no key"}},
		},
		{
			"a rule that never matches shadows none, and is said once",
			"[{name: a, match: {attempts: '<0'}}, {name: b, match: {attempts: '<0'}}]",
			[]place{{1, 37, "can never match: no number of attempts is <0"}, {2, 29, "can never match"}},
		},
		{"no schema, and any type", "[{name: a, match: {schema: none, type: '*'}}]", nil},
		{"another schema", "[{name: a, match: {schema: acme}}]", []place{{1, 35, `"acme" is not one of none`}}},
		{"one of two", "[{name: a, match: {attempts: ['>5', '<3']}}]", nil},
		{"no age", "[{name: a, match: {age: '<0s'}}]", []place{{1, 32, "can never match: no age is <0s"}}},
		{"an exact age", "[{name: a, match: {age: 1h}}]", []place{{1, 32, "an age is never exact"}}},
		{
			"no comparison",
			"[{name: a, match: {age: '>soon', attempts: '>x'}}]",
			[]place{{1, 32, `"soon" is not a duration`}, {1, 51, `"x" is not a number of attempts`}},
		},
		{"an empty list", "[{name: a, match: {queue: []}}]", []place{{1, 34, "an empty list fits no letter"}}},
		{
			"nothing",
			"[{name: a, match: {queue: }}]",
			[]place{{1, 34, "a text, in which * stands for any text, is wanted here"}},
		},
		{
			"a star without quotes",
			"[{name: a, match: {error: x}}, {name: b, match: {queue: *-dlq, error: x}}]",
			[]place{{2, 26, "there is no such anchor; a text that begins with a star needs quotes"}},
		},
		{
			"no clauses",
			"[{name: a, match: }, {name: b, match: {queue: b}}]",
			[]place{{1, 26, "a rule for every letter has no match at all"}},
		},
		{
			"discarding everything",
			"[{name: a, match: {queue: a}}, {name: b, discard: true}]",
			[]place{{2, 20, "this would discard every letter"}},
		},
		{"discarding everything, and meaning it", "[{name: a, match: {queue: '*'}, discard: true}]", nil},
		{"delays of nothing", "[{name: a, retry: {delays: }}]", []place{{1, 35, "[] means no retry"}}},
		{
			"a header alone",
			"[{name: a, match: {header: x-source, field: {}}}]",
			[]place{{1, 35, `for example {x-source: "*"}`}, {1, 52, "for example {customer.tier: gold}"}},
		},
		{"a header twice", "[{name: a, match: {header: {x: a, x: b}}}]", []place{{1, 42, "x is listed twice"}}},
		{
			"both kinds of delays",
			"[{name: a, retry: {delays: [1s], first: 1s, attempts: 3}}]",
			[]place{{1, 62, "attempts cannot be used together with delays"}},
		},
		{"neither", "[{name: a, retry: {jitter: 0.5}}]", []place{{1, 26, "give delays, or first and attempts"}}},
		{"half of one", "[{name: a, retry: {first: 1s}}]", []place{{1, 26, "needs first and attempts"}}},
		{
			"a max below first",
			"[{name: a, retry: {first: 1m, attempts: 3, max: 1s}}]",
			[]place{{1, 56, "max 1s is below first 1m0s"}},
		},
		{
			"delays over the maximum",
			"[{name: a, retry: {delays: [1s, 366d]}}, {name: b, match: {queue: b}, retry: {first: 366d, max: 8761h, attempts: 1}}]",
			[]place{{1, 40, "a duration from 0s to 8760h0m0s"}, {2, 45, "a duration from"}, {2, 56, "a duration from"}},
		},
		{
			"factor and jitter",
			"[{name: a, retry: {first: 1s, attempts: 3, factor: 0.5, jitter: 1.1}}]",
			[]place{{1, 59, "a number from 1 to 1000"}, {1, 72, "a number from 0 to 1"}},
		},
		{
			"attempts without end",
			"[{name: a, retry: {first: 1s, attempts: 10001}}]",
			[]place{{1, 48, "a whole number from 0 to 10000"}},
		},
		{
			"a waiter that nobody knows",
			"[{name: a, retry: {delays: [50d], waiter: queue}}]",
			[]place{{1, 50, `unknown waiter "queue"; it is one of store, wait-queue, message-ttl, delayed-exchange`}},
		},
		{
			"no waiter",
			"[{name: a, retry: {delays: [50d], waiter: }}]",
			[]place{{1, 50, "a waiter such as store is wanted here"}},
		},
		{
			"a waiter alone",
			"[{name: a, retry: {waiter: wait-queue}}]",
			[]place{{1, 26, "give delays, or first and attempts"}},
		},
		{
			"discard and retry",
			"[{name: a, discard: true, retry: {delays: []}}]",
			[]place{{1, 28, "either discard or retry"}},
		},
		{
			"a channel",
			"[{name: a, dead: {notify: [oncall]}}]",
			[]place{{1, 35, `there is no channel "oncall": define it under channels`}},
		},
		{
			"groups without a name",
			"[{name: a, dead: {group: ' '}}, {name: b, match: {queue: b}, dead: {group: " + strings.Repeat("x", 101) +
				"}}]",
			[]place{{1, 33, "a group needs a name"}, {2, 44, "at most 100 bytes"}},
		},
		{
			"a group that nobody can read",
			`[{name: a, dead: {group: "a\u202e"}}]`,
			[]place{{1, 33, "visible characters only"}},
		},
		{
			"settings",
			"[{name: a, in_doubt: guess, watch: 1ms, rate: -1}]",
			[]place{
				{1, 29, `"guess" is not one of republish, hold`},
				{1, 43, "a duration from 1s"},
				{1, 54, "a number from 0"},
			},
		},
		{
			"a mirror that nobody sees",
			"[{name: a, mirror_x_death: true, retry: {delays: [1s], waiter: message-ttl}}]",
			[]place{{1, 35, "waiter message-ttl: the broker replaces the mirrored x-death with its own"}},
		},
		{
			"perhaps a mirror",
			"[{name: a, mirror_x_death: perhaps}]",
			[]place{{1, 35, `give true or false, not "perhaps"`}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "rules: "+strings.Replace(c.text, "}, {", "},\n{", 1))
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			mistakes(t, err, c.want)
		})
	}
	_, err := load(t, "default: {retry: {delays: [1s], max: 1s}, dead: {notify: [a, b]}}")
	mistakes(t, err, []place{
		{1, 38, "max cannot be used together with delays"},
		{1, 59, `no channel "a"`},
		{1, 62, `no channel "b"`},
	})
}

// TestMistakesBehindAWaiter checks two mistakes of a rule whose letters wait in the broker. A
// letter can wait there for at most 49 days. All letters in a wait queue have the same delay, so
// jitter is a mistake.
func TestMistakesBehindAWaiter(t *testing.T) {
	t.Parallel()
	queues := "1s" // as many delays as one back-off may have
	for n := 2; n <= 20; n++ {
		queues += fmt.Sprintf(", %ds", n)
	}
	for _, c := range []struct {
		name, text string
		want       []place
	}{
		{"as long as the broker can", "{delays: [0s, 1m, 49d], waiter: message-ttl, jitter: 1}", nil},
		{"as long as the store can", "{delays: [50d, 365d], waiter: store}", nil},
		{"growing up to max", "{first: 1d, attempts: 100, factor: 3, max: 49d, waiter: delayed-exchange}", nil},
		{"growing, and not above it", "{first: 1d, attempts: 6, waiter: wait-queue}", nil},
		{
			"too long",
			"{delays: [1m, 50d, 1177h], waiter: message-ttl}",
			[]place{
				{1, 32, "waiter message-ttl: a delay is at most 49d; use a shorter one, or waiter: store"},
				{1, 37, "at most 49d"},
			},
		},
		{
			"too long, behind the waiter",
			"{waiter: delayed-exchange, delays: [50d]}",
			[]place{{1, 54, "waiter delayed-exchange: a delay is at most 49d"}},
		},
		{
			"too long at first, and its max",
			"{first: 50d, max: 60d, attempts: 3, waiter: message-ttl}",
			[]place{{1, 26, "at most 49d"}, {1, 36, "at most 49d"}},
		},
		{
			"growing above it",
			"{waiter: message-ttl, attempts: 8, first: 1d}",
			[]place{
				{
					1, 50,
					"waiter message-ttl: a delay is at most 49d, and retry 7 waits 1536h0m0s; set max, or use waiter: store",
				},
			},
		},
		{
			"growing and drawn, and not above it",
			"{first: 1.5s, attempts: 3, factor: 1000, jitter: 1, waiter: message-ttl}", nil,
		},
		{
			"growing above a year",
			"{first: 1m, attempts: 9000, factor: 1000, waiter: message-ttl}",
			[]place{{1, 40, "retry 3 waits 8760h0m0s; set max"}},
		},
		{
			"a factor that nobody can read",
			"{first: 1d, attempts: 100, factor: x, waiter: message-ttl}",
			[]place{{1, 53, "a number from 1 to 1000"}},
		},
		{
			"delays beside a first one",
			"{first: 50d, delays: [51d], waiter: message-ttl}",
			[]place{
				{1, 26, "first cannot be used together with delays"},
				{1, 26, "at most 49d"},
				{1, 40, "at most 49d"},
			},
		},
		{
			"jitter in a wait queue",
			"{jitter: 0.1, delays: [1m, 50d], waiter: wait-queue}",
			[]place{
				{1, 27, "one delay for all its letters; use waiter: message-ttl, or jitter: 0"},
				{1, 45, "at most 49d"},
			},
		},
		{"no jitter in a wait queue", "{delays: [1m], jitter: 0, waiter: wait-queue}", nil},
		{"as many wait queues as there may be", "{delays: [" + queues + ", 1s, 20s], waiter: wait-queue}", nil},
		{
			"one wait queue more",
			"{waiter: wait-queue, delays: [" + queues + ", 1m]}",
			[]place{
				{
					1, 47,
					"21 different delays need 21 queues on the broker, and at most 20 are allowed; use fewer delays, or waiter: message-ttl",
				},
			},
		},
		{"many delays in one queue", "{delays: [" + queues + ", 1m], waiter: message-ttl}", nil},
		{"many retries in few wait queues", "{first: 1s, attempts: 10000, max: 1h, waiter: wait-queue}", nil},
		{
			"many wait queues that grow",
			"{first: 1s, attempts: 10000, factor: 1.1, max: 1d, waiter: wait-queue}",
			[]place{{1, 40, "121 different delays need"}},
		},
		{
			"too many, too long, and jitter",
			"{first: 1ms, attempts: 40, jitter: 1, waiter: wait-queue}",
			[]place{{1, 41, "retry 33 waits 1193h2m47s"}, {1, 41, "33 different delays"}, {1, 53, "one delay for all"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, file := range []string{"default: {retry: %s}", "rules: [ {retry: %s, name: a}]"} {
				_, err := load(t, fmt.Sprintf(file, c.text))
				if c.want != nil {
					mistakes(t, err, c.want)
				} else if err != nil {
					t.Error(err)
				}
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
