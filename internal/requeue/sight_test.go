package requeue

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestADelayQueueIsNeverQuiet: what people sent to a queue that lets messages expire counts as
// settled where it ends there, and never where the queue only hands them on.
func TestADelayQueueIsNeverQuiet(t *testing.T) {
	t.Parallel()
	empty := deadletter.QueueFacts{Known: true, Exists: true, TTL: time.Second}
	parks, delays := empty, empty
	parks.DeadLetters, delays.DeadLetters, delays.LeadsOn = deadletter.DeadLettersNowhere, "queue work", true
	if u := unseen("q", parks); u.Why == "" || u.Settles || !u.SettlesRedirected {
		t.Errorf("a queue that ends: %+v", u)
	}
	if u := unseen("q", delays); u.Why == "" || u.Settles || u.SettlesRedirected {
		t.Errorf("a queue that only delays: %+v", u)
	}
}
