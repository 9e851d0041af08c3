package rabbitmq_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// These tests record the behaviour of the AMQP client library (amqp091-go v1.16.0). Because of this
// behaviour, dlo does not use the recovery of the library. Instead, dlo drops all objects of a
// session whose connection has ended. If a test fails, the library has changed, and this decision
// should be reviewed.

// TestRecoveryAcknowledgesAStranger shows that a recovered channel still accepts the delivery tags
// of the previous session. A letter is read before the connection closes, and is acknowledged
// afterwards. The ack then applies to whichever letter has the same tag in the new session.
func TestRecoveryAcknowledgesAStranger(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	other := openChannel(t, url, nil)
	declareInbox(t, other, "inbox", nil)
	publishLetters(t, other, "inbox", "1", "2", "3", "4")

	link := testenv.Relay(t, node.AMQPAddr())
	recovering := openChannel(t, node.AMQPURLVia(link.Addr(), vhost), &amqp.Recovery{
		ReconnectionConfig: &amqp.ReconnectionConfig{MaxRetryCount: 1200, RetryInterval: 50 * time.Millisecond},
	})
	deliveries := consume(t, recovering, "inbox", 3)
	old := receive(t, deliveries, 3)
	if got := bodies(old); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Fatalf("before the cut: %q", got)
	}

	link.Refuse(true)
	link.Cut()
	awaitReady(t, other, "inbox", 4)
	takeOne(t, other, "inbox", "1") // other consumers change the queue while the client is disconnected
	link.Refuse(false)
	now := receive(t, deliveries, 3)
	if got := bodies(now); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Fatalf("after the recovery: %q", got)
	}
	if old[1].DeliveryTag != now[1].DeliveryTag {
		t.Fatalf("the tag of the second delivery was %d and is %d", old[1].DeliveryTag, now[1].DeliveryTag)
	}

	if err := old[1].Ack(false); err != nil {
		t.Fatalf(
			"the old delivery of letter 2 cannot be acknowledged any more (%v): the client now tells sessions apart",
			err,
		)
	}
	closeSession(t, recovering)
	if got := drain(t, other, "inbox"); !slices.Equal(got, []string{"2", "4"}) {
		t.Errorf("acknowledged the old letter 2, and the queue holds %q; with amqp091-go v1.16.0 letter 3 is gone", got)
	}
}

// TestWithoutRecoveryAnOldDeliveryCannotBeAcknowledged cuts a connection that does not use the
// recovery of the AMQP client library. The channel must stay closed, so that the old delivery
// cannot be acknowledged, and the letter must return to the queue.
func TestWithoutRecoveryAnOldDeliveryCannotBeAcknowledged(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	other := openChannel(t, url, nil)
	declareInbox(t, other, "inbox", nil)
	publishLetters(t, other, "inbox", "1", "2")

	link := testenv.Relay(t, node.AMQPAddr())
	ch := openChannel(t, node.AMQPURLVia(link.Addr(), vhost), nil)
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries := consume(t, ch, "inbox", 2)
	old := receive(t, deliveries, 2)
	link.Cut()
	<-closed
	if _, open := <-deliveries; open {
		t.Error("a dead session still delivers")
	}
	for _, d := range old {
		for name, err := range map[string]error{
			"ack": d.Ack(false), "nack": d.Nack(false, true), "reject": d.Reject(true),
		} {
			if !errors.Is(err, amqp.ErrClosed) {
				t.Errorf("%s of an old delivery: %v, want ErrClosed", name, err)
			}
		}
	}
	awaitReady(t, other, "inbox", 2)
	if got := drain(t, other, "inbox"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("the queue holds %q", got)
	}
}

// openChannel returns a channel on a new connection, which is closed at the end of the test.
func openChannel(t *testing.T, url string, recovery *amqp.Recovery) *amqp.Channel {
	t.Helper()
	c, err := amqp.DialConfig(url, amqp.Config{Recovery: recovery})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// closeSession closes the channel. When it returns, each letter of the channel is either
// acknowledged or back in the queue.
func closeSession(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	if err := ch.Close(); err != nil {
		t.Fatal(err)
	}
}

func declareInbox(t *testing.T, ch *amqp.Channel, name string, args amqp.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// publishLetters sends persistent letters and returns once the broker has confirmed them all.
func publishLetters(t *testing.T, ch *amqp.Channel, queue string, letters ...string) {
	t.Helper()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirms := make([]*amqp.DeferredConfirmation, len(letters))
	for i, body := range letters {
		p := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
		var err error
		if confirms[i], err = ch.PublishWithDeferredConfirmWithContext(
			t.Context(), "", queue, true, false, p,
		); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range confirms {
		if ok, err := c.WaitContext(t.Context()); err != nil || !ok {
			t.Fatalf("publish %q: confirmed %v, %v", letters[i], ok, err)
		}
	}
}

// consume starts a consumer with the tag "reader". The parameter "prefetch" is the maximum number
// of unacknowledged letters that the consumer gets.
func consume(t *testing.T, ch *amqp.Channel, queue string, prefetch int) <-chan amqp.Delivery {
	t.Helper()
	if err := ch.Qos(prefetch, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.ConsumeWithContext(t.Context(), queue, "reader", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

// patience is the time after which a test fails if its letters do not arrive.
const patience = 2 * time.Minute

func receive(t *testing.T, deliveries <-chan amqp.Delivery, n int) []amqp.Delivery {
	t.Helper()
	timeout := time.After(patience)
	got := make([]amqp.Delivery, 0, n)
	for len(got) < n {
		select {
		case d, open := <-deliveries:
			if !open {
				t.Fatalf("the session ended after %d of %d letters", len(got), n)
			}
			got = append(got, d)
		case <-timeout:
			t.Fatalf("%d of %d letters came", len(got), n)
		}
	}
	return got
}

// awaitReady waits until n letters of a classic queue are ready for delivery. It cannot be used for
// a quorum queue, whose count lags behind.
func awaitReady(t *testing.T, ch *amqp.Channel, queue string, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q.Messages == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d letters of %d are ready", q.Messages, n)
		}
	}
}

// takeOne removes the first letter of a queue. It fails the test unless the body of this letter
// equals the parameter "want".
func takeOne(t *testing.T, ch *amqp.Channel, queue, want string) {
	t.Helper()
	d, ok, err := ch.Get(queue, true)
	if err != nil {
		t.Fatal(err)
	}
	if !ok || string(d.Body) != want {
		t.Fatalf("took letter %q, want %q", d.Body, want)
	}
}

// drain removes all letters from a queue and returns their bodies in order. To find the end of the
// queue, it publishes one more letter.
func drain(t *testing.T, ch *amqp.Channel, queue string) []string {
	t.Helper()
	const end = "the end"
	publishLetters(t, ch, queue, end)
	var got []string
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			t.Fatalf("the queue is empty before its end, after %q", got)
		}
		if string(d.Body) == end {
			return got
		}
		got = append(got, string(d.Body))
	}
}

func bodies(letters []amqp.Delivery) []string {
	got := make([]string, len(letters))
	for i, d := range letters {
		got[i] = string(d.Body)
	}
	return got
}

// numberedLetters returns letters whose bodies are the numbers from "first" to "last", including
// both.
func numberedLetters(first, last int) []string {
	var letters []string
	for i := first; i <= last; i++ {
		letters = append(letters, fmt.Sprint(i))
	}
	return letters
}
