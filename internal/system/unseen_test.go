package system

import (
	"fmt"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// reject rejects n messages of the audit's queue one by one. It starts no consumer.
func (a *audit) reject(n int) {
	a.t.Helper()
	ch := a.channel()
	for range n {
		eventually(a.t, "a letter to reject", func() bool {
			d, ok, err := ch.Get(a.queue, false)
			if err != nil {
				a.t.Fatal(err)
			}
			return ok && d.Reject(false) == nil
		})
	}
}

// redeclare deletes the audit's queue and declares it with other arguments.
func (a *audit) redeclare(args amqp.Table) {
	a.t.Helper()
	ch := a.channel()
	if _, err := ch.QueueDelete(a.queue, false, false, false); err != nil {
		a.t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(a.queue, true, false, false, false, args); err != nil {
		a.t.Fatal(err)
	}
}

// TestLettersInAQueueThatIsLost deletes or changes queues after dlo has sent letters to them, while
// dlo watches these letters. The letters must be held with the reason. They must not be settled,
// and dlo must not watch them for ever.
func TestLettersInAQueueThatIsLost(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, url := testenv.VHost(t)
	const letters = 10
	management := node.ManagementURLOf("guest:guest")
	p := newChild(
		t, url,
		fmt.Sprintf(
			"brokers: [{url: %%AMQP%%, management: %q}]\ndefault: {retry: {delays: [4s]}}\nrequeue: {rate: 0, watch: 2s}\n",
			management,
		),
	)
	p.Start("")
	p.Draining()
	queues := map[string]*audit{}
	for _, name := range []string{"lives", "deleted", "exclusive", "replaced", "stream", "expires"} {
		queues[name] = newAudit(t, url, name, nil)
		queues[name].publish(letters, func(i int) (string, string) { return fmt.Sprintf("%s %d", name, i), "" })
		queues[name].reject(letters)
	}
	queues["lives"].work()
	in := func(name, state string) int {
		return p.count("letters l JOIN origins o ON o.id = l.origin", `o.queue = $1 AND l.state = $2`, name, state)
	}
	eventually(t, "letters of it wait", func() bool { return in("expires", "scheduled") == letters })
	queues["expires"].redeclare(amqp.Table{
		"x-message-ttl": int32(100), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "expires",
	})
	queues["stream"].redeclare(amqp.Table{"x-queue-type": "stream"})
	for _, name := range []string{"deleted", "exclusive", "replaced", "stream"} {
		eventually(t, "letters of it are back", func() bool { return in(name, "requeued") == letters })
	}

	if _, err := queues["deleted"].channel().QueueDelete("deleted", false, false, false); err != nil {
		t.Fatal(err)
	}
	if _, err := queues["exclusive"].channel().QueueDelete("exclusive", false, false, false); err != nil {
		t.Fatal(err)
	}
	owner, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := owner.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("exclusive", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	owner.Close()
	if _, err := queues["replaced"].channel().QueueDelete("replaced", false, false, false); err != nil {
		t.Fatal(err)
	}
	successor := queues["replaced"].channel() // its connection stays open, so the exclusive queue stays
	if _, err := successor.QueueDeclare("replaced", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := successor.Consume("replaced", "", true, true, false, false, nil); err != nil {
		t.Fatal(err)
	}

	for name, why := range map[string]string{
		"deleted":   "queue deleted is gone, with everything in it",
		"exclusive": "queue exclusive %, with everything in it", // gone, or replaced if dlo looks before its owner leaves
		"replaced":  "queue replaced was deleted, with everything in it, and declared again with other properties",
		"stream":    "queue stream is a stream, and reading takes nothing out of a stream",
		"expires":   "messages in queue expires expire after 100ms, and the queue is empty and has no consumer",
	} {
		eventually(t, "letters of "+name+" are held", func() bool { return in(name, "held") == letters })
		if n := p.count(
			"letters l JOIN origins o ON o.id = l.origin", `o.queue = $1 AND l.why LIKE $2 AND l.unverified = 0`, name,
			why+"%; requeue it only if a second arrival does no harm",
		); n != letters {
			t.Errorf("%s: %d of %d letters say why", name, n, letters)
		}
	}
	if n := in("lives", "settled"); n != letters {
		t.Errorf("%d of %d letters of a queue that lives are settled", n, letters)
	}
}
