package rules

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestLettersThatAreOnlyObserved checks that nothing is sent and nobody is notified for a letter of
// an observed queue. The reason must describe what the rules would have decided.
func TestLettersThatAreOnlyObserved(t *testing.T) {
	t.Parallel()
	set := Set{
		Default: Rule{
			Name:     DefaultName,
			Retry:    &Retry{Delays: []time.Duration{time.Minute}},
			Severity: deadletter.SeverityPage,
			Notify:   []string{"oncall"},
		},
	}
	d := Observed(set.Decide(Facts{Queue: "sms", Reason: "rejected"}))
	if d.Rule != "observed" || d.Outcome != deadletter.RuleDead || d.Severity != deadletter.SeverityDigest ||
		d.Notify == nil || len(
		d.Notify,
	) > 0 || d.Delay != 0 {
		t.Errorf("%+v", d)
	}
	if want := "only observed. Otherwise: retry 1 of 1 in 1m0s (rule default, severity page)"; d.Why != want {
		t.Errorf("%q, want %q", d.Why, want)
	}
	if told := set.Told(deadletter.ObservedRule); told == nil || len(told) > 0 {
		t.Errorf("told: %v", told)
	}
}

// TestQueuesThatAreOnlyObserved checks which queues match the patterns of the setting "observe".
// Nothing may be sent to these queues.
func TestQueuesThatAreOnlyObserved(t *testing.T) {
	t.Parallel()
	var targets Targets
	targets.Add("main", "/", []string{"*"}, nil)
	at := func(broker, vhost, queue string) deadletter.Origin {
		return deadletter.Origin{Broker: broker, VHost: vhost, Queue: queue}
	}
	if targets.Observed(at("main", "/", "sms")) {
		t.Error("without globs, a queue is observed")
	}
	targets.Observe("main", []string{"sms", "team.*"})
	for o, want := range map[deadletter.Origin]bool{
		at("main", "/", "sms"): true, at("main", "/", "team.a.b"): true, at("main", "/", "mail"): false,
		at("main", "/", ""): false, at("main", "shop", "sms"): false, at("other", "/", "sms"): false,
	} {
		if got := targets.Observed(o); got != want {
			t.Errorf("%v: %t", o, got)
		}
		if err := targets.Allow(o); want && err == nil {
			t.Errorf("%v: letters may be sent there", o)
		}
	}
	targets.Observe("main", []string{"*"})
	if !targets.Observed(at("main", "/", "")) {
		t.Error("letters of an unknown queue are not observed")
	}
}
