package testenv

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestACluster uses a quorum queue on three nodes. It cuts one node off the network and kills
// another. Each time, the letters of the queue must be available on the other nodes.
func TestACluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, "cluster_partition_handling = pause_minority")
	vhost, url := c.Nodes[1].VHost(t)
	ch := open(t, url)
	if _, err := ch.QueueDeclare("inbox", true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	publish(t, ch, "inbox", "one", "two", "three")

	c.Isolate(0)
	if err := c.Missed(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	d, _, err := open(t, c.Nodes[2].AMQPURL(vhost)).Get("inbox", true)
	if err != nil || string(d.Body) != "one" {
		t.Errorf("without a node that cannot be reached: %q, %v", d.Body, err)
	}
	c.Rejoin(0)
	if err := c.Await(t.Context(), 0, Nodes); err != nil {
		t.Fatal(err)
	}
	if err := c.Lead(t.Context(), vhost, "inbox", 2); err != nil {
		t.Fatal(err)
	}
	c.Nodes[2].Kill9()
	if err := c.Missed(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := take(t, open(t, c.Nodes[0].AMQPURL(vhost)), "inbox", 2); got[1] != "three" {
		t.Errorf("on the node that was away: %q", got)
	}
}
