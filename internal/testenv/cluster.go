package testenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Nodes is the number of nodes in a cluster. A cluster of three survives the loss of one node.
const Nodes = 3

// Cluster is a RabbitMQ cluster of three private nodes. The traffic between the nodes goes through
// relays. A test can therefore cut the network without privileges on the machine.
type Cluster struct {
	Nodes [Nodes]*Node

	names [Nodes]*names
	// indexed by the node that dials, then by the node that is dialled; nil from a node to itself
	lines [Nodes][Nodes]*Link
}

// tick is the number of seconds of silence after which a node considers another node gone.
// RabbitMQ's default is 60.
const tick = 8

// StartCluster starts a cluster for one test and stops it at the end of the test. The start takes 7
// to 30 s. DLO_TEST_BROKER sets the version. The parameter "conf" contains further lines of
// rabbitmq.conf for all nodes.
//
// StartCluster is for `make soak`. Without DLO_SOAK=1, it skips the test. If RabbitMQ is not
// installed, it skips or fails the test in the same way as Broker.
func StartCluster(t testing.TB, conf ...string) *Cluster {
	t.Helper()
	Soak(t)
	i, err := findInstallation(os.Getenv(brokerVariable))
	if err != nil {
		Unavailable(t, fmt.Errorf("cluster of this test: %w", err))
	}
	began := time.Now()
	c := &Cluster{}
	t.Cleanup(func() { c.stop() })
	if err := c.claim(i, conf); err != nil {
		t.Fatalf("cluster of this test: %v", err)
	}
	if err := c.connect(t); err != nil {
		t.Fatalf("cluster of this test: %v", err)
	}
	if err := c.start(t.Context()); err != nil {
		t.Fatalf("cluster of this test: %v", err)
	}
	t.Logf("waited %.1f s: a cluster of its own", time.Since(began).Seconds())
	return c
}

// claim gives each node a name, ports and a folder.
func (c *Cluster) claim(i installation, conf []string) error {
	conf = append([]string{
		"cluster_formation.peer_discovery_backend = classic_config",
		fmt.Sprintf("net_ticktime = %d", tick),
	}, conf...)
	cookie, family := rand.Text(), "dlo"+strings.ToLower(rand.Text())
	for n := range c.Nodes {
		conf = append(conf, fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s", n+1, memberName(family, n)))
	}
	for n := range c.Nodes {
		c.Nodes[n] = &Node{
			installation: i,
			options:      Options{Conf: conf},
			cookie:       cookie,
			clustered:    true,
			client:       &http.Client{Timeout: answersWithin, Transport: &http.Transport{}},
		}
		if err := c.Nodes[n].claim(memberName(family, n)); err != nil {
			return err
		}
	}
	return nil
}

func memberName(family string, n int) string { return fmt.Sprintf("%s-%d@127.0.0.1", family, n) }

// connect starts the relays between the nodes. It also starts a name server for each node, which
// directs the node to its relays.
func (c *Cluster) connect(t testing.TB) error {
	for from := range c.Nodes {
		peers := map[string]int{}
		for to, peer := range c.Nodes {
			if from == to {
				continue
			}
			line := Relay(t, loopback(peer.ports.distribution))
			name, _, _ := strings.Cut(peer.name, "@")
			peers[name], c.lines[from][to] = line.port(), line
		}
		var err error
		if c.names[from], err = serveNames(c.Nodes[from].ports.epmd, peers); err != nil {
			return err
		}
	}
	return nil
}

// start starts all nodes at the same time. It returns when every node knows all others.
func (c *Cluster) start(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make([]error, Nodes)
	for i, n := range c.Nodes {
		all.Go(func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			errs[i] = n.start(ctx)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	for n := range c.Nodes {
		if err := c.complete(ctx, n, 1); err != nil {
			return err
		}
	}
	return c.Await(ctx, 0, Nodes)
}

// Restart restarts node n. It returns when the node is a member of the cluster again.
func (c *Cluster) Restart(ctx context.Context, n int) error {
	starts := strings.Count(c.Log(n), startupComplete)
	if err := c.Nodes[n].Restart(ctx); err != nil {
		return err
	}
	if err := c.complete(ctx, n, starts+1); err != nil {
		return err
	}
	return c.Await(ctx, n, Nodes)
}

// startupComplete is the line that a node logs 100 ms after it begins to serve. In a cluster, a
// vhost that is created before that line never responds (3.10.8).
const startupComplete = "Server startup complete"

// complete waits until the log of node n contains the line startupComplete as often as the
// parameter "starts" says. The node writes this line each time it has started.
func (c *Cluster) complete(ctx context.Context, n, starts int) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for strings.Count(c.Log(n), startupComplete) < starts {
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %d of the cluster has not started: %w", n, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// Await waits until node n sees the given number of running nodes. The node counts itself.
func (c *Cluster) Await(ctx context.Context, n, running int) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		var nodes []struct {
			Running bool `json:"running"`
		}
		err := c.Nodes[n].API(http.MethodGet, "/api/nodes", nil, &nodes)
		seen := 0
		for _, node := range nodes {
			if node.Running {
				seen++
			}
		}
		if err == nil && seen == running {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"node %d of the cluster sees %d running nodes, want %d: %w, last answer: %v", n, seen, running,
				ctx.Err(), err,
			)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Missed waits until the other nodes have noticed that node n is gone. It reads their logs. In
// 4.3.6, the management API did not show the loss within five minutes.
func (c *Cluster) Missed(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	node := "node '" + c.Nodes[n].name + "' "
	for other := 0; other < Nodes; {
		log := c.Log(other)
		if other == n || strings.LastIndex(log, node+"down") > strings.LastIndex(log, node+"up") {
			other++
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %d of the cluster does not miss node %d: %w", other, n, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// Isolate cuts the network between node n and the two other nodes. Traffic on its way is lost, and
// neither side is notified. Clients can still reach the node.
func (c *Cluster) Isolate(n int) { c.isolate(n, true) }

// Rejoin ends the effect of Isolate. It resets old connections, and new connections work.
func (c *Cluster) Rejoin(n int) { c.isolate(n, false) }

func (c *Cluster) isolate(n int, on bool) {
	for other := range c.Nodes {
		if other == n {
			continue
		}
		for _, line := range []*Link{c.lines[n][other], c.lines[other][n]} {
			line.Swallow(ToServer, on)
			line.Swallow(ToClient, on)
			if !on {
				line.Cut()
			}
		}
	}
}

func (c *Cluster) stop() {
	for i, n := range c.Nodes {
		if n == nil {
			continue
		}
		n.Stop()
		if c.names[i] != nil {
			c.names[i].close()
		}
	}
}

// Lead moves the leader of a quorum queue to node n. It returns once the leader is there.
func (c *Cluster) Lead(ctx context.Context, vhost, queue string, n int) error {
	ask := fmt.Sprintf(
		`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), {Name, _} = Now = amqqueue:get_pid(Q), ra:transfer_leadership(Now, {Name, '%s'}).`,
		vhost, queue, c.Nodes[n].name,
	)
	if out, err := c.Nodes[n].Ctl("eval", ask); err != nil {
		return fmt.Errorf("move the leader of %s: %w: %s", queue, err, out)
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		var q struct {
			Leader string `json:"leader"`
		}
		err := c.Nodes[n].API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(queue), nil, &q)
		if err == nil && q.Leader == c.Nodes[n].name {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the leader of %s is %s, want node %d: %w, %v", queue, q.Leader, n, ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Log returns the log of node n.
func (c *Cluster) Log(n int) string {
	logs, _ := filepath.Glob(c.Nodes[n].folder.file("log/*.log"))
	var all strings.Builder
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		all.Write(text)
	}
	return all.String()
}
