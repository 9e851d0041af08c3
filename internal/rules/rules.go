// Package rules decides what becomes of a letter: when it is retried, when it is dead, how loudly it calls; and which queues a letter may be sent to. It is pure: facts in,
// decisions out.
package rules

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// DefaultName is the name of the rule for letters that no other matches.
const DefaultName = "default"

// Default is the rule for letters that no other matches.
type Default struct {
	Delays   []time.Duration // before each retry; none = dead at once
	Severity deadletter.Severity
}

// Set is what the configuration says about letters.
type Set struct{ Default Default }

// Facts are what a decision may look at.
type Facts struct {
	Reason   string // of the death, an open set
	Attempts int    // used so far
}

// Decision is what becomes of a letter.
type Decision struct {
	Rule     string
	Retry    bool
	Delay    time.Duration // of a retry
	Severity deadletter.Severity
	Why      string // in words, for the history
}

// Decide returns the decision of the first rule that matches. Letters that expired or were pushed out of a full queue were never refused by a worker, so they wait for a
// person instead of being retried.
func (s *Set) Decide(f Facts) Decision {
	d := Decision{Rule: DefaultName, Severity: s.Default.Severity}
	retries := len(s.Default.Delays)
	switch {
	case f.Reason == "expired" || f.Reason == "maxlen":
		d.Why = fmt.Sprintf("reason %s: no retry unless a rule says so", f.Reason)
	case f.Attempts < retries:
		d.Retry, d.Delay = true, s.Default.Delays[f.Attempts]
		d.Why = fmt.Sprintf("retry %d of %d in %s", f.Attempts+1, retries, d.Delay)
	case retries == 0:
		d.Why = "no retries"
	default:
		d.Why = fmt.Sprintf("retries used up: %d of %d", f.Attempts, retries)
	}
	return d
}
