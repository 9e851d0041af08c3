package deadletter_test

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestEveryOutcomeOfARuleMovesALetter checks that every outcome has a word for what it makes of a
// letter, such as "retried". Each outcome must be possible for received letters and for waiting
// letters, and must lead to the same state in both cases.
func TestEveryOutcomeOfARuleMovesALetter(t *testing.T) {
	t.Parallel()
	for _, o := range deadletter.RuleOutcomes {
		if o.Past() == "" {
			t.Errorf("%s has no word for what became of a letter", o)
		}
		received, ok := deadletter.StateReceived.On(o.OfReceived())
		if !ok {
			t.Errorf("%s does nothing to a letter that was received", o)
		}
		waiting, ok := deadletter.StateScheduled.On(o.OfWaiting())
		if !ok {
			t.Errorf("%s does nothing to a letter that waits", o)
		}
		if received.Ruled() != o {
			t.Errorf("%s: what a rule has made of a letter that is %s is said to be %q", o, received, received.Ruled())
		}
		if received != waiting {
			t.Errorf("%s: a letter that was received becomes %s, one that waits %s", o, received, waiting)
		}
	}
}
