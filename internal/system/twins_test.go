package system

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTwinsOfAnAcknowledgedWindow kills dlo after it has acknowledged a batch of letters (a
// window). It then publishes twins: new letters that equal the acknowledged ones. The next dlo is
// killed while it holds the twins, so that RabbitMQ returns them as redelivered. dlo must not
// mistake the twins for the acknowledged letters: no letter may be lost, and each must have its own
// row.
func TestTwinsOfAnAcknowledgedWindow(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	const n = 4
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			conn := publishParked(t, url, "dlo.letters", 0, amqp.Table{"x-queue-type": kind})
			p := newChild(
				t, url, "brokers: [{url: \"%AMQP%\", inboxes: [dlo.letters], accept_limited: [dlo.letters]}]\n"+patient,
			)
			publishTwins(t, conn, n)
			p.start("ingest: fenced=1")
			p.Crashed("a crash after the ack")
			publishTwins(t, conn, n)
			p.start("ingest: decided=1")
			p.Crashed("a crash with twins in hand")
			p.start("")
			eventually(
				t, "every letter is out of the queue",
				func() bool { return ready(t, conn, "dlo.letters") == 0 && p.ask(openOf) == 0 },
			)
			if rows, suspects := p.letters(), p.count("letters", "suspect = 1"); rows != 2*n || suspects > n {
				t.Errorf("%d rows of %d letters, %d are suspects", rows, 2*n, suspects)
			}
		})
	}
}

// TestAWindowOfTwinsThatComesBack kills dlo after it has stored a batch of letters (a window) and
// before it acknowledges them. The letters are equal byte for byte, and all of them come back. If
// RabbitMQ marks redelivered messages, dlo must merge the letters into their rows. A classic inbox
// of RabbitMQ 4.1 and later does not mark them, so dlo must store each letter in another row and
// hold it as a suspect.
func TestAWindowOfTwinsThatComesBack(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	const n = 8
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			conn := publishParked(t, url, "dlo.letters", 0, amqp.Table{"x-queue-type": kind})
			publishTwins(t, conn, n)
			p := newChild(
				t, url, "brokers: [{url: \"%AMQP%\", inboxes: [dlo.letters], accept_limited: [dlo.letters]}]\n"+patient,
			)
			p.start("ingest: committed=1")
			p.Crashed("a crash before the ack")
			p.start("")
			eventually(
				t, "every letter is out of the queue",
				func() bool { return ready(t, conn, "dlo.letters") == 0 && p.ask(openOf) == 0 },
			)
			doubtful := 0
			if kind == "classic" && !strings.HasPrefix(node.Version(), "3.") &&
				!strings.HasPrefix(node.Version(), "4.0.") {
				doubtful = n
			}
			if rows, suspects := p.letters(), p.count(
				"letters", "suspect = 1",
			); rows != n+doubtful || suspects != doubtful {
				t.Errorf("%d rows of %d letters, %d are suspects, want %d", rows, n, suspects, doubtful)
			}
		})
	}
}

// publishTwins publishes n letters to dlo.letters and waits for each confirm. The letters are equal
// byte for byte.
func publishTwins(t *testing.T, conn *amqp.Connection, n int) {
	t.Helper()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for range n {
		confirm, err := ch.PublishWithDeferredConfirm("", "dlo.letters", true, false, amqp.Publishing{
			Body: []byte("one of many"), DeliveryMode: 2,
		})
		if err != nil || !confirm.Wait() {
			t.Fatal("not confirmed", err)
		}
	}
}
