package rabbitmq

import (
	"log/slog"
	"testing"
	"time"
)

// linked returns a link to a broker, and the first inbox of this link. The inbox is closed at the
// end of the test. linked opens no connection yet.
func linked(t *testing.T, b Broker, limits Limits) (*Link, *Inbox) {
	t.Helper()
	b.Name, b.InFlight, b.ConfirmTimeout = "main", 1, time.Second
	link, err := Connect(b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inbox := link.Inbox(b.Inboxes[0], limits)
	t.Cleanup(inbox.Close)
	return link, inbox
}
