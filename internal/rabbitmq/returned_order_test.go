package rabbitmq_test

import (
	"slices"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWhatComesBackStandsBehindWhatCameBackBefore shows why the first window of a session takes all
// letters that earlier sessions may have held.
//
// In the test, one session ends with 32 unacknowledged letters, and the next session ends with the
// first 16 of them. A classic queue returns the 16 letters to their original position. A quorum
// queue puts them behind the other 16 letters, so a window of 16 letters would not come back first.
// A window that takes all 32 letters comes back first and in order from both types of queue.
func TestWhatComesBackStandsBehindWhatCameBackBefore(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	for kind, first := range map[string]string{
		"classic": numberedLetters(1, 1)[0], "quorum": numberedLetters(17, 17)[0],
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const inbox = "inbox"
			vhost, url := node.VHost(t)
			observer := openChannel(t, url, nil)
			args := amqp.Table{"x-queue-type": kind}
			if kind == "quorum" && node.AtLeast("4.0") {
				args["x-delivery-limit"] = -1
			}
			declareInbox(t, observer, inbox, args)
			publishLetters(t, observer, inbox, numberedLetters(1, 40)...)
			die := func(n int) []string {
				link := testenv.Relay(t, node.AMQPAddr())
				reader := openChannel(t, node.AMQPURLVia(link.Addr(), vhost), nil)
				closed := reader.NotifyClose(make(chan *amqp.Error, 1))
				taken := bodies(receive(t, consume(t, reader, inbox, n), n))
				link.Cut()
				<-closed
				awaitReady(t, observer, inbox, 40)
				return taken
			}
			if got := die(32); !slices.Equal(got, numberedLetters(1, 32)) {
				t.Fatalf("first %q", got)
			}
			if got := die(16); !slices.Equal(got, numberedLetters(1, 16)) {
				t.Fatalf("then %q", got)
			}
			all := die(32)
			if all[0] != first {
				t.Errorf(
					"%s: after letters 1 to 16 came back the queue begins with %s, want %s", node.Version(), all[0],
					first,
				)
			}
			if again := die(32); !slices.Equal(again, all) {
				t.Errorf("%s: a window of all that came back comes back as %q, it was %q", node.Version(), again, all)
			}
		})
	}
}
