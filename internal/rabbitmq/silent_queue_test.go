package rabbitmq_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestASilentQueuePutsNoOtherInDoubt sends one batch to healthy queues and to a quorum queue. Like
// a queue without a leader, this quorum queue does not respond. The confirms of the healthy queues
// must arrive and count, although an earlier confirm, that of the silent queue, is missing.
//
// The silent queue blocks the channel of the batch, and the broker does not close this channel. The
// publisher must therefore use another channel for the next batch at once.
func TestASilentQueuePutsNoOtherInDoubt(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	declare(t, url, map[string]amqp.Table{
		"silent": {"x-queue-type": "quorum"}, "quorum": {"x-queue-type": "quorum"}, "classic": nil,
	})
	link := publisherThatWaits(t, url, 32, 3*time.Second)
	silence(t, node, vhost, "silent")
	var ps []deadletter.Publishing
	for i, queue := range []string{"classic", "silent", "quorum", "classic", "silent", "quorum", "classic"} {
		p := messages(queue, 1, []byte("letter"))[0]
		p.Token = deadletter.Token(fmt.Sprint("token ", i))
		p.Properties.Headers[deadletter.HeaderToken] = string(p.Token)
		ps = append(ps, p)
	}
	answered := make(chan []deadletter.Outcome, 2)
	go func() {
		answered <- link.Publish(t.Context(), link.Session(), ps)
		answered <- link.Publish(t.Context(), link.Session(), ps[2:4])
	}()
	for _, batch := range [][]deadletter.Publishing{ps, ps[2:4]} {
		select {
		case outcomes := <-answered:
			for i, o := range outcomes {
				want := deadletter.OutcomeConfirmed
				if batch[i].Queue == "silent" {
					want = deadletter.OutcomeInDoubt
				}
				if o.Token != batch[i].Token || o.Kind != want {
					t.Errorf(
						"message %d, to %s: %s, %s (%s), want %s", i, batch[i].Queue, o.Token, o.Kind, o.Detail, want,
					)
				}
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the publisher waits for the silent queue")
		}
	}
}

// silence suspends a quorum queue's process until the end of the test. The process is alive but
// does not respond.
func silence(t *testing.T, node *testenv.Node, vhost, queue string) {
	t.Helper()
	do := func(what string) error {
		_, err := node.Ctl(
			"eval", fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)),
			{Name, _} = amqqueue:get_pid(Q), ok = sys:%s(Name).`, vhost, queue, what),
		)
		return err
	}
	if err := do("suspend"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := do("resume"); err != nil {
			t.Error(err)
		}
	})
}
