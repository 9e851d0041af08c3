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

// The constant "window" is the number of letters in a window of these tests. The constant "behind"
// is the number of letters that wait after the window.
const (
	window = 200
	behind = 50
)

// TestWindowReturnsWholeOrNotAtAll checks, on a real broker and with a plain client, the rule by
// which package ingest finds out whether it must store letters again. A window is a batch of
// letters that was taken with consume and cancel. The connection dies after that. If the window was
// not acknowledged, it comes back whole, ahead of all other letters, in its original order, with
// every letter flagged redelivered. If it was acknowledged with one frame, it comes back whole or
// not at all, however soon after the frame the connection dies. After the fence, nothing comes
// back.
func TestWindowReturnsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	whole, gone := "whole", "not at all"
	cases := []struct {
		name    string
		die     death
		outcome []string // the outcomes that are allowed
	}{
		{"not acknowledged", func(_ *testing.T, _ int, _ *amqp.Channel, _ uint64, link *testenv.Link) {
			link.Cut()
		}, []string{whole}},
		{
			"acknowledged, but the frame is lost",
			func(t *testing.T, _ int, ch *amqp.Channel, last uint64, link *testenv.Link) {
				link.Swallow(testenv.ToServer, true)
				ackWindow(t, ch, last)
				link.Cut()
			},
			[]string{whole},
		},
		{
			"acknowledged, cut in the middle of the frame",
			func(t *testing.T, _ int, ch *amqp.Channel, last uint64, link *testenv.Link) {
				link.Slice(1)
				link.Delay(time.Millisecond) // the frame has 21 bytes
				ackWindow(t, ch, last)
				time.Sleep(5 * time.Millisecond)
				link.Cut()
			},
			[]string{whole, gone},
		},
		{"acknowledged, cut at once", func(t *testing.T, _ int, ch *amqp.Channel, last uint64, link *testenv.Link) {
			ackWindow(t, ch, last)
			link.Cut()
		}, []string{whole, gone}},
		{
			"acknowledged, cut within 2 ms",
			func(t *testing.T, cut int, ch *amqp.Channel, last uint64, link *testenv.Link) {
				ackWindow(t, ch, last)
				time.Sleep(time.Duration(cut+1) * 2 * time.Millisecond / cuts)
				link.Cut()
			},
			[]string{whole, gone},
		},
		{
			"acknowledged, cut after the fence",
			func(t *testing.T, _ int, ch *amqp.Channel, last uint64, link *testenv.Link) {
				ackWindow(t, ch, last)
				// after this reply, the channel has processed the previous frame
				if err := ch.Qos(1, 0, false); err != nil {
					t.Fatal(err)
				}
				link.Cut()
			},
			[]string{gone},
		},
	}
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			args := amqp.Table{"x-queue-type": kind}
			if kind == "quorum" && node.AtLeast("4.0") {
				args["x-delivery-limit"] = -1 // the default limit of 20 deletes letters; on 3.x, -1 means 0
			}
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					for cut := range cuts {
						got := cutWindow(t, node, cut, args, c.die)
						if !slices.Contains(c.outcome, got) {
							t.Errorf("cut %d: the window came back %s; may come back: %q", cut, got, c.outcome)
						}
						t.Logf("cut %d: the window came back %s", cut, got)
					}
				})
			}
		})
	}
}

// TestOpenWindowIsPassedByWhileItsSessionLives shows a case in which a new session cannot yet know
// whether the broker will return the last window (a batch of letters) of the old session.
//
// In this case, the network drops all data of the old session. As long as no heartbeat has been
// missed, the broker considers the old session alive and keeps its window. A new session then gets
// the letters behind the window first. These letters therefore prove nothing about the window until
// the broker has ended the old session. The old session has an exclusive queue, which disappears
// when the broker has ended that session.
func TestOpenWindowIsPassedByWhileItsSessionLives(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	const inbox = "inbox"
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	observer := openChannel(t, url, nil)
	declareInbox(t, observer, inbox, nil)
	publishLetters(t, observer, inbox, numberedLetters(1, window+behind)...)

	link := testenv.Relay(t, node.AMQPAddr())
	reader := openChannel(t, node.AMQPURLVia(link.Addr(), vhost), nil)
	lockSession(t, reader)
	takeWindow(t, reader, inbox)
	link.Swallow(testenv.ToServer, true)
	link.Swallow(testenv.ToClient, true)

	deliveries := consume(t, observer, inbox, 0)
	passing := receive(t, deliveries, behind)
	if got := bodies(passing); !slices.Equal(got, numberedLetters(window+1, window+behind)) {
		t.Errorf("beside the open window came %q", got)
	}
	if err := tryLock(t, url); !isLocked(err) {
		t.Errorf("while the session lives, its lock answers %v, want 405", err)
	}
	link.Cut()
	awaitSessionEnd(t, url)
	if got := bodies(receive(t, deliveries, window)); !slices.Equal(got, numberedLetters(1, window)) {
		t.Errorf("after the end of its session the window came back as %q", got)
	}
}

// cuts is the number of times that a test cuts a connection. It does so for each combination of the
// test's parameters.
const cuts = 4

// death is a function that ends the connection over which dlo took a window of letters. Before
// that, it may acknowledge the letters of the window up to the tag "last". Some ways to end the
// connection keep the broker from receiving this ack. The parameter "cut" is the number of the
// attempt, counted from 0.
type death func(t *testing.T, cut int, ch *amqp.Channel, last uint64, link *testenv.Link)

// cutWindow fills an inbox, takes a window of letters from it and kills the connection. It returns
// what the broker delivered again to the next session: the window "whole", "not at all", or a
// description of something else.
func cutWindow(t *testing.T, node *testenv.Node, cut int, args amqp.Table, die death) string {
	t.Helper()
	const inbox = "inbox"
	vhost, url := node.VHost(t)
	observer := openChannel(t, url, nil)
	declareInbox(t, observer, inbox, args)
	publishLetters(t, observer, inbox, numberedLetters(1, window+behind)...)

	link := testenv.Relay(t, node.AMQPAddr())
	reader := openChannel(t, node.AMQPURLVia(link.Addr(), vhost), nil)
	lockSession(t, reader)
	closed := reader.NotifyClose(make(chan *amqp.Error, 1))
	taken := takeWindow(t, reader, inbox)
	if got := bodies(taken); !slices.Equal(got, numberedLetters(1, window)) {
		t.Fatalf("the window is %q", got)
	}
	die(t, cut, reader, taken[window-1].DeliveryTag, link)
	<-closed
	awaitSessionEnd(t, url)

	// The test publishes one more letter, with the body "the end", and then reads the inbox. Every
	// letter that it reads before "the end" was still in the inbox.
	publishLetters(t, observer, inbox, "the end")
	var left []amqp.Delivery
	deliveries := consume(t, observer, inbox, 0)
	for {
		d := receive(t, deliveries, 1)[0]
		if string(d.Body) == "the end" {
			break
		}
		left = append(left, d)
	}
	return describeReturn(left)
}

// takeWindow takes the first letters of an inbox as ingest does. It cancels the consumer when the
// window is full, so that the broker cannot deliver more.
func takeWindow(t *testing.T, ch *amqp.Channel, inbox string) []amqp.Delivery {
	t.Helper()
	deliveries := consume(t, ch, inbox, window)
	taken := receive(t, deliveries, window)
	if err := ch.Cancel("reader", false); err != nil {
		t.Fatal(err)
	}
	for d := range deliveries {
		t.Fatalf("letter %s came beyond the prefetch", d.Body)
	}
	return taken
}

func ackWindow(t *testing.T, ch *amqp.Channel, last uint64) {
	t.Helper()
	if err := ch.Ack(last, true); err != nil {
		t.Fatal(err)
	}
}

// describeReturn says whether and how the broker returned the window of letters to the inbox. It
// judges this by the letters that are now in the inbox.
func describeReturn(left []amqp.Delivery) string {
	got := bodies(left)
	switch {
	case slices.Equal(got, numberedLetters(window+1, window+behind)):
		return "not at all"
	case !slices.Equal(got, numberedLetters(1, window+behind)):
		return fmt.Sprintf("in part, or in another order: %q", got)
	}
	for _, d := range left[:window] {
		if !d.Redelivered {
			return fmt.Sprintf("without the redelivered flag on letter %s", d.Body)
		}
	}
	return "whole"
}

// sessionLock is a queue that only the connection of the reader may use. When that connection has
// ended and the broker has noticed this, the broker deletes the queue. A new session therefore
// waits until it can declare the queue. If it began earlier, it would get the letters behind the
// window before the window itself.
const sessionLock = "session lock"

func lockSession(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	if _, err := ch.QueueDeclare(sessionLock, false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
}

// tryLock takes the lock of an inbox on a new connection, which then holds it until the end of the
// test. It returns an error if another connection holds the lock.
func tryLock(t *testing.T, url string) error {
	t.Helper()
	_, err := openChannel(t, url, nil).QueueDeclare(sessionLock, false, false, true, false, nil)
	return err
}

func isLocked(err error) bool {
	var refused *amqp.Error
	return errors.As(err, &refused) && refused.Code == amqp.ResourceLocked
}

// awaitSessionEnd waits until the broker has noticed the end of the reader's connection.
func awaitSessionEnd(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := tryLock(t, url)
		if err == nil {
			return
		}
		if !isLocked(err) || time.Now().After(deadline) {
			t.Fatalf("wait for the end of the reader's connection: %v", err)
		}
	}
}
