package rabbitmq_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAStopDoesNotWaitForABroker stops an inbox while its broker is alive but does not respond. The
// stop must not wait for the broker. A broker behaves like this, for example, if a queue has no
// leader.
func TestAStopDoesNotWaitForABroker(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	args := amqp.Table{"x-queue-type": "classic"}
	declareInbox(t, openChannel(t, url, nil), "inbox", args)
	relay := testenv.Relay(t, node.AMQPAddr())
	link := connect(t, rabbitmq.Broker{
		URL:      node.AMQPURLVia(relay.Addr(), vhost),
		Exchange: "dlo.dlx",
		Inboxes:  []string{"inbox"},
	})
	inbox := link.Inbox("inbox", rabbitmq.Limits{Letters: 16, Bytes: 1 << 20, Linger: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := inbox.Open(ctx, deadletter.InboxSession{}); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		inbox.Next(ctx)
		inbox.Close()
	}()
	relay.Mute(testenv.ToClient, true)
	cancel()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("the stop waits for an answer of the broker")
		relay.Cut()
		<-over
	}
}
