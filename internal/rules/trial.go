package rules

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// trial is the rule for letters that dlo makes for a trial. It takes precedence over all other
// rules and is not in any configuration. It retries once, soon enough to wait for the result, and
// notifies nobody.
var trial = Rule{
	Name: deadletter.TrialRule, Severity: deadletter.SeverityDigest, Notify: []string{},
	Retry: &Retry{Delays: []time.Duration{time.Second}, Waiter: WaiterStore},
	Watch: 6 * time.Second, // longer than the age of figures from the management API
}

// DecideTrial works like Decide, for a letter that dlo made for a trial or a probe. The letter of a
// probe is discarded, because its arrival is the proof and nothing consumes its queue.
func (s *Set) DecideTrial(f Facts) Decision {
	d := s.decide(&trial, f)
	if deadletter.IsProbe(f.Queue) {
		return Decision{Rule: d.Rule, Outcome: deadletter.RuleDiscard, Severity: d.Severity, Notify: d.Notify, Why: "it arrived, which proves the policy"}
	}
	return d
}
