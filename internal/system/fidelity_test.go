package system

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"
)

// everyType is a table of headers with each AMQP field type that the client library supports.
var everyType = amqp.Table{
	"bool":    true,
	"int8":    int8(-8),
	"uint8":   uint8(200),
	"int16":   int16(-16000),
	"uint16":  uint16(60000),
	"int32":   int32(-32),
	"uint32":  uint32(4000000000),
	"int64":   int64(-1 << 60),
	"float32": float32(1.5),
	"float64": 2.25,
	"decimal": amqp.Decimal{Scale: 2, Value: -1234},
	"string":  "grün \x00 binary \xff",
	"bytes":   []byte{0, 1, 255},
	"time":    time.Unix(1763625600, 0),
	"void":    nil,
	"table":   amqp.Table{"nested": amqp.Table{"deep": int16(1)}, "empty": amqp.Table{}},
	"array":   []any{int32(1), "two", []any{}, amqp.Table{"three": 3.0}},
	"":        "empty key",
}

// TestHeadersAndBodiesComeBackTypeForType compares published letters with the copies that dlo sends
// back to the origin queue. Each header must keep its type.
func TestHeadersAndBodiesComeBackTypeForType(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()
	full := amqp.Publishing{
		Headers: everyType, ContentType: "application/x-protobuf", ContentEncoding: "identity", DeliveryMode: 2,
		Priority: 3, CorrelationId: "c", ReplyTo: "answers", MessageId: "m",
		Timestamp: time.Unix(1763625601, 0).UTC(), Type: "acme.T", AppId: "shop",
	}
	bodies := [][]byte{{}, {0}, bytes.Repeat([]byte{0xff, 0, '\n'}, 10000), []byte("text")}
	if !testing.Short() {
		bodies = append(
			bodies, bytes.Repeat([]byte("sixteen MiB less some. "), (16<<20-4096)/23),
			bytes.Repeat([]byte("and another one .... "), (16<<20-4096)/21),
		)
	}
	ch := a.channel()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	returned := map[string]amqp.Delivery{}
	deliveries, err := ch.Consume("work", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range bodies {
		m := full
		m.MessageId, m.Body = fmt.Sprint(i), body
		c, err := ch.PublishWithDeferredConfirm("", "work", true, false, m)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := c.WaitContext(context.Background()); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	for deadline := time.After(2 * time.Minute); len(returned) < len(bodies); {
		select {
		case d := <-deliveries:
			if _, ours := d.Headers[deadletter.HeaderAttempt]; ours {
				returned[d.MessageId] = d
				d.Ack(false)
			} else {
				d.Reject(false)
			}
		case <-deadline:
			t.Fatalf("%d of %d letters came back to their queue", len(returned), len(bodies))
		}
	}
	for i, body := range bodies {
		d := returned[fmt.Sprint(i)]
		if !bytes.Equal(d.Body, body) {
			t.Errorf("body %d: %d bytes came back as %d other ones", i, len(body), len(d.Body))
		}
		for _, own := range []string{deadletter.HeaderID, deadletter.HeaderToken, deadletter.HeaderAttempt} {
			if _, ok := d.Headers[own]; !ok {
				t.Errorf("header %s is missing", own)
			}
			delete(d.Headers, own)
		}
		if diff := cmp.Diff(
			everyType, d.Headers, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
		); diff != "" {
			t.Errorf("headers of body %d: %s", i, diff)
		}
		got := amqp.Publishing{
			Headers: everyType, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
			DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo,
			MessageId: "m", Expiration: d.Expiration, Timestamp: d.Timestamp.UTC(), Type: d.Type, UserId: d.UserId,
			AppId: d.AppId,
		}
		if diff := cmp.Diff(full, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("properties of body %d: %s", i, diff)
		}
	}
}

// TestTheSanitiserLetsGoodLettersPass mixes 500 ordinary letters with dangerous ones. A dangerous
// letter, if sent unchanged, would close a channel or a connection, or would put copies into other
// queues. Each ordinary letter must be sent once. Each dangerous letter must be sanitised before it
// is sent, or held with the reason.
func TestTheSanitiserLetsGoodLettersPass(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	elsewhere := newAudit(t, url, "elsewhere", nil)
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()

	big := strings.Repeat("x", 60_000)
	bad := []struct {
		name    string
		m       amqp.Publishing
		held    string // reason for which dlo holds the letter; "" = dlo sanitises and sends it
		missing string // header that dlo must remove
	}{
		{"CC to another queue", amqp.Publishing{Headers: amqp.Table{"CC": []any{"elsewhere"}}}, "", "CC"},
		{"expiration", amqp.Publishing{Expiration: "3600000"}, "", ""},
		{"own user id", amqp.Publishing{UserId: "guest"}, "", ""},
		{"direct reply-to", amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to.g1h2AAd"}, "", ""},
		{
			"a delivery count",
			amqp.Publishing{Headers: amqp.Table{"x-delivery-count": int64(7), "x-acquired-count": int64(9)}},
			"",
			"x-delivery-count",
		},
		{
			"forged dlo headers",
			amqp.Publishing{
				Headers: amqp.Table{
					"dlo-id": "0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20", "dlo-token": strings.Repeat("ab", 16),
				},
			},
			"",
			"",
		},
		{
			"headers near the frame size",
			amqp.Publishing{Headers: amqp.Table{"a": big, "b": big, "c": strings.Repeat("y", 5000)}},
			"unpublishable",
			"",
		},
		{"an infinite double", amqp.Publishing{Headers: amqp.Table{"f": math.Inf(1)}}, "unpublishable", ""},
	}
	const good = 500
	accepted := map[string]int{}
	var cleaned []amqp.Delivery
	ch := a.channel()
	if err := ch.Qos(100, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume("work", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		back := map[string]bool{}
		for d := range deliveries {
			if _, ours := d.Headers[deadletter.HeaderAttempt]; !ours {
				d.Reject(false)
				continue
			}
			a.mu.Lock()
			accepted[d.MessageId]++
			if !back[d.MessageId] && strings.HasPrefix(d.MessageId, "bad") {
				cleaned = append(cleaned, d)
			}
			back[d.MessageId] = true
			a.mu.Unlock()
			d.Ack(false)
		}
	}()
	sent := 0
	send := func(on *amqp.Connection, m amqp.Publishing, id string) bool {
		ch, err := on.Channel()
		if err != nil {
			t.Fatal(err)
		}
		defer ch.Close()
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		m.MessageId, m.Body, m.DeliveryMode = id, []byte(id), 2
		c, err := ch.PublishWithDeferredConfirm("", "work", true, false, m)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := c.WaitContext(context.Background()); err != nil || !ok { // the broker rejected the message
			return false
		}
		sent++
		return true
	}
	own := func() *amqp.Connection { // each dangerous letter gets its own connection, because the broker may close it
		conn, err := amqp.Dial(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	refused := map[int]bool{}
	for i := range good {
		send(a.conn, amqp.Publishing{}, fmt.Sprintf("good %d", i))
		if k := i / 40; i%40 == 20 && k < len(bad) {
			if !send(own(), bad[k].m, fmt.Sprintf("bad %d", k)) {
				refused[k] = true
			}
		}
	}
	count := func(id string) int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return accepted[id]
	}
	eventually(t, "every letter out or held", func() bool {
		return p.letters() == sent && p.letters("settled", "held") == sent
	})
	for i := range good {
		if n := count(fmt.Sprintf("good %d", i)); n != 1 {
			t.Errorf("good letter %d went out %d times", i, n)
		}
	}
	for k, b := range bad {
		if refused[k] {
			t.Logf("%s: the broker refuses it at the first publish", b.name)
			continue
		}
		id := fmt.Sprintf("bad %d", k)
		held := p.count(
			`letters JOIN `+storetest.Bodies+` ON letter = id`, `body = $1 AND state = 'held' AND why LIKE $2`, []byte(id),
			"%"+b.held+"%",
		)
		switch {
		case b.held != "" && (held != 1 || count(id) != 0):
			t.Errorf("%s: held %d times, went out %d times", b.name, held, count(id))
		case b.held == "" && count(id) != 1:
			t.Errorf("%s: went out %d times", b.name, count(id))
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range cleaned {
		if d.Expiration != "" || d.UserId != "" || strings.HasPrefix(d.ReplyTo, "amq.rabbitmq") {
			t.Errorf("%s: expiration %q, user %q, reply to %q went out", d.MessageId, d.Expiration, d.UserId, d.ReplyTo)
		}
		for _, h := range []string{
			"CC", "BCC", "x-delivery-count", "x-acquired-count", "x-death", "x-first-death-queue",
		} {
			if _, ok := d.Headers[h]; ok {
				t.Errorf("%s: header %s went out", d.MessageId, h)
			}
		}
		if d.Headers["dlo-token"] == strings.Repeat("ab", 16) {
			t.Errorf("%s: a forged token went out", d.MessageId)
		}
	}
	// The header CC put one copy into this queue when the letter was first published. A requeue
	// must not add another copy.
	if n := ready(t, elsewhere.conn, "elsewhere"); n != 1 {
		t.Errorf("%d messages in the queue that CC names, want the publisher's own copy only", n)
	}
}
