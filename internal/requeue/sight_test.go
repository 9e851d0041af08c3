package requeue

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestADelayQueueIsNeverQuiet checks letters that people sent to a queue in which messages expire.
// If the queue drops an expired message, the letter must count as settled. If the queue passes the
// message on to another queue, the letter must never count as settled.
func TestADelayQueueIsNeverQuiet(t *testing.T) {
	t.Parallel()
	empty := deadletter.QueueFacts{Known: true, Exists: true, TTL: time.Second}
	parks, delays := empty, empty
	parks.DeadLetters, delays.DeadLetters, delays.LeadsOn = deadletter.DeadLettersNowhere, "queue work", true
	if u := unseenReason("q", parks); u.Why == "" || u.Settles || !u.SettlesRedirected {
		t.Errorf("a queue that ends: %+v", u)
	}
	if u := unseenReason("q", delays); u.Why == "" || u.Settles || u.SettlesRedirected {
		t.Errorf("a queue that only delays: %+v", u)
	}
}
