package rules

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// trial is the rule of letters that dlo makes for a trial: it stands before all others, and no
// configuration has it. One retry, soon enough to be waited for; nobody is told of them.
var trial = Rule{
	Name: deadletter.TrialRule, Severity: deadletter.SeverityDigest, Notify: []string{},
	Retry: &Retry{Delays: []time.Duration{time.Second}, Waiter: WaiterStore},
	Watch: 6 * time.Second, // longer than figures of the management API are old
}

// DecideTrial is Decide for a letter that dlo made for a trial.
func (s *Set) DecideTrial(f Facts) Decision { return s.decide(&trial, f) }
