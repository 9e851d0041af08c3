package web

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

// TestTheYAMLCanBePasted checks that the YAML of the rules has the same meaning, wherever in a file
// it is pasted.
func TestTheYAMLCanBePasted(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"as an entry of a list":     "- name: a\n  match:\n    queue: x\n  retry: {attempts: 2}",
		"indented, from its dash":   "- name: a\n      match:\n        queue: x\n      retry: {attempts: 2}\n",
		"from its first key":        "name: a\n    match:\n      queue: x\n    retry: {attempts: 2}\n\n",
		"at the margin":             "name: a\nmatch:\n  queue: x\nretry: {attempts: 2}",
		"in one line":               "{name: a, match: {queue: x}, retry: {attempts: 2}}",
		"flow over lines":           "{name: a, match: {queue: x},\n   retry: {attempts: 2}}",
		"a block of keys first":     "match:\n  queue: x\nname: a\nretry: {attempts: 2}",
		"a block first, indented":   "  match:\n      queue: x\n  name: a\n  retry: {attempts: 2}",
		"from its line on":          "  -   name: a\n      match: {queue: x}\n# left\n      retry:\n        attempts: 2\n",
		"a dash by itself":          "  -\n    name: a\n    match: {queue: x}\n    retry: {attempts: 2}",
		"blank lines and a comment": "\nname: a # the first\n\n  match: {queue: x}\n\n  retry: {attempts: 2}",
	} {
		set := &rules.Set{
			Rules:   []rules.Rule{{Name: "a", YAML: text}, {Name: "b", YAML: text}},
			Default: rules.Rule{YAML: "retry:\n  delays: [10s]"},
		}
		whole := allYAML(set)
		var got struct {
			Rules []struct {
				Name  string
				Match struct{ Queue string }
				Retry struct{ Attempts int }
			}
			Default struct{ Retry struct{ Delays []string } }
		}
		d := yaml.NewDecoder(strings.NewReader(whole))
		d.KnownFields(true)
		if err := d.Decode(&got); err != nil || len(got.Rules) != 2 || got.Rules[1].Name != "a" ||
			got.Rules[1].Match.Queue != "x" || got.Rules[0].Retry.Attempts != 2 || len(
			got.Default.Retry.Delays,
		) != 1 {
			t.Errorf("%s: %v %+v\n%s", name, err, got, whole)
		}
	}
	if got, want := allYAML(&rules.Set{
		Default: rules.Rule{
			Retry: &rules.Retry{Delays: []time.Duration{10 * time.Second, 100 * time.Second}}, Severity: "digest",
		},
	}), "default:\n  retry: {delays: [10s, 1m40s]}\n  dead: {severity: digest}\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	growing := rules.Rule{Retry: &rules.Retry{Attempts: 5, First: time.Second, Factor: 2.5, Max: time.Hour, Jitter: .2}}
	if got, want := allYAML(&rules.Set{Default: growing}), "default:\n  retry: {attempts: 5, first: 1s, factor: 2.5, max: 1h0m0s, jitter: 0.2}\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestARuleOfEveryOutcomeIsShown checks that the page and the API show each outcome. If an outcome
// were forgotten, a rule with this outcome would look like a rule without settings.
func TestARuleOfEveryOutcomeIsShown(t *testing.T) {
	t.Parallel()
	of := map[deadletter.RuleOutcome]rules.Rule{
		deadletter.RuleRetry:   {Retry: &rules.Retry{Delays: []time.Duration{time.Second}}},
		deadletter.RuleDead:    {Retry: &rules.Retry{}},
		deadletter.RuleDiscard: {Discard: true},
	}
	nothing, set := of[""], &rules.Set{}
	for _, o := range deadletter.RuleOutcomes {
		rule := of[o]
		if reflect.DeepEqual(ruleOf(&rule, set), ruleOf(&nothing, set)) ||
			reflect.DeepEqual(api.NewRule(rule), api.NewRule(nothing)) {
			t.Errorf("a rule of %s is shown as one that says nothing", o)
		}
	}
}

// TestEveryWaiterHasItsWords checks the text that says where letters wait for their retries. The
// text must differ for each possible place. A place that the code forgot would have the empty text
// of the store, which is the default.
func TestEveryWaiterHasItsWords(t *testing.T) {
	t.Parallel()
	of := map[string]rules.Waiter{}
	for _, w := range rules.Waiters {
		words := strings.Join(waiterWords(&rules.Retry{Attempts: 1, Waiter: w}), " ")
		if other, ok := of[words]; ok {
			t.Errorf("%s and %s are both %q", w, other, words)
		}
		of[words] = w
	}
}
