package store_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestLettersReceivedFromEachQueue counts the letters of each queue since a time. Letters that were
// discarded after they were received count too. Older letters do not count.
func TestLettersReceivedFromEachQueue(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 3)
	g.clock.at = g.clock.at.Add(8 * 24 * time.Hour)
	g.die("sms", 1, 2)
	g.die("mail", 2, 1, func(c *deadletter.Classified) { c.To = deadletter.ClassifiedDiscard })
	got, err := g.ReceivedSince(t.Context(), g.clock.now().Add(-7*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	sms, mail := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}, deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "mail",
	}
	if len(got) != 2 || got[sms] != 2 || got[mail] != 1 {
		t.Errorf("%v", got)
	}
}
