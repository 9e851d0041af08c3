package system

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
	amqp "github.com/rabbitmq/amqp091-go"
)

// audit checks one origin queue without asking dlo. It keeps its own log of the letters that it
// published and that the broker confirmed. Its worker records every copy, rejects new letters, and
// accepts letters that dlo sent back.
type audit struct {
	t     testing.TB
	conn  *amqp.Connection
	queue string
	// reports whether to reject a message; nil = reject messages without the header dlo-attempt
	refuse func(d *amqp.Delivery) bool
	// the queue to which the method publish sends; "" = the queue in the field "queue"
	to     string
	header amqp.Table // headers of published messages

	mu        sync.Mutex
	published int
	bodies    map[string]int            // SHA-256 of a body -> how many times it was published
	accepted  map[string]map[string]int // SHA-256 of a body -> token -> number of copies
	rejected  int
}

// newAudit declares an origin queue whose dead-letter exchange is dlo.dlx. It does not start the
// worker.
func newAudit(t testing.TB, url, queue string, args amqp.Table) *audit {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	a := &audit{t: t, conn: conn, queue: queue, bodies: map[string]int{}, accepted: map[string]map[string]int{}}
	declared := amqp.Table{"x-dead-letter-exchange": "dlo.dlx"}
	for k, v := range args {
		declared[k] = v
	}
	ch := a.channel()
	if err := ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, declared); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *audit) channel() *amqp.Channel {
	a.t.Helper()
	ch, err := a.conn.Channel()
	if err != nil {
		a.t.Fatal(err)
	}
	return ch
}

// work starts the worker, which consumes the queue until the test ends.
func (a *audit) work() {
	a.t.Helper()
	ch := a.channel()
	if err := ch.Qos(200, 0, false); err != nil {
		a.t.Fatal(err)
	}
	deliveries, err := ch.Consume(a.queue, "", false, false, false, false, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			_, ours := d.Headers[deadletter.HeaderAttempt]
			refuse := !ours
			if a.refuse != nil {
				refuse = a.refuse(&d)
			}
			a.mu.Lock()
			if refuse {
				a.rejected++
			} else {
				token, _ := d.Headers[deadletter.HeaderToken].(string)
				print := digest(d.Body)
				if a.accepted[print] == nil {
					a.accepted[print] = map[string]int{}
				}
				a.accepted[print][token]++
			}
			a.mu.Unlock()
			if refuse {
				d.Reject(false)
			} else {
				d.Ack(false)
			}
		}
	}()
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// publish publishes n letters, waits for their confirms and logs them. The function "body" returns
// the body and the message id of the i-th letter.
func (a *audit) publish(n int, body func(i int) (body string, messageID string)) {
	a.t.Helper()
	ch := a.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		a.t.Fatal(err)
	}
	var waiting []*amqp.DeferredConfirmation
	for i := range n {
		text, id := body(i)
		c, err := ch.PublishWithDeferredConfirm("", cmp.Or(a.to, a.queue), true, false, amqp.Publishing{
			Headers: a.header, Body: []byte(text), MessageId: id, DeliveryMode: 2,
		})
		if err != nil {
			a.t.Fatal(err)
		}
		waiting = append(waiting, c)
		a.mu.Lock()
		a.published++
		a.bodies[digest([]byte(text))]++
		a.mu.Unlock()
	}
	for _, c := range waiting {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if ok, err := c.WaitContext(ctx); err != nil || !ok {
			a.t.Fatalf("publish: %v %v", ok, err)
		}
		cancel()
	}
}

// acceptedLetters returns how many letters the worker accepted at least once. Letters with the same
// body are counted by token.
func (a *audit) acceptedLetters() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, tokens := range a.accepted {
		n += len(tokens)
	}
	return n
}

// copies returns how many copies of letters the worker accepted.
func (a *audit) copies() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, tokens := range a.accepted {
		for _, c := range tokens {
			n += c
		}
	}
	return n
}

// reconnect connects to the broker again after the broker was restarted.
func (a *audit) reconnect(url string) {
	a.t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.Close() })
	a.conn = conn
}

// checkAll compares the audit with the store's file. Every published letter must have a row, and
// must have arrived back. Every copy must carry a token that the store issued. If a body was
// published n times, it must have arrived back under n tokens. The result "surplus" is the number
// of rows that no published letter explains. They are called suspects, because dlo may have stored
// a letter twice. The result "duplicates" is the number of duplicate copies.
func (a *audit) checkAll(p *child) (surplus, duplicates int) {
	a.t.Helper()
	surplus, duplicates = a.checkStore(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	for print, n := range a.bodies {
		if tokens := a.accepted[print]; len(tokens) != n {
			a.t.Errorf("body %s: %d letters, arrived back under %d tokens", print, n, len(tokens))
		}
	}
	return surplus, duplicates
}

// checkStore makes those checks that must also succeed while letters wait or are held. Every letter
// must have a row, and every copy must carry a token that the store issued.
func (a *audit) checkStore(p *child) (surplus, duplicates int) {
	a.t.Helper()
	db := p.file()
	known := map[string]bool{}
	rows, err := db.Query(`SELECT token FROM attempts`)
	if err != nil {
		a.t.Fatal(err)
	}
	for rows.Next() {
		var token []byte
		if err := rows.Scan(&token); err != nil {
			a.t.Fatal(err)
		}
		known[hex.EncodeToString(token)] = true
	}
	rows.Close()
	stored := map[string]int{}
	rows, err = db.Query(`SELECT body FROM ` + storetest.Bodies)
	if err != nil {
		a.t.Fatal(err)
	}
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			a.t.Fatal(err)
		}
		stored[digest(body)]++
	}
	rows.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for print, n := range a.bodies {
		if stored[print] < n {
			a.t.Errorf("LOST: body %s was published %d times and has %d rows", print, n, stored[print])
		}
		surplus += stored[print] - n
		for token, copies := range a.accepted[print] {
			if !known[token] {
				a.t.Errorf("body %s arrived with token %q, which the store never issued", print, token)
			}
			duplicates += copies - 1
		}
	}
	for print := range stored {
		if a.bodies[print] == 0 {
			a.t.Errorf("a row holds body %s, which nobody published", print)
		}
	}
	return surplus, duplicates
}

// rejectedIn returns the header x-death of a letter that a queue has rejected once. The letter had
// been published to the exchange with the key.
func rejectedIn(queue, exchange, key string, at time.Time) []any {
	return []any{amqp.Table{
		"queue": queue, "exchange": exchange, "reason": "rejected", "count": int64(1), "routing-keys": []any{key},
		"time": at,
	}}
}

// ready returns how many messages in a queue are ready. It asks the broker with a passive declare.
func ready(t testing.TB, conn *amqp.Connection, queue string) int {
	t.Helper()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(fmt.Errorf("queue %s: %w", queue, err))
	}
	return q.Messages
}
