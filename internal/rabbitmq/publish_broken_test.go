package rabbitmq_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher returns a link whose publishing connection is open.
func publisher(t *testing.T, url string, inFlight int) *rabbitmq.Link {
	t.Helper()
	return publisherThatWaits(t, url, inFlight, 30*time.Second)
}

// publisherThatWaits returns a link whose publishing connection is open. The link waits for a
// confirm as long as the parameter "confirm" says.
func publisherThatWaits(t *testing.T, url string, inFlight int, confirm time.Duration) *rabbitmq.Link {
	t.Helper()
	link := runLink(t, rabbitmq.Broker{URL: url, InFlight: inFlight, ConfirmTimeout: confirm})
	if err := link.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return link
}

// runLink returns a link that connects, and that stops at the end of the test.
func runLink(t *testing.T, b rabbitmq.Broker) *rabbitmq.Link {
	t.Helper()
	b.Name = "main"
	link, err := rabbitmq.Connect(b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		link.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return link
}

func messages(queue string, n int, body []byte) []deadletter.Publishing {
	var ps []deadletter.Publishing
	for i := range n {
		ps = append(ps, deadletter.Publishing{
			Token: deadletter.Token(fmt.Sprint("token ", i)), Queue: queue, Body: body,
			Properties: deadletter.Properties{
				DeliveryMode: 2,
				Headers:      deadletter.Table{deadletter.HeaderToken: fmt.Sprint("token ", i)},
			},
		})
	}
	return ps
}

func kinds(outcomes []deadletter.Outcome) map[deadletter.OutcomeKind]int {
	count := map[deadletter.OutcomeKind]int{}
	for _, o := range outcomes {
		count[o.Kind]++
	}
	return count
}

// TestAConnectionThatBreaksRefusesNoMessage closes connections in the middle of a batch. The
// message that is being sent must be in doubt, because it may have arrived. The messages after it
// must count as not sent. None of them may count as rejected, because dlo holds a rejected letter
// permanently.
func TestAConnectionThatBreaksRefusesNoMessage(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	const batch = 64
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	declare(t, url, map[string]amqp.Table{"work": nil})
	relay := testenv.Relay(t, node.AMQPAddr())
	observer := openChannel(t, url, nil)
	for try := range 3 {
		relay.Slice(0)
		relay.Delay(0)
		link := publisher(t, node.AMQPURLVia(relay.Addr(), vhost), batch)
		// opens the channel
		if got := kinds(link.Publish(t.Context(), link.Session(), messages("work", 1, nil))); got[deadletter.OutcomeConfirmed] != 1 {
			t.Fatal(got)
		}
		before, err := observer.QueueDeclarePassive("work", true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		relay.Slice(4 << 10) // so slow that the batch cannot have ended
		relay.Delay(10 * time.Millisecond)
		sent := make(chan []deadletter.Outcome, 1)
		go func() {
			sent <- link.Publish(
				t.Context(), link.Session(), messages("work", batch, bytes.Repeat([]byte("x"), 256<<10)),
			)
		}()
		awaitReady(t, observer, "work", before.Messages+1)
		relay.Cut()
		outcomes := <-sent
		got := kinds(outcomes)
		if got[deadletter.OutcomeConfirmed]+got[deadletter.OutcomeInDoubt]+got[deadletter.OutcomeUnsent] != batch ||
			got[deadletter.OutcomeInDoubt] == 0 || got[deadletter.OutcomeUnsent] == 0 {
			t.Errorf("try %d: %v, want some of %d in doubt and the rest unsent", try, got, batch)
		}
		for _, o := range outcomes {
			if strings.Contains(o.Detail, "encoded") || strings.Contains(o.Detail, "the broker closed the channel") {
				t.Errorf("try %d: the network broke, and the outcome blames another: %s: %s", try, o.Kind, o.Detail)
			}
		}
	}
}

// TestWhatTheBrokerAnswers publishes to a queue that takes messages, to one that refuses them, and
// to one that does not exist. Only the first message counts as confirmed.
func TestWhatTheBrokerAnswers(t *testing.T) {
	t.Parallel()
	_, url := testenv.Broker(t).VHost(t)
	declare(t, url, map[string]amqp.Table{
		"work": nil,
		"full": {"x-max-length": int32(0), "x-overflow": "reject-publish"},
	})
	link := publisher(t, url, 8)
	ps := messages("work", 3, []byte("x"))
	ps[1].Queue, ps[2].Queue = "full", "nowhere"
	outcomes := link.Publish(t.Context(), link.Session(), ps)
	for i, want := range []deadletter.OutcomeKind{
		deadletter.OutcomeConfirmed, deadletter.OutcomeNacked, deadletter.OutcomeReturned,
	} {
		if got := outcomes[i]; got.Kind != want || got.Token != ps[i].Token {
			t.Errorf("message for %s: %s (%s), want %s", ps[i].Queue, got.Kind, got.Detail, want)
		}
	}
}

// TestAMessageThatCannotBeEncodedIsRefusedAlone checks that dlo finds the error before it writes a
// byte of the message. The rest of the batch must be confirmed on the same channel.
func TestAMessageThatCannotBeEncodedIsRefusedAlone(t *testing.T) {
	t.Parallel()
	_, url := testenv.Broker(t).VHost(t)
	declare(t, url, map[string]amqp.Table{"work": nil})
	link := publisher(t, url, 8)
	ps := messages("work", 5, []byte("x"))
	ps[1].Properties.Headers["unknown to AMQP"] = uint64(1)
	ps[2].Properties.Type = strings.Repeat("t", 256)
	ps[3].Queue = strings.Repeat("q", 256)
	outcomes := link.Publish(t.Context(), link.Session(), ps)
	for i, want := range []deadletter.OutcomeKind{
		deadletter.OutcomeConfirmed, deadletter.OutcomeRefused, deadletter.OutcomeRefused, deadletter.OutcomeRefused,
		deadletter.OutcomeConfirmed,
	} {
		if got := outcomes[i]; got.Kind != want ||
			want == deadletter.OutcomeRefused && !strings.Contains(got.Detail, "it cannot be encoded: ") {
			t.Errorf("message %d: %s (%s), want %s", i, got.Kind, got.Detail, want)
		}
	}
}
