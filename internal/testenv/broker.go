package testenv

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// brokerVariable is an environment variable. Its value is the root folder of the RabbitMQ that
// tests use, for example .cache/rabbitmq-4.0. If the variable is unset or empty, tests use the
// package that is installed on the machine. `make test-matrix` runs the broker tests once for each
// version.
const brokerVariable = "DLO_TEST_BROKER"

// shared are the RabbitMQ nodes that all tests of a binary share, one for each root folder.
// Starting a node takes seconds, and creating a vhost takes milliseconds. For this reason, each
// test uses its own vhost on a shared node.
var shared sharedNodes

type sharedNodes struct {
	mu    sync.Mutex
	start map[string]func() (*Node, error)
}

func (s *sharedNodes) of(root string) (*Node, error) {
	s.mu.Lock()
	if s.start == nil {
		s.start = map[string]func() (*Node, error){}
	}
	if s.start[root] == nil {
		s.start[root] = sync.OnceValues(func() (*Node, error) {
			return Start(context.Background(), Options{Root: root})
		})
	}
	start := s.start[root]
	s.mu.Unlock()
	return start()
}

func (s *sharedNodes) stop() {
	for _, start := range s.start {
		if n, err := start(); err == nil {
			n.Stop()
		}
	}
}

// Broker returns the node that all tests of the binary share. The first call starts the node, with
// the RabbitMQ that DLO_TEST_BROKER names. Tests must not stop it, and each test uses its own vhost
// (VHost) and a new channel. A test that kills a node must use PrivateBroker instead. If RabbitMQ
// is not installed, the test is skipped, and the message shows the command that installs it. With
// DLO_TEST_REQUIRE=1, the test fails instead.
func Broker(t testing.TB) *Node {
	t.Helper()
	return BrokerIn(t, "")
}

// BrokerIn returns a shared node like Broker, with the RabbitMQ in the root folder "root". If it is
// empty, it uses the RabbitMQ that DLO_TEST_BROKER names.
func BrokerIn(t testing.TB, root string) *Node {
	t.Helper()
	skipIfShort(t, "a broker")
	n, err := shared.of(cmp.Or(root, os.Getenv(brokerVariable)))
	if err != nil {
		Unavailable(t, fmt.Errorf("broker: %w", err))
	}
	return n
}

// PrivateBroker starts a node for one test and stops it at the end of the test. The test may kill
// the node. If RabbitMQ is not installed, PrivateBroker skips or fails the test in the same way as
// Broker.
func PrivateBroker(t testing.TB) *Node { return PrivateBrokerWith(t, Options{}) }

// PrivateBrokerWith starts a node like PrivateBroker, with the given options. If the option Root is
// empty, it uses the RabbitMQ that DLO_TEST_BROKER names.
func PrivateBrokerWith(t testing.TB, o Options) *Node {
	t.Helper()
	skipIfShort(t, "a broker")
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

// VHost creates a vhost for one test on the shared node. It returns the name and the AMQP URL of
// the vhost. At the end of the test, the vhost is deleted, and RabbitMQ closes its connections.
func VHost(t testing.TB) (vhost, url string) {
	t.Helper()
	return Broker(t).VHost(t)
}

var (
	vhosts   atomic.Int64
	notPlain = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// VHost creates a vhost for one test on this node. It returns the name and the AMQP URL of the
// vhost, and deletes the vhost at the end of the test.
func (n *Node) VHost(t testing.TB) (vhost, url string) {
	t.Helper()
	name := notPlain.ReplaceAllString(t.Name(), "-")
	vhost = fmt.Sprintf("%.80s-%d", name, vhosts.Add(1))
	if err := n.CreateVHost(vhost); err != nil {
		t.Fatalf("make a vhost: %v", err)
	}
	t.Cleanup(func() {
		if err := n.DeleteVHost(vhost); err != nil {
			t.Logf("vhost %s stays: %v", vhost, err) // ignored: the node may be down, and it is removed soon
		}
	})
	return vhost, n.AMQPURL(vhost)
}
