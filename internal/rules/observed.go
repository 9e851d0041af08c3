package rules

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// observed is the rule for letters of queues that are only observed. It is not in any
// configuration. It sends nothing and notifies nobody.
var observed = Rule{Name: deadletter.ObservedRule, Severity: deadletter.SeverityDigest, Notify: []string{}}

// Observed returns the decision for a letter of a queue that is only observed. The parameter d is
// the decision that the configured rules would have made. The result contains a description of d as
// its reason.
func Observed(d Decision) Decision {
	return Decision{
		Rule:     observed.Name,
		Outcome:  deadletter.RuleDead,
		Severity: observed.Severity,
		Notify:   observed.Notify,
		Group:    d.Group,
		Why:      fmt.Sprintf("only observed. Otherwise: %s (rule %s, severity %s)", d.Why, d.Rule, d.Severity),
	}
}
