package testenv

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// brokerVariable names the root folder of the RabbitMQ to test with, such as .cache/rabbitmq-4.0;
// unset or empty means the machine's package. `make test-matrix` runs the broker tests once for
// each.
const brokerVariable = "DLO_TEST_BROKER"

// shared is the one node of the test binary. A start takes seconds and a vhost milliseconds, so
// tests part the node by vhosts.
var shared sharedNode

type sharedNode struct {
	once sync.Once
	node *Node
	err  error
}

func (s *sharedNode) start() (*Node, error) {
	s.once.Do(func() {
		s.node, s.err = Start(context.Background(), Options{Root: os.Getenv(brokerVariable)})
	})
	return s.node, s.err
}

func (s *sharedNode) stop() {
	if s.node != nil {
		s.node.Stop()
	}
}

// Broker returns the node that all tests of the binary share; the first call starts it. Its version
// is that of DLO_TEST_BROKER. Tests leave it running and use a vhost each (VHost) and a fresh
// channel each; who wants to kill one takes PrivateBroker. Where no RabbitMQ is installed the test
// is skipped with the command that would change that; with DLO_TEST_REQUIRE=1 it fails.
func Broker(t testing.TB) *Node {
	t.Helper()
	long(t, "a broker")
	n, err := shared.start()
	if err != nil {
		Unavailable(t, fmt.Errorf("broker: %w", err))
	}
	return n
}

// PrivateBroker starts a node for one test, which may kill it, and ends it with the test. Skips and
// fails like Broker.
func PrivateBroker(t testing.TB) *Node { return PrivateBrokerWith(t, Options{}) }

// PrivateBrokerWith is PrivateBroker with options; an empty Root is that of DLO_TEST_BROKER.
func PrivateBrokerWith(t testing.TB, o Options) *Node {
	t.Helper()
	long(t, "a broker")
	if o.Root == "" {
		o.Root = os.Getenv(brokerVariable)
	}
	began := time.Now()
	n, err := Start(t.Context(), o)
	if err != nil {
		Unavailable(t, fmt.Errorf("broker of this test: %w", err))
	}
	t.Logf("waited %.1f s: a broker of its own", time.Since(began).Seconds())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.lastWords())
		}
		n.Stop()
	})
	return n
}

// VHost makes a vhost for one test on the shared node and returns its name and its AMQP URL. It
// goes with the test, and connections to it are closed then.
func VHost(t testing.TB) (vhost, url string) {
	t.Helper()
	return Broker(t).VHost(t)
}

var (
	vhosts   atomic.Int64
	notPlain = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// VHost makes a vhost for one test on this node; see the function of that name.
func (n *Node) VHost(t testing.TB) (vhost, url string) {
	t.Helper()
	name := notPlain.ReplaceAllString(t.Name(), "-")
	vhost = fmt.Sprintf("%.80s-%d", name, vhosts.Add(1))
	if err := n.CreateVHost(vhost); err != nil {
		t.Fatalf("make a vhost: %v", err)
	}
	t.Cleanup(func() {
		if err := n.DeleteVHost(vhost); err != nil {
			t.Logf("vhost %s stays: %v", vhost, err) // the node may be down by now, and goes soon in any case
		}
	})
	return vhost, n.AMQPURL(vhost)
}
