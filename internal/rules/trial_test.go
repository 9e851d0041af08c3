package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestTheRuleOfTrials checks that the rule for trials retries a letter once and soon, whatever the
// configuration is. It must notify nobody. When the letter comes back, dlo must find the rule by
// its name. The rule must not be listed among the configured rules.
func TestTheRuleOfTrials(t *testing.T) {
	t.Parallel()
	all := Rule{Name: "all", Retry: &Retry{}, Severity: deadletter.SeverityPage, Notify: []string{"oncall"}}
	set := Set{
		Rules: []Rule{all},
		Default: Rule{
			Name:     DefaultName,
			Retry:    &Retry{},
			Severity: deadletter.SeverityPage,
			Notify:   []string{"oncall"},
		},
	}
	d := set.DecideTrial(Facts{Queue: deadletter.TrialQueue, Reason: "rejected"})
	if d.Rule != deadletter.TrialRule || d.Outcome != deadletter.RuleRetry || d.Delay != time.Second ||
		d.Severity != deadletter.SeverityDigest || d.Notify == nil || len(
		d.Notify,
	) > 0 || !strings.Contains(
		d.Why, "retry 1 of 1",
	) {
		t.Errorf("%+v", d)
	}
	if d := set.DecideTrial(Facts{
		Queue: deadletter.TrialQueue, Reason: "rejected", Attempts: 1,
	}); d.Outcome != deadletter.RuleDead || len(d.Notify) > 0 {
		t.Errorf("the second time: %+v", d)
	}
	if s := set.Of(deadletter.TrialRule); s.Watch == 0 || s.Watch > time.Minute {
		t.Errorf("%+v", s)
	}
	if told := set.Told(deadletter.TrialRule); told == nil || len(told) > 0 {
		t.Errorf("told: %v", told)
	}
	for _, step := range set.Explain(Facts{Queue: deadletter.TrialQueue}) {
		if step.Rule == deadletter.TrialRule {
			t.Error("it is listed")
		}
	}
}

// TestTheTargetOfTrials checks that only trial letters may be sent to the trial queue, and that
// trial letters may be sent to no other queue.
func TestTheTargetOfTrials(t *testing.T) {
	t.Parallel()
	var targets Targets
	targets.Add("main", "/", []string{"*"}, []string{"dlo.letters"})
	at := func(broker, queue string) deadletter.Origin {
		return deadletter.Origin{Broker: broker, VHost: "/", Queue: queue}
	}
	if err := targets.Allow(at("main", deadletter.TrialQueue)); err == nil ||
		!strings.Contains(err.Error(), "for trial letters only") {
		t.Errorf("a requeue to it: %v", err)
	}
	for _, c := range []struct {
		what   string
		origin deadletter.Origin
		rule   string
		ok     bool
	}{
		{"of a trial", at("main", deadletter.TrialQueue), deadletter.TrialRule, true},
		{"of another rule", at("main", deadletter.TrialQueue), DefaultName, false},
		{"of a trial, to another queue of dlo", at("main", "dlo.letters"), deadletter.TrialRule, false},
		{"of a trial, to a queue of somebody", at("main", "sms"), deadletter.TrialRule, false},
		{"of a trial, to a broker that is not there", at("gone", deadletter.TrialQueue), deadletter.TrialRule, false},
		{"any other", at("main", "sms"), DefaultName, true},
	} {
		if err := targets.AllowLetter(c.origin, c.rule); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
