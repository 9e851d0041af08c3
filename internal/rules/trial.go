package rules

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// trial is the rule for letters that dlo makes for a trial. It is not in any configuration, and it
// has priority over all configured rules. It retries once, after a delay that is so short that a
// person can wait for the result. It notifies nobody.
var trial = Rule{
	Name: deadletter.TrialRule, Severity: deadletter.SeverityDigest, Notify: []string{},
	Retry: &Retry{Delays: []time.Duration{time.Second}, Waiter: WaiterStore},
	Watch: 6 * time.Second, // longer than the time for which the numbers of the management API can be out of date
}

// DecideTrial returns the decision about a letter that dlo itself made for a trial or a probe. A
// letter of a trial is retried, because the person who started the trial wants to see a retry. A
// letter of a probe is discarded, because nothing consumes the queue of a probe. Its arrival alone
// proves that a policy works.
func (s *Set) DecideTrial(f Facts) Decision {
	d := s.decide(&trial, f)
	if deadletter.IsProbe(f.Queue) {
		return Decision{
			Rule:     d.Rule,
			Outcome:  deadletter.RuleDiscard,
			Severity: d.Severity,
			Notify:   d.Notify,
			Why:      "it arrived, which proves the policy",
		}
	}
	return d
}
