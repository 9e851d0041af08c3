package rabbitmq

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rawPublisher publishes messages whose properties may be any bytes.
type rawPublisher struct {
	wire net.Conn // the client's connection; the client sends nothing on it while the method publish uses it
	ch   *amqp.Channel
}

func newRawPublisher(t *testing.T, url string) *rawPublisher {
	t.Helper()
	p := &rawPublisher{}
	conn, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat: time.Hour, Dial: func(network, addr string) (c net.Conn, err error) {
			c, err = net.Dial(network, addr)
			p.wire = c
			return c, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if p.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	return p
}

// declare declares a durable queue. With arguments from dyingArguments, messages that are published
// to the queue die immediately.
func (p *rawPublisher) declare(t *testing.T, queue string, args amqp.Table) {
	t.Helper()
	if _, err := p.ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// dyingArguments returns the arguments of a queue whose messages die immediately and go to another
// queue.
func dyingArguments(to string) amqp.Table {
	return amqp.Table{"x-message-ttl": int32(0), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
}

// publish sends a message. The parameter "properties" holds the raw bytes of a content header, from
// the property flags on.
func (p *rawPublisher) publish(t *testing.T, queue, properties, body string) {
	t.Helper()
	method := "\x00\x3c\x00\x28\x00\x00" + shortString("") + shortString(queue) + "\x00"
	header := "\x00\x3c\x00\x00" + string(binary.BigEndian.AppendUint64(nil, uint64(len(body)))) + properties
	frames := wireFrame(1, method) + wireFrame(2, header)
	if body != "" {
		frames += wireFrame(3, body)
	}
	if _, err := p.wire.Write([]byte(frames)); err != nil {
		t.Fatal(err)
	}
}

func wireFrame(kind byte, payload string) string {
	return string([]byte{kind, 0, 1}) + longString(payload) + "\xce"
}

func shortString(s string) string { return string(rune(len(s))) + s } // only for strings of at most 127 bytes

func longString(s string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// headers returns properties that contain only a table of headers. The parameter "fields" holds
// names and values in turn.
func headers(fields ...string) string {
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		b.WriteString(shortString(fields[i]) + fields[i+1])
	}
	return "\x20\x00" + longString(b.String())
}

// nestedArrays returns a field that consists of n arrays. Each array contains the next one.
func nestedArrays(n int) string {
	s := ""
	for range n {
		s = "A" + longString(s)
	}
	return s
}
