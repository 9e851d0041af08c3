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

// brokerVariable names the root folder of the RabbitMQ to test with, such as .cache/rabbitmq-4.0.
// If it is unset or empty, tests use the machine's package. `make test-matrix` runs the broker
// tests once for each version.
const brokerVariable = "DLO_TEST_BROKER"

// shared is the test binary's only node. Each test uses its own vhost on it, because starting a
// node takes seconds, and creating a vhost takes milliseconds.
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

// Broker returns the node shared by all tests of the binary. The first call starts the node with
// the RabbitMQ that DLO_TEST_BROKER names. Tests leave the node running, and each test uses its own
// vhost (VHost) and a new channel. A test that kills a node must use PrivateBroker instead. If
// RabbitMQ is not installed, the test is skipped with a message that shows the command to install
// it. With DLO_TEST_REQUIRE=1, the test fails instead.
func Broker(t testing.TB) *Node {
	t.Helper()
	long(t, "a broker")
	n, err := shared.start()
	if err != nil {
		Unavailable(t, fmt.Errorf("broker: %w", err))
	}
	return n
}

// PrivateBroker starts a node for one test and stops it at the end of the test. The test may kill
// the node. If RabbitMQ is not installed, PrivateBroker skips or fails the test like Broker.
func PrivateBroker(t testing.TB) *Node { return PrivateBrokerWith(t, Options{}) }

// PrivateBrokerWith works like PrivateBroker, with options. If Root is empty, it uses the RabbitMQ
// that DLO_TEST_BROKER names.
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

// VHost creates a vhost for one test on the shared node and returns the vhost's name and AMQP URL.
// At the end of the test, the vhost is deleted and connections to it are closed.
func VHost(t testing.TB) (vhost, url string) {
	t.Helper()
	return Broker(t).VHost(t)
}

var (
	vhosts   atomic.Int64
	notPlain = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// VHost creates a vhost for one test on this node, like the function VHost.
func (n *Node) VHost(t testing.TB) (vhost, url string) {
	t.Helper()
	name := notPlain.ReplaceAllString(t.Name(), "-")
	vhost = fmt.Sprintf("%.80s-%d", name, vhosts.Add(1))
	if err := n.CreateVHost(vhost); err != nil {
		t.Fatalf("make a vhost: %v", err)
	}
	t.Cleanup(func() {
		if err := n.DeleteVHost(vhost); err != nil {
			t.Logf("vhost %s stays: %v", vhost, err) // ignored: the node may be down, and it will be removed soon
		}
	})
	return vhost, n.AMQPURL(vhost)
}
