package rabbitmq_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAWindowThatClosedEarlyComesBackFirst takes windows (batches of letters) that are full after
// one letter. Meanwhile, a quorum queue sends more letters to the consumer. When dlo cancels the
// consumer, the queue puts these letters back at its front, flagged redelivered. All of them must
// become part of the window. Otherwise they would be ahead of the window when the session dies
// (4.3.6: 15 of 40 windows of this test; never seen on 3.10.8 and 4.0.5). If they are so many that
// their ack might not be whole, the session must end instead, and the next one takes them together.
//
// Every second window is acknowledged as the connection is cut. It must come back whole or not at
// all.
func TestAWindowThatClosedEarlyComesBackFirst(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const queue, letters = "inbox", 64
			vhost, url := node.VHost(t)
			observer := openChannel(t, url, nil)
			args := amqp.Table{"x-queue-type": kind}
			if kind == "quorum" && node.AtLeast("4.0") {
				args["x-delivery-limit"] = -1
			}
			declareInbox(t, observer, queue, args)
			relay := testenv.Relay(t, node.AMQPAddr())
			link := connect(t, rabbitmq.Broker{
				URL:      node.AMQPURLVia(relay.Addr(), vhost),
				Exchange: "dlo.dlx",
				Inboxes:  []string{queue},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			session := func() *rabbitmq.Inbox { // each session has its own Inbox, so that no back-off applies
				t.Helper()
				inbox := link.Inbox(queue, rabbitmq.Limits{Letters: letters, Bytes: 1 << 20, Linger: time.Microsecond})
				t.Cleanup(inbox.Close)
				if _, err := inbox.Open(ctx, deadletter.InboxSession{Prefetch: letters}); err != nil {
					t.Fatal(err)
				}
				return inbox
			}
			again := 0
			for try := range 12 {
				inbox := session()
				published := make(chan struct{})
				go func() {
					defer close(published)
					for _, body := range numberedLetters(1, letters) {
						observer.Publish("", queue, false, false, amqp.Publishing{Body: []byte(body), DeliveryMode: 2})
					}
				}()
				w, err := inbox.Next(ctx)
				<-published
				for ; err != nil && strings.Contains(
					err.Error(), "are taken again together",
				); w, err = inbox.Next(ctx) {
					again++
					if _, err := inbox.Open(ctx, deadletter.InboxSession{Prefetch: letters}); err != nil {
						t.Fatal(err)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				var open []deadletter.Fingerprint
				for i := range w {
					open = append(open, w[i].Fingerprint)
				}
				acked := try%2 == 1
				if acked {
					publishLetters(t, observer, queue, "the last one")
					if err := inbox.Ack(w); err != nil {
						t.Fatal(err)
					}
				}
				relay.Cut()
				inbox.Close()
				inbox = session()
				back, whole, err := inbox.Resume(ctx, open)
				if err != nil {
					t.Fatal(err)
				}
				ours := slices.ContainsFunc(
					back, func(a deadletter.Arrival) bool { return slices.Contains(open, a.Fingerprint) },
				)
				if !whole && (!acked || ours) {
					t.Errorf(
						"try %d: a window of %d came back as %d others, the first %q", try, len(w), len(back),
						back[0].Body,
					)
				}
				inbox.Close()
				if _, err := observer.QueuePurge(queue, false); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%s: %d windows were taken again", node.Version(), again)
		})
	}
}
