package testenv

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// open returns a channel on a new connection. Both are closed at the end of the test.
func open(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	c, err := amqp.DialConfig(url, amqp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// publish publishes persistent messages to a queue and waits until the broker has confirmed each of
// them.
func publish(t *testing.T, ch *amqp.Channel, queue string, bodies ...string) {
	t.Helper()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for _, b := range bodies {
		p := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(b)}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, p)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := confirm.WaitContext(t.Context()); err != nil || !ok {
			t.Fatalf("publish %q: confirmed %v, %v", b, ok, err)
		}
	}
}

// take consumes the first n messages of a queue and returns their bodies, in order.
func take(t *testing.T, ch *amqp.Channel, queue string, n int) []string {
	t.Helper()
	deliveries, err := ch.ConsumeWithContext(t.Context(), queue, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for d := range deliveries {
		if got = append(got, string(d.Body)); len(got) == n {
			return got
		}
	}
	t.Fatalf("the channel closed after %d of %d letters", len(got), n)
	return nil
}

func declare(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

// TestKilledNodeKeepsDurableLetters kills the node right after the declaration of a classic queue.
// The queue and its messages must survive. A quorum queue must be 12 s old to survive (see Kill9).
func TestKilledNodeKeepsDurableLetters(t *testing.T) {
	Full(t)
	t.Parallel()
	n := PrivateBroker(t)
	vhost, url := n.VHost(t)
	ch := open(t, url)
	declare(t, ch, "inbox")
	publish(t, ch, "inbox", "one", "two", "three")

	n.Kill9()
	if err := isListening(n.ports.amqp); err == nil {
		t.Fatal("a killed node still listens")
	}
	if err := n.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := take(t, open(t, n.AMQPURL(vhost)), "inbox", 3)
	if got[0] != "one" || got[1] != "two" || got[2] != "three" {
		t.Errorf("after the kill: %q", got)
	}

	if err := n.Terminate(); err != nil {
		t.Error(err)
	}
	if err := n.Restart(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestAForeignListenerIsNoNode starts a node on a port on which another node listens, so the first
// node ends. The other node responds on this port, but the first node must not count as started.
func TestAForeignListenerIsNoNode(t *testing.T) {
	Full(t)
	t.Parallel()
	skipIfShort(t, "a broker")
	i, err := findInstallation(os.Getenv(brokerVariable))
	if err != nil {
		Unavailable(t, err)
	}
	n := &Node{
		installation: i, name: "dloforeign@127.0.0.1", cookie: "foreign",
		client: &http.Client{Timeout: 30 * time.Second},
	}
	defer n.Stop()
	if n.ports, err = freePorts(); err != nil {
		t.Fatal(err)
	}
	if n.folder, err = newFolder("node"); err != nil {
		t.Fatal(err)
	}
	if err := n.configure(); err != nil {
		t.Fatal(err)
	}
	foreign, err := net.Listen("tcp", loopback(n.ports.amqp))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := n.start(t.Context()); err == nil || !strings.Contains(err.Error(), "eaddrinuse") {
		t.Errorf("a node whose port is taken: %v", err)
	}
}

// TestPortsAreReserved checks that no other node gets the ports of a node before that node is
// stopped. The node need not listen on them.
func TestPortsAreReserved(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has names that go with a process")
	}
	p, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{p.amqp, p.management, p.distribution, p.epmd} {
		if r, err := reserve(port); err == nil {
			r.Close()
			t.Errorf("port %d is reserved twice", port)
		}
	}
	p.release()
	// a child that is being forked holds the name of the port until it execs
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if r, err := reserve(p.amqp); err == nil {
			r.Close()
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
