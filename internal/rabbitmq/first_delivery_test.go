package rabbitmq

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWhatADeliveryTells checks on a real broker how a letter looks when it is delivered for the
// first time, and how it looks when it comes back. dlo must not mistake a first delivery for a
// redelivery. What dlo assumes about a version of RabbitMQ must be true for each type of source
// queue and of inbox.
func TestWhatADeliveryTells(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	_, url := testenv.VHost(t)
	_, ch := testenv.Channel(t, url)
	get := func(ch *amqp.Channel, queue string) amqp.Delivery {
		t.Helper()
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case d := <-deliveries:
			return d
		case <-time.After(time.Minute):
			t.Fatalf("nothing comes out of %s", queue)
		}
		return amqp.Delivery{}
	}
	count := func(d amqp.Delivery) int64 {
		if n, there := d.Headers["x-delivery-count"].(int64); there {
			return n
		}
		return -1
	}
	for _, source := range []string{"classic", "quorum", "quorum after 2 returns"} {
		for _, inbox := range []string{"classic", "quorum"} {
			from, to := fmt.Sprintf("%s to %s", source, inbox), fmt.Sprintf("%s from %s", inbox, source)
			for queue, args := range map[string]amqp.Table{
				to:   {"x-queue-type": inbox},
				from: {"x-queue-type": strings.Fields(source)[0], "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to},
			} {
				if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
					t.Fatal(err)
				}
			}
			if err := ch.PublishWithContext(t.Context(), "", from, true, false, amqp.Publishing{
				Body: []byte("x"), DeliveryMode: 2,
			}); err != nil {
				t.Fatal(err)
			}
			worker, work := testenv.Channel(t, url)
			d := get(work, from)
			for returns := 0; strings.HasSuffix(source, "returns") && returns < 2; returns++ {
				worker.Close()
				worker, work = testenv.Channel(t, url)
				d = get(work, from)
			}
			d.Reject(false)
			conn, inboxCh := testenv.Channel(t, url)
			first := get(inboxCh, to)
			worker.Close()
			conn.Close()
			_, again := testenv.Channel(t, url)
			back := get(again, to)
			t.Logf(
				"%s, %s: first flagged %v, count %d; back flagged %v, count %d", node.Version(), from,
				first.Redelivered, count(first), back.Redelivered, count(back),
			)
			if first.Redelivered && !redeliveredLeaks(node.Version(), inbox) {
				t.Errorf("%s flags the first delivery, %s", node.Version(), from)
			}
			if !back.Redelivered {
				t.Errorf("%s does not flag a return, %s", node.Version(), from)
			}
			if inbox == "quorum" && node.AtLeast("4.3") && count(back) != max(count(first), 0)+1 {
				t.Errorf("%s does not count a return, %s", node.Version(), from)
			}
		}
	}
}
