package rabbitmq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTheDeliveryLimitOfABroker takes a message and loses its deliveries, until the broker deletes
// the message. dlo computes the delivery limit from the argument, the policy and the operator
// policy. This limit must be the one that the broker applies.
func TestTheDeliveryLimitOfABroker(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	limit := func(n int64) *int64 { return &n }
	for i, c := range [][3]*int64{
		{limit(-1), limit(2), nil},
		{limit(2), limit(-1), nil},
		{limit(3), limit(2), nil},
		{limit(-1), nil, limit(2)},
		{nil, limit(4), limit(-1)},
		{limit(3), nil, nil},
		{limit(-1), nil, nil},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if !node.AtLeast("4.0") && (c[1] != nil && *c[1] < 0 || c[2] != nil && *c[2] < 0) {
				t.Skip("3.x refuses a policy with a negative limit")
			}
			vhost, address := node.VHost(t)
			arguments := amqp.Table{"x-queue-type": "quorum"}
			if c[0] != nil {
				arguments["x-delivery-limit"] = *c[0]
			}
			for k, kind := range []string{"policies", "operator-policies"} {
				if n := c[k+1]; n != nil {
					setPolicy(t, node, vhost, kind, "limit", map[string]any{
						"pattern":    ".*",
						"apply-to":   "queues",
						"definition": map[string]any{"delivery-limit": *n},
					})
				}
			}
			time.Sleep(time.Second) // the broker applies a policy some time after it was set
			declare(t, address, map[string]amqp.Table{"orders": arguments})
			ch := openChannel(t, address, nil)
			publishTo(t, ch, "orders")
			want, limited := topology.DeliveryLimitOf(node.Version(), c[0], c[1], c[2])
			if !limited {
				want = 8
			}
			lose := func(n int) {
				if err := loseDeliveries(t.Context(), address, "orders", n); err != nil {
					t.Fatalf("limit %d: %v", want, err)
				}
			}
			lose(int(want)) // fails if the message is gone too early
			lose(1)
			time.Sleep(500 * time.Millisecond)
			if _, kept, err := ch.Get("orders", false); err != nil || kept != !limited {
				t.Errorf(
					"limit %d, limited %v: after %d lost deliveries, the message is kept: %v %v", want, limited, want+1,
					kept, err,
				)
			}
		})
	}
}

// loseDeliveries takes the first message of a queue and then closes its own connection, so that the
// broker returns the message to the queue. It repeats this the given number of times. A quorum
// queue counts each time as a delivery (3.10.8, 4.0.5, 4.3.6).
func loseDeliveries(ctx context.Context, url, queue string, times int) error {
	for range times {
		conn, err := amqp.Dial(url)
		if err != nil {
			return err
		}
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		letters, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		select {
		case <-letters:
		case <-time.After(10 * time.Second):
			return fmt.Errorf("%s delivered nothing", queue)
		case <-ctx.Done():
			return ctx.Err()
		}
		conn.Close()
	}
	return nil
}
