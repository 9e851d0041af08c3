package rabbitmq

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestSessionsThatSettleNothingComeEverMoreSlowly covers sessions that end before they have stored
// and acknowledged a batch of letters (a window). Such sessions happen, for example, if the AMQP
// client library cannot read a letter. The wait before the next session must grow, even if the last
// session has received deliveries. When a session has finished a window, the wait after it must be
// short again.
func TestSessionsThatSettleNothingComeEverMoreSlowly(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	_, url := testenv.VHost(t)
	_, inbox := linked(t, Broker{
		URL:      url,
		Exchange: "dlo.dlx",
		Inboxes:  []string{"inbox"},
	}, Limits{Letters: 16, Bytes: 1 << 20, Linger: time.Millisecond})
	var waits []time.Duration
	inbox.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func() {
		t.Helper()
		if _, err := inbox.Open(ctx, deadletter.InboxSession{Prefetch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	window := func() []deadletter.Arrival {
		t.Helper()
		w, err := inbox.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	open()
	ch, err := inbox.conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.PublishWithContext(ctx, "", "inbox", true, false, amqp.Publishing{
		Body: []byte("x"), DeliveryMode: 2,
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		window() // a session that receives a window but does not settle it
		open()
		open() // a session that receives nothing
	}
	if len(waits) != 6 {
		t.Fatalf("%d waits before 6 sessions: %v", len(waits), waits)
	}
	for n, d := range waits {
		full := min(backoffFirst<<(n+1), backoffMax)
		if d < full/2 || d > full {
			t.Errorf("wait %d is %s, want %s to %s", n, d, full/2, full)
		}
	}
	w := window()
	if err := inbox.Ack(w); err != nil {
		t.Fatal(err)
	}
	if err := inbox.Fence(); err != nil {
		t.Fatal(err)
	}
	waits = nil
	open()
	if len(waits) != 0 {
		t.Errorf("after a settled window the next session waited %v", waits)
	}
}
