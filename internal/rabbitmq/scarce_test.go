package rabbitmq

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestDeliveriesThatRunOutAreTold takes letters from a queue with a delivery limit that the
// configuration accepts, and loses the session each time. dlo must notify people when half of the
// deliveries are used up, and must wait before it takes the last delivery.
func TestDeliveriesThatRunOutAreTold(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, address := node.VHost(t)
	link, inbox := linked(t, Broker{
		URL:           address,
		Management:    node.ManagementURLOf("guest:guest"),
		Inboxes:       []string{"team.dlq"},
		AcceptLimited: []string{"team.dlq"},
	}, Limits{Letters: 16, Bytes: 1 << 20, Linger: time.Millisecond})
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := onChannel(conn, func(ch *amqp.Channel) error {
		if _, err := ch.QueueDeclare("team.dlq", true, false, false, false, amqp.Table{
			"x-queue-type": "quorum", "x-delivery-limit": int64(4),
		}); err != nil {
			return err
		}
		return ch.PublishWithContext(t.Context(), "", "team.dlq", true, false, amqp.Publishing{
			Body: []byte("x"), DeliveryMode: 2,
		})
	}); err != nil {
		t.Fatal(err)
	}
	waited := time.Duration(0)
	inbox.sleep = func(_ context.Context, d time.Duration) error {
		waited = d
		return nil
	}
	for n := range 5 {
		facts, err := inbox.Open(t.Context(), deadletter.InboxSession{Prefetch: 1})
		if err != nil {
			t.Fatal(err)
		}
		if facts.DeliveryLimit != 4 {
			t.Fatalf("the limit is %d", facts.DeliveryLimit)
		}
		if (waited == scarceWait) != (n == 4) {
			t.Errorf("waited %s before delivery %d", waited, n+1)
		}
		w, err := inbox.Next(t.Context())
		if err != nil || len(w) != 1 {
			t.Fatal(len(w), err)
		}
		if facts.LastTime(&w[0]) != (n == 4) {
			t.Errorf("delivery %d of 5 is the last one: %v", n+1, facts.LastTime(&w[0]))
		}
		told := link.Status().Queues
		switch {
		case n < 2 && len(told) > 0:
			t.Errorf("told after %d deliveries: %+v", n+1, told)
		case n >= 2 && (len(told) != 1 || told[0].Kind != deadletter.ProblemNearLimit ||
			!strings.Contains(
				told[0].Text, "x-delivery-count "+string(rune('0'+n))+", and the broker deletes it after 4",
			)):
			t.Errorf("after %d deliveries: %+v", n+1, told)
		}
	}
	inbox.Missing(1)
	if told := link.Status().Queues; len(told) != 2 || told[1].Kind != deadletter.ProblemMissing ||
		!strings.Contains(told[1].Text, "at least 1 ") || !strings.Contains(
		told[1].Cure, "x-delivery-limit",
	) {
		t.Errorf("%+v", told)
	}
}
