package system

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestErrorQueuesAsInboxes uses inboxes into which applications put failed messages without
// x-death. If the configuration names an origin for such an inbox, its letters must go to that
// origin, whatever their headers say. A letter that comes back must be merged into its row. After
// its last retry, it must be dead. Letters of an inbox without an origin must be held.
func TestErrorQueuesAsInboxes(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	conn := publishParked(t, url, "orders_error", 20, nil)
	publishParked(t, url, "skipped", 5, nil)
	publishParked(t, url, "orders", 0, nil)
	publishParked(t, url, "sms", 0, nil)
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	dead := amqp.Table{
		"x-death": rejectedIn("sms", "events", "sms.de", time.Unix(1763625600, 0)),
	}
	if err := ch.PublishWithContext(t.Context(), "", "orders_error", true, false, amqp.Publishing{
		Headers: dead, Body: []byte("sms"), DeliveryMode: 2,
	}); err != nil {
		t.Fatal(err)
	}
	// The worker of the queue "orders" accepts two of the messages. Each time another message
	// arrives, the worker puts it back into the error queue with all its headers. The broker
	// records no death.
	work, err := ch.Consume("orders", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for d := range work {
			if body := string(d.Body); body != "orders_error 3" && body != "orders_error 4" {
				ch.PublishWithContext(context.Background(), "", "orders_error", true, false, amqp.Publishing{
					Headers: d.Headers, MessageId: d.MessageId, Body: d.Body, DeliveryMode: 2,
				})
			}
			d.Ack(false)
		}
	}()
	p := newChild(
		t, url,
		"brokers: [{url: %AMQP%, inboxes: [dlo.letters, orders_error, skipped], origins: {orders_error: orders}}]\ndefault: {retry: {delays: [1s]}}\nrequeue: {rate: 0, watch: 1s}\n",
	)
	p.Start("")
	eventually(t, "all letters at their end", func() bool {
		return p.letters("dead") == 19 && p.letters("settled") == 2 && p.letters("held") == 5
	})
	for what, query := range map[string]struct {
		text string
		want int
	}{
		"letters": {`SELECT count(*) FROM letters`, 26},
		"held without an origin": {`SELECT count(*) FROM letters WHERE origin < 0
			AND why LIKE 'no origin:%'`, 5},
		"of orders": {`SELECT count(*) FROM letters l JOIN origins o ON o.id = l.origin
			WHERE o.broker = 'main' AND o.queue = 'orders'`, 21},
		"with a death that nobody knows of": {`SELECT count(*) FROM letters WHERE reason = '' AND died_at IS NULL
			AND exchange = '' AND routing_key = ''`, 26},
		"of sms, as x-death says": {`SELECT count(*) FROM letters l JOIN origins o ON o.id = l.origin
			WHERE o.queue = 'sms'`, 0},
		"parked again, each in its own row": {`SELECT count(*) FROM attempts WHERE outcome = 'came back'
			AND back_queue = '' AND back_reason = ''`, 19},
		"dead after the one retry, of orders yet": {`SELECT count(*) FROM letters l JOIN origins o ON o.id = l.origin
			WHERE l.state = 'dead' AND l.attempts = 1 AND l.why LIKE 'retries used up%' AND o.queue = 'orders'`, 19},
	} {
		if n := p.ask(query.text); n != query.want {
			t.Errorf("%d letters %s, want %d", n, what, query.want)
		}
	}
	if n := ready(t, conn, "sms"); n != 0 {
		t.Errorf("%d letters in sms", n)
	}
}

// TestInboxesThatCannotBeDrained uses inboxes that dlo cannot drain. Each of them must show the
// reason and the remedy. The other inboxes must be drained.
func TestInboxesThatCannotBeDrained(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, url := testenv.VHost(t)
	conn := publishParked(t, url, "stream", 1, amqp.Table{
		"x-queue-type": "stream", "x-max-length-bytes": int64(50_000_000), "x-max-age": "1h",
	})
	publishParked(t, url, "single", 0, amqp.Table{"x-single-active-consumer": true})
	publishParked(t, url, "shared", 0, nil)
	publishParked(t, url, "exclusive", 0, amqp.Table{
		"x-queue-type": "classic", "x-max-length": int32(10), "x-max-length-bytes": int32(1000000),
		"x-message-ttl": int32(1000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "it's",
	})
	for queue, exclusive := range map[string]bool{"single": false, "shared": false, "exclusive": true} {
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Consume(queue, "", false, exclusive, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	inboxes := []string{"dlo.letters", "missing", "stream", "single", "shared", "exclusive"}
	for _, management := range []string{"", fmt.Sprintf(", management: %q", node.ManagementURLOf("guest:guest"))} {
		t.Run("management"+management, func(t *testing.T) {
			p := newChild(
				t, url,
				fmt.Sprintf("brokers: [{url: %%AMQP%%, inboxes: [%s]%s}]\n", strings.Join(inboxes, ", "), management),
			)
			p.Start("")
			for queue, want := range map[string]struct {
				draining bool
				reason   string
			}{
				"dlo.letters": {true, ""},
				"missing":     {false, "there is no queue missing; declare it, or take it out of inboxes"},
				"stream": {
					false,
					"stream is a stream: reading takes nothing out of it, so it cannot be an inbox. Dead-letter to a classic or quorum queue, and take the stream out of inboxes",
				},
				"single": {
					true,
					"single has a single active consumer, and it is not dlo: dlo gets no letters while that consumer is connected. Stop that consumer, or take the queue out of inboxes",
				},
				"shared": {
					true,
					"another consumer reads from shared: dlo never sees the letters that it takes. Stop that consumer, or take the queue out of inboxes",
				},
				"exclusive": {false, "another consumer has it for itself (exclusive); stop that one"},
			} {
				eventually(t, queue+": "+want.reason, func() bool {
					_, s := p.ready()
					for _, i := range s.Brokers[0].Inboxes {
						if i.Queue == queue {
							return i.Draining == want.draining && strings.Contains(i.Reason, want.reason) &&
								(want.reason != "" || i.Reason == "")
						}
					}
					return false
				})
			}
			p.Stop()
		})
	}
}
