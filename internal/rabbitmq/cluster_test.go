package rabbitmq_test

import (
	"context"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// clustered is an inbox in a cluster, with a session of dlo that is connected through a balancer.
type clustered struct {
	*rabbitmq.Inbox
	t        *testing.T
	c        *testenv.Cluster
	vhost    string
	balancer *testenv.Link
}

const (
	clusterInbox  = "dlo.letters"
	clusterMarker = "dlo.epoch.mark of the test"
	clusterWindow = 40
	clusterAll    = 50
)

// inCluster creates an inbox with 50 letters. The parameter "home" is the node of a classic queue,
// or of the leader of a quorum queue. The parameter "node" is the node to which the session of the
// inbox connects.
func inCluster(t *testing.T, c *testenv.Cluster, kind string, home, node int) *clustered {
	t.Helper()
	vhost, url := c.Nodes[home].VHost(t)
	args := amqp.Table{"x-queue-type": kind}
	if kind == "quorum" && c.Nodes[home].AtLeast("4.0") {
		args["x-delivery-limit"] = int64(-1)
	}
	ch := openChannel(t, url, nil)
	declareInbox(t, ch, clusterInbox, args)
	publishLetters(t, ch, clusterInbox, numberedLetters(1, clusterAll)...)
	balancer := testenv.Relay(t, c.Nodes[node].AMQPAddr())
	link := connect(t, rabbitmq.Broker{
		URL:           c.Nodes[node].AMQPURLVia(balancer.Addr(), vhost),
		Inboxes:       []string{clusterInbox},
		AcceptLimited: []string{clusterInbox},
	})
	inbox := link.Inbox(clusterInbox, rabbitmq.Limits{
		Letters: clusterWindow, Bytes: 1 << 20, Linger: 300 * time.Millisecond,
	})
	t.Cleanup(inbox.Close)
	return &clustered{Inbox: inbox, t: t, c: c, vhost: vhost, balancer: balancer}
}

// open begins a session and logs how long the start took.
func (c *clustered) open(marker string) deadletter.SessionFacts {
	c.t.Helper()
	began := time.Now()
	s, err := c.Open(c.t.Context(), deadletter.InboxSession{Marker: marker, Prefetch: clusterWindow})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("a session began after %.1f s: %s; %q", time.Since(began).Seconds(), s.Marker, s.Late)
	return s
}

// openMarked begins a session, and creates a marker on the node of the session. A marker is a queue
// with one message. When the broker restarts, this message disappears.
func (c *clustered) openMarked() {
	c.t.Helper()
	c.open("")
	if err := c.MakeMarker(clusterMarker); err != nil {
		c.t.Fatal(err)
	}
}

// fetch takes a window and checks that it contains the letters with the numbers from "first" to
// "last". If "redelivered" is true, all of them must be flagged as redelivered. If "redelivered" is
// false, none of them may be flagged.
func (c *clustered) fetch(first, last int, redelivered bool) []deadletter.Arrival {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	w, err := c.Next(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	got := make([]string, len(w))
	for n, a := range w {
		got[n] = string(a.Body)
		if a.Redelivered != redelivered {
			c.t.Errorf("letter %s: redelivered %v", a.Body, a.Redelivered)
		}
	}
	if !slices.Equal(got, numberedLetters(first, last)) {
		c.t.Errorf("came %q, want %d to %d", got, first, last)
	}
	return w
}

// settle acknowledges a window, and waits until the broker has processed the acknowledgement.
func (c *clustered) settle(w []deadletter.Arrival) {
	c.t.Helper()
	if err := c.Ack(w); err != nil {
		c.t.Fatal(err)
	}
	if err := c.Fence(); err != nil {
		c.t.Fatal(err)
	}
}

// expectNoLetter checks that no letter arrives within the time d.
func (c *clustered) expectNoLetter(d time.Duration) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	defer cancel()
	if w, err := c.Next(ctx); len(w) > 0 || ctx.Err() == nil {
		c.t.Errorf("%d letters came, the first is %q; %v", len(w), w[0].Body, err)
	}
}

// moveTo directs new connections to a node and closes the existing ones.
func (c *clustered) moveTo(node int) {
	c.balancer.Lead(c.c.Nodes[node].AMQPAddr())
	c.balancer.Cut()
}

func (c *clustered) restart(node int) {
	c.t.Helper()
	if err := c.c.Restart(c.t.Context(), node); err != nil {
		c.t.Fatal(err)
	}
}

// awaitNotHeld waits until no consumer holds letters of the inbox. It is needed in addition to
// Fence, because Fence returns too early if the leader of a quorum queue is on another node.
func (c *clustered) awaitNotHeld() {
	c.t.Helper()
	for end := time.Now().Add(10 * time.Second); c.held(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal("letters are in somebody's hands")
		}
	}
}

func (c *clustered) held() bool {
	c.t.Helper()
	held, err := c.Held()
	if err != nil {
		c.t.Fatal(err)
	}
	return held
}

// moveLeader moves the inbox's leader to a node.
func (c *clustered) moveLeader(node int) {
	c.t.Helper()
	if err := c.c.Lead(c.t.Context(), c.vhost, clusterInbox, node); err != nil {
		c.t.Fatal(err)
	}
}

// TestAWindowInACluster loses a node while dlo has a window: a batch of letters that the broker has
// delivered and that are not acknowledged yet. The test checks what happens to these letters. It
// repeats the experiment of window_return_test.go on three nodes.
func TestAWindowInACluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.StartCluster(t)

	t.Run("the leader moves", func(t *testing.T) {
		c := inCluster(t, cluster, "quorum", 1, 0)
		c.open("")
		w := c.fetch(1, clusterWindow, false)
		c.moveLeader(2)
		c.settle(w)
		c.fetch(clusterWindow+1, clusterAll, false)
		c.moveLeader(1)
		c.balancer.Cut()
		c.open("")
		c.settle(c.fetch(clusterWindow+1, clusterAll, true))
		c.awaitNotHeld()
		c.expectNoLetter(3 * time.Second)
	})

	t.Run("the leader is killed", func(t *testing.T) {
		c := inCluster(t, cluster, "quorum", 1, 0)
		c.open("")
		w := c.fetch(1, clusterWindow, false)
		cluster.Nodes[1].Kill9()
		c.settle(w)
		w = c.fetch(clusterWindow+1, clusterAll, false)
		c.restart(1)
		c.settle(w)
		c.balancer.Cut()
		c.open("")
		c.expectNoLetter(3 * time.Second)
	})

	t.Run("the node of the connection is killed, classic", func(t *testing.T) {
		c := inCluster(t, cluster, "classic", 1, 0)
		c.openMarked()
		c.fetch(1, clusterWindow, false)
		cluster.Nodes[0].Kill9()
		c.moveTo(2)
		if s := c.open(clusterMarker); s.Marker != deadletter.MarkerUnknown {
			t.Errorf("the marker, whose node is away: %s", s.Marker)
		}
		w := c.fetch(1, clusterWindow, true)
		c.restart(0)
		c.settle(w)
		c.settle(c.fetch(clusterWindow+1, clusterAll, false))
	})

	// The node is killed, so that the consumer on it is cancelled. The quorum queue keeps the
	// letters of the window for this consumer. A new session therefore gets the letters behind the
	// window first, and the window itself only later.
	t.Run("the node of the connection is killed, quorum", func(t *testing.T) {
		c := inCluster(t, cluster, "quorum", 1, 0)
		c.openMarked()
		c.fetch(1, clusterWindow, false)
		cluster.Nodes[0].Kill9()
		c.moveTo(2)
		s := c.open(clusterMarker)
		if s.Marker != deadletter.MarkerUnknown {
			t.Errorf("the marker, whose node is away: %s", s.Marker)
		}
		if s.Late == "" || !c.held() {
			t.Errorf("nothing says that the window is kept: %q", s.Late)
		}
		c.settle(c.fetch(clusterWindow+1, clusterAll, false))
		c.restart(0)
		if !cluster.Nodes[0].AtLeast("4.3") { // 4.3 returns the window after a minute, or when the node is back
			c.expectNoLetter(3 * time.Second)
			if !c.held() {
				t.Error("with the node back: nothing says that the window is kept")
			}
			c.moveLeader(2)
		}
		c.settle(c.fetch(1, clusterWindow, true))
		c.awaitNotHeld()
	})

	// The broker may forget acks when the node dies, as it does when it restarts. After a restart,
	// the marker of a session is gone. Here the marker is on another node, so the session cannot
	// notice in this way that acks were forgotten.
	t.Run("the node of a classic inbox is killed", func(t *testing.T) {
		c := inCluster(t, cluster, "classic", 1, 0)
		c.openMarked()
		c.settle(c.fetch(1, clusterWindow, false))
		c.settle(c.fetch(clusterWindow+1, clusterAll, false))
		ended := make(chan error, 1)
		go func() {
			_, err := c.Next(t.Context())
			ended <- err
		}()
		time.Sleep(time.Second)
		cluster.Nodes[1].Kill9()
		t.Logf("the session ended: %v", <-ended)
		back := make(chan deadletter.SessionFacts, 1)
		go func() {
			s, _ := c.Open(t.Context(), deadletter.InboxSession{Marker: clusterMarker, Prefetch: clusterWindow})
			back <- s
		}()
		time.Sleep(2 * time.Second)
		c.restart(1)
		if s := <-back; s.Late == "" || s.Marker != deadletter.MarkerThere {
			t.Errorf("the inbox was away: %q, %s", s.Late, s.Marker)
		}
	})
}

// TestANodeIsCutOffFromItsCluster disconnects a node from the other nodes of its cluster, while dlo
// is connected to it. In this cluster, a node without a majority stops its work. dlo sends its acks
// to this node and waits for them with Fence, but the acks never reach the queue.
func TestANodeIsCutOffFromItsCluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.StartCluster(t, "cluster_partition_handling = pause_minority")
	for _, kind := range []string{"quorum", "classic"} {
		t.Run(kind, func(t *testing.T) {
			c := inCluster(t, cluster, kind, 1, 0)
			c.openMarked()
			w := c.fetch(1, clusterWindow, false)
			cluster.Isolate(0)
			if err := c.Ack(w); err != nil {
				t.Fatal(err)
			}
			t.Logf("acknowledged and fenced on a node that is cut off: %v", c.Fence())
			if err := cluster.Missed(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			c.moveTo(2)
			s := c.open(clusterMarker)
			if s.Marker == deadletter.MarkerThere && s.Late == "" {
				t.Error("nothing says that what was acknowledged may come back")
			}
			cluster.Rejoin(0)
			if err := cluster.Await(t.Context(), 0, testenv.Nodes); err != nil {
				t.Fatal(err)
			}
			if kind == "quorum" {
				c.moveLeader(2)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			again, fresh := 0, 0
			for fresh < clusterAll-clusterWindow || c.held() {
				w, err := c.Next(ctx)
				if err != nil {
					t.Fatalf("%d letters came again, %d for the first time: %v", again, fresh, err)
				}
				for _, a := range w {
					if a.Redelivered {
						again++
					} else {
						fresh++
					}
				}
				c.settle(w)
				time.Sleep(2 * time.Second)
			}
			t.Logf("%d letters came again, %d for the first time", again, fresh)
			if again != 0 && again != clusterWindow || fresh != clusterAll-clusterWindow {
				t.Errorf("%d letters came again, %d for the first time: the window came back in part", again, fresh)
			}
		})
	}
}
