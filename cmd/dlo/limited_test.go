package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAnInboxThatMayDeleteLettersIsLeftAlone: a quorum queue of RabbitMQ 4.0 and later has a delivery limit unless it says otherwise, and lost connections use it up. Such an inbox is not
// drained until the configuration accepts it; dlo says why, names both cures, and drains its own inbox meanwhile. On 3.x there is no such limit.
func TestAnInboxThatMayDeleteLettersIsLeftAlone(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	_, url := testenv.VHost(t)
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("old-dlq", true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	if err := ch.PublishWithContext(context.Background(), "", "old-dlq", true, false, amqp.Publishing{Body: []byte("x"), DeliveryMode: 2}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, more string
		management bool
		refused    bool
	}{
		{"nobody can say", "", false, node.AtLeast("4.0")},
		{"the management API says", "", true, node.AtLeast("4.0")},
		{"accepted", ", accept_limited: [old-dlq]", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := fmt.Sprintf("{url: %q, inboxes: [dlo.letters, old-dlq]%s}", url, c.more)
			p := newChild(t, url, "brokers: ["+broker+"]\n")
			if c.management {
				p.env = []string{"DLO_MANAGEMENT_URL=http://guest:guest@" + strings.TrimPrefix(node.ManagementURL(), "http://")}
			}
			p.Start("")
			p.Draining()
			if !c.refused {
				eventually(t, "old-dlq drained", func() bool { return strings.Contains(p.Log(), `msg="inbox connected" broker=main inbox=old-dlq`) })
				return
			}
			eventually(t, "the reason", func() bool {
				_, body := p.get("/readyz")
				return strings.Contains(body, "delivery limit") && strings.Contains(body, "set_policy") && strings.Contains(body, "accept_limited")
			})
			if n := ready(t, conn, "old-dlq"); n != 1 {
				t.Errorf("%d messages in old-dlq, which dlo must leave alone", n)
			}
		})
	}
}
