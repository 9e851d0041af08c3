package classify_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAnObservedLetterIsNeitherRetriedNorHeld checks the verdicts about letters of queues that dlo
// only observes. Such a letter must become dead with severity digest, and nobody may be notified.
// This includes letters whose queue is unknown or not allowed, and letters that cannot be read. A
// suspected duplicate must still be held.
func TestAnObservedLetterIsNeitherRetriedNorHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		letter deadletter.Letter
		change func(l *deadletter.Letter)
		to     deadletter.Trigger
		why    string
	}{
		"rejected": {
			letter: deadLetter("sms", "rejected", nil), to: deadletter.ClassifiedDead,
			why: "only observed. Otherwise: retry 1 of 2 in 10s (rule default, severity notify)",
		},
		"not allowed": {
			letter: deadLetter("payments", "rejected", nil), to: deadletter.ClassifiedDead, why: "only observed.",
		},
		"no origin": {letter: deadLetter("", "", nil), to: deadletter.ClassifiedDead, why: "only observed."},
		"condemned": {
			letter: deadLetter("sms", "rejected", nil),
			change: func(l *deadletter.Letter) { l.Crashes = deadletter.MaxCrashes }, to: deadletter.ClassifiedDead,
			why: "undecodable",
		},
		"a suspect": {
			letter: deadLetter("sms", "rejected", nil),
			change: func(l *deadletter.Letter) { l.Doubt, l.Why = "twin", "it may be a copy" },
			to:     deadletter.ClassifiedHold, why: "it may be a copy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Targets.Observe("main", []string{"*"})
			if c.change != nil {
				c.change(&c.letter)
			}
			v := verdicts(t, o, c.letter)[0]
			if v.To != c.to || !strings.HasPrefix(v.Why, c.why) || v.Severity != deadletter.SeverityDigest ||
				v.Rule != deadletter.ObservedRule || len(v.Channels) > 0 || !v.DueAt.IsZero() {
				t.Errorf("%+v", v)
			}
		})
	}
}
