package system

import (
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAClusterNodeIsKilledUnderLoad kills each of three cluster nodes in turn and restarts it,
// while letters arrive and are requeued. dlo and the worker connect through a balancer, which moves
// them to the next node. No letter may be lost. A letter that comes again must be recognised or
// held, and each copy must carry a token of the store.
func TestAClusterNodeIsKilledUnderLoad(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	c := testenv.StartCluster(t)
	vhost, _ := c.Nodes[0].VHost(t)
	balancer := testenv.Relay(t, c.Nodes[0].AMQPAddr())
	url := c.Nodes[0].AMQPURLVia(balancer.Addr(), vhost)
	a := newAudit(t, url, "work", amqp.Table{"x-queue-type": "quorum"})
	// As in TestBrokerKilledUnderLoad, letters are published directly to the inbox.
	a.to, a.header = "dlo.letters", amqp.Table{
		"x-death": rejectedIn("work", "", "work", time.Unix(1763625600, 0)),
	}
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()
	time.Sleep(13 * time.Second) // a quorum queue younger than 12 s may not survive a kill
	const kills, letters = 6, 1000
	for kill := range kills {
		a.work()
		a.publish(letters, func(i int) (string, string) {
			n := kill*letters + i
			if n%5 == 0 {
				return fmt.Sprintf("one of three bodies: %d", n%3), ""
			}
			return fmt.Sprintf("letter %d", n), fmt.Sprint(n)
		})
		victim := kill % testenv.Nodes
		c.Nodes[victim].Kill9()
		balancer.Lead(c.Nodes[(victim+1)%testenv.Nodes].AMQPAddr())
		balancer.Cut()
		a.reconnect(url)
		a.work()
		time.Sleep(3 * time.Second)
		if err := c.Restart(t.Context(), victim); err != nil {
			t.Fatal(err)
		}
	}
	total := kills * letters
	within(
		t, 10*time.Minute, "each letter has a row",
		func() bool { return p.letters() >= total && ready(t, a.conn, "dlo.letters") == 0 },
	)
	for _, node := range []int{1, 2} { // the queues return the letters that they kept for a node that was killed
		if err := c.Lead(t.Context(), vhost, "dlo.letters", node); err != nil {
			t.Fatal(err)
		}
	}
	quiet := 0
	within(t, 10*time.Minute, "all letters back or held", func() bool {
		if p.letters("settled", "held") == p.letters() && ready(t, a.conn, "work") == 0 &&
			ready(t, a.conn, "dlo.letters") == 0 {
			quiet++
		} else {
			quiet = 0
		}
		return quiet > 100
	})
	surplus, duplicates := a.checkStore(p)
	suspects := p.letters("held")
	t.Logf(
		"%s: %d letters, %d kills: %d rows more than letters, %d suspects held, %d duplicate copies",
		c.Nodes[0].Version(), total, kills, surplus, suspects, duplicates,
	)
	if surplus > suspects {
		t.Errorf("%d rows more than letters but only %d suspects held", surplus, suspects)
	}
}
