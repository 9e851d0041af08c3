package rabbitmq_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAcksOfGets takes letters from a quorum queue with basic.get, acknowledges all of them at
// once, and cuts the connection at that moment. Up to 32 letters come back whole or not at all. Of
// more, a part may come back, so no window may have more of them.
func TestAcksOfGets(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	observer := openChannel(t, address, nil)
	parts := 0
	for k := range 40 {
		n := []int{32, 200}[k%2]
		queue := fmt.Sprint("inbox", k)
		declareInbox(t, observer, queue, amqp.Table{"x-queue-type": "quorum"})
		publishLetters(t, observer, queue, numberedLetters(1, n)...)
		link := testenv.Relay(t, node.AMQPAddr())
		reader := openChannel(t, node.AMQPURLVia(link.Addr(), vhost), nil)
		var last uint64
		for range n {
			d, ok, err := reader.Get(queue, false)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			last = d.DeliveryTag
		}
		if err := reader.Ack(last, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(k) * 50 * time.Microsecond)
		link.Cut()
		back := -1
		for range 8 { // until the number stays
			time.Sleep(50 * time.Millisecond)
			q, err := observer.QueueDeclarePassive(queue, true, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			back = q.Messages
		}
		switch {
		case back == 0 || back == n:
		case n == 32:
			t.Errorf("%s: of 32 letters, %d came back", node.Version(), back)
		default:
			parts++
		}
	}
	t.Logf("%s: a part of 200 letters came back %d times", node.Version(), parts)
}
