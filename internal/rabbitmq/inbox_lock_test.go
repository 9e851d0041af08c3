package rabbitmq_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheQueueOfTheTurnTakesNothing publishes a message to the queue that is the lock of an inbox.
// This lock lets only one session at a time drain the inbox. Anybody with write permission on the
// default exchange can publish to the queue.
//
// The broker must not deliver the message. Otherwise the message would use up a delivery tag of the
// channel. The window of letters would then have a gap in its tags, and dlo would return the window
// to the broker again and again.
func TestTheQueueOfTheTurnTakesNothing(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	_, url := testenv.Broker(t).VHost(t)
	other := openChannel(t, url, nil)
	declareInbox(t, other, "inbox", amqp.Table{"x-queue-type": "classic"})
	link := connect(t, rabbitmq.Broker{URL: url, Inboxes: []string{"inbox"}})
	inbox := link.Inbox("inbox", rabbitmq.Limits{Letters: 16, Bytes: 1 << 20, Linger: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := inbox.Open(ctx, deadletter.InboxSession{}); err != nil {
		t.Fatal(err)
	}
	defer inbox.Close()
	sum := sha256.Sum256([]byte("inbox"))
	turn := "dlo.epoch.turn." + hex.EncodeToString(sum[:16])
	if err := other.Confirm(false); err != nil {
		t.Fatal(err)
	}
	returns := other.NotifyReturn(make(chan amqp.Return, 1))
	confirm, err := other.PublishWithDeferredConfirm("", turn, true, false, amqp.Publishing{Body: []byte("intruder")})
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := confirm.WaitContext(ctx); err != nil || taken {
		t.Errorf("the queue of the turn took a message: %v, %v", taken, err)
	}
	if len(returns) > 0 {
		t.Fatalf("there is no queue %s", turn)
	}
	publishLetters(t, other, "inbox", "letter")
	w, err := inbox.Next(ctx)
	if err != nil || len(w) != 1 || string(w[0].Body) != "letter" {
		t.Errorf("%d letters came, %v", len(w), err)
	}
}
