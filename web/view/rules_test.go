package view

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestARuleOfEveryOutcomeHasItsWords checks that the texts in the list, the details and the
// severity are different for each outcome. If an outcome were forgotten, it would have the texts of
// another outcome, or of an empty rule.
func TestARuleOfEveryOutcomeHasItsWords(t *testing.T) {
	t.Parallel()
	of := map[deadletter.RuleOutcome]rule{}
	for o, r := range map[deadletter.RuleOutcome]rules.Rule{
		"":                     {},
		deadletter.RuleRetry:   {Retry: &rules.Retry{First: time.Second, Attempts: 1}},
		deadletter.RuleDead:    {Retry: &rules.Retry{}},
		deadletter.RuleDiscard: {Discard: true},
	} {
		of[o] = rule{&r, &rules.Set{Default: rules.Rule{Severity: deadletter.SeverityDigest}}}
	}
	severity := func(o deadletter.RuleOutcome) string { return render(t, ruleSeverity(of[o])) }
	said := map[string]deadletter.RuleOutcome{
		of[""].retries(): "nothing", render(t, oneRule(of[""])): "nothing",
	}
	for _, o := range deadletter.RuleOutcomes {
		for _, text := range []string{of[o].retries(), render(t, oneRule(of[o]))} {
			if other, ok := said[text]; ok {
				t.Errorf("rules of %s and of %s are both described as %q", o, other, text)
			}
			said[text] = o
		}
		dies := o == deadletter.RuleRetry || o == deadletter.RuleDead
		if (severity(o) == severity("")) != dies {
			t.Errorf("a letter of %s can die: %v, and its severity is %q", o, dies, severity(o))
		}
	}
}

func TestDelaysInALine(t *testing.T) {
	t.Parallel()
	set := &rules.Set{
		Default: rules.Rule{
			Name: rules.DefaultName, Severity: deadletter.SeverityDigest,
			Retry: &rules.Retry{Delays: []time.Duration{10 * time.Second}},
		},
	}
	seconds := func(n int) (list []time.Duration) {
		for i := range n {
			list = append(list, time.Duration(i+1)*time.Second)
		}
		return list
	}
	for _, c := range []struct {
		rule         *rules.Rule
		reason, want string
	}{
		{
			&rules.Rule{
				Retry:    &rules.Retry{Delays: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}},
				Severity: deadletter.SeverityPage,
			},
			"expired", "5 s, 30 s, 5 min, then dead: page",
		},
		{
			&rules.Rule{Retry: &rules.Retry{Attempts: 2, First: time.Minute, Factor: 10, Jitter: 0.1}}, "",
			"54 s to 1 min 6 s, 9 min to 11 min, then dead: digest",
		},
		{
			&rules.Rule{Retry: &rules.Retry{Delays: seconds(7)}}, "",
			"1 s, 2 s, 3 s, 4 s, 5 s, 6 s, 7 s, then dead: digest",
		},
		{
			&rules.Rule{Retry: &rules.Retry{Delays: seconds(1008)}}, "",
			"1 s, 2 s, 3 s, 4 s, 5 s, 6 s, 1,002 more, then dead: digest",
		},
		{&rules.Rule{Retry: &rules.Retry{}}, "rejected", "no retry, dead: digest"},
		{&rules.Rule{}, "rejected", "10 s, then dead: digest"},
		{&rules.Rule{}, "expired", "no retry, dead: digest"},
		{&set.Default, "rejected", "10 s, then dead: digest"},
		{&set.Default, "maxlen", "no retry, dead: digest"},
		{&rules.Rule{Discard: true}, "", "discarded at once"},
	} {
		if got := Delays(set, c.rule, c.reason); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestDelaysOfARuleHaveATotal checks that the details of a rule give each delay, and the sum once.
func TestDelaysOfARuleHaveATotal(t *testing.T) {
	t.Parallel()
	set := &rules.Set{Default: rules.Rule{Severity: deadletter.SeverityDigest}}
	retry := &rules.Retry{Delays: []time.Duration{5 * time.Second, 15 * time.Second}, Jitter: 0.1}
	got := render(t, oneRule(rule{&rules.Rule{Retry: retry}, set}))
	const want = "Delays: 4.5 s to 5.5 s, 13.5 s to 16.5 s, then dead: digest. In all, at most 22 s."
	if !strings.Contains(got, want) {
		t.Errorf("%q is missing in %s", want, got)
	}
	retry.Delays = retry.Delays[:1]
	if got := render(t, oneRule(rule{&rules.Rule{Retry: retry}, set})); strings.Contains(got, "In all") {
		t.Errorf("one delay has a sum: %s", got)
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
