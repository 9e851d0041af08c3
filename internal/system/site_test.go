package system

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// siteQueue is a queue that the site had before dlo was added.
type siteQueue struct {
	name      string
	args      amqp.Table
	protected bool // if true, dlo's policy applies to the queue
	drops     bool // if true, the site's own rules drop messages of the queue, with dlo or without it
	published bool
	work      func(s *site, d *amqp.Delivery) verdict // handles a delivery; nil = the queue has no consumer
}

type verdict int

const (
	accepted verdict = iota
	rejected
	again
)

// faulty rejects every fifth message. When dlo sends such a message again, faulty rejects it if its
// number is even, and accepts it if its number is odd.
func faulty(_ *site, d *amqp.Delivery) verdict {
	if n := numberOf(d); n%5 == 0 && (d.Headers[deadletter.HeaderAttempt] == nil || n%2 == 0) {
		return rejected
	}
	return accepted
}

// crashing returns every fifth message to the queue, until the delivery limit of the queue removes
// the message.
func crashing(_ *site, d *amqp.Delivery) verdict {
	if numberOf(d)%5 == 0 && d.Headers[deadletter.HeaderAttempt] == nil {
		return again
	}
	return accepted
}

// reliable accepts every message.
func reliable(*site, *amqp.Delivery) verdict { return accepted }

// patiently returns a consumer with retries of its own. It sends every fifth message twice through
// the site's retry queue. After that, it puts the message into the queue "failed". If "failed" is
// "", there is no such queue.
func patiently(retry, failed string) func(s *site, d *amqp.Delivery) verdict {
	return func(s *site, d *amqp.Delivery) verdict {
		deaths, _ := d.Headers["x-death"].([]any)
		waited := int64(0)
		for _, death := range deaths {
			if entry, ok := death.(amqp.Table); ok && entry["queue"] == retry {
				waited, _ = entry["count"].(int64)
			}
		}
		switch {
		case numberOf(d)%5 != 0:
			return accepted
		case waited < 2:
			return rejected
		case failed != "":
			s.park(failed, d)
		}
		return accepted
	}
}

func numberOf(d *amqp.Delivery) (n int) {
	_, number, _ := strings.Cut(string(d.Body), " ")
	fmt.Sscan(number, &n)
	return n
}

// siteQueues returns 31 queues of different kinds.
func siteQueues() []*siteQueue {
	quorum := func(more amqp.Table) amqp.Table {
		args := amqp.Table{"x-queue-type": "quorum"}
		for k, v := range more {
			args[k] = v
		}
		return args
	}
	return []*siteQueue{
		{name: "orders", protected: true, published: true, work: faulty},
		{name: "orders.quorum", args: quorum(nil), protected: true, published: true, work: faulty},
		{
			name:      "orders.priority",
			args:      amqp.Table{"x-max-priority": int32(5)},
			protected: true,
			published: true,
			work:      faulty,
		},
		{name: "orders.lazy", args: amqp.Table{"x-queue-mode": "lazy"}, protected: true, published: true, work: faulty},
		{
			name:      "orders.single",
			args:      amqp.Table{"x-single-active-consumer": true},
			protected: true,
			published: true,
			work:      faulty,
		},
		{
			name: "orders.single.quorum", args: quorum(amqp.Table{"x-single-active-consumer": true}), protected: true,
			published: true, work: faulty,
		},
		{
			name:      "orders.expires",
			args:      amqp.Table{"x-expires": int32(3_600_000)},
			protected: true,
			published: true,
			work:      faulty,
		},
		{
			name: "orders.bytes", args: quorum(amqp.Table{"x-max-length-bytes": int32(1_000_000)}), protected: true,
			published: true, work: faulty,
		},
		{
			name:      "orders.least",
			args:      quorum(amqp.Table{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}),
			protected: true, published: true, work: faulty,
		},
		{
			name: "orders.limit", args: quorum(amqp.Table{"x-delivery-limit": int32(3)}), protected: true,
			published: true, work: crashing,
		},
		{name: "orders.ttl", args: amqp.Table{"x-message-ttl": int32(1500)}, protected: true, published: true},
		{
			name:      "orders.newest",
			args:      amqp.Table{"x-max-length": int32(5), "x-overflow": "drop-head"},
			protected: true,
			published: true,
		},
		{
			name:      "orders.full",
			args:      amqp.Table{"x-max-length": int32(5), "x-overflow": "reject-publish"},
			protected: true,
			published: true,
		},
		{
			name:      "orders.full.dlx",
			args:      amqp.Table{"x-max-length": int32(5), "x-overflow": "reject-publish-dlx"},
			protected: true,
			published: true,
		},
		{name: "events.b", protected: true, published: true, work: faulty},

		{
			name:      "pay",
			args:      amqp.Table{"x-dead-letter-exchange": "site.dlx", "x-dead-letter-routing-key": "pay.dead"},
			published: true,
			work:      faulty,
		},
		{name: "pay.dead"}, // dlo drains this queue as another inbox
		{name: "bill", args: quorum(nil), published: true, work: faulty},
		{name: "bill.dead", args: quorum(nil)},
		{
			name:      "mail",
			args:      amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "mail.retry"},
			published: true,
			work:      patiently("mail.retry", "mail.failed"),
		},
		{
			name: "mail.retry",
			args: amqp.Table{
				"x-message-ttl": int32(300), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "mail",
			},
		},
		{name: "mail.failed", args: amqp.Table{"x-max-length": int32(10_000), "x-overflow": "reject-publish"}},
		{name: "sms", args: quorum(nil), published: true, work: patiently("sms.retry", "")},
		{
			name: "sms.retry",
			args: quorum(amqp.Table{
				"x-message-ttl": int32(300), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "sms",
			}),
		},
		{name: "cache", published: true, work: reliable}, // RabbitMQ deletes this queue with its last consumer
		{name: "events.a", args: quorum(nil), published: true, work: reliable},
		{name: "rejects", drops: true, published: true, work: faulty},
		{
			name:      "notes",
			args:      amqp.Table{"x-dead-letter-exchange": "an.exchange.that.is.gone"},
			drops:     true,
			published: true,
			work:      faulty,
		},
		{name: "metrics", args: amqp.Table{"x-max-length": int32(10)}, drops: true, published: true},
		{name: "audit.ttl", args: amqp.Table{"x-message-ttl": int32(1000)}, drops: true, published: true},
		{name: "logs", args: amqp.Table{"x-queue-type": "stream"}, published: true},
	}
}

// siteLimit is the limit in the site's policy for all queues. The queues bill.dead and mail.failed
// have no consumer. The limit is so high that they stay below it even on a slow machine.
const siteLimit = `"max-length":20000`

// site is a vhost with queues, publishers and consumers. It keeps a record of each message.
type site struct {
	t      *testing.T
	node   *testenv.Node
	vhost  string
	conn   *amqp.Connection
	queues []*siteQueue

	parking sync.Mutex // protects the channel on which consumers park messages
	parked  *amqp.Channel

	mu       sync.Mutex
	messages map[string]*fate // body, which consists of queue and number -> fate of the message
	handled  map[string]int   // queue -> number of deliveries
	ended    []string         // the consumers that ended before the test stopped them
	leaving  bool
}

// fate is what happened to one message of the site.
type fate struct {
	queue     *siteQueue
	published time.Time
	refused   bool // true if the broker rejected the message at publishing
	accepted  int
	rejected  time.Time // time of the last rejection
}

func newSite(t *testing.T) *site {
	t.Helper()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &site{
		t:        t,
		node:     node,
		vhost:    vhost,
		conn:     conn,
		queues:   siteQueues(),
		messages: map[string]*fate{},
		handled:  map[string]int{},
	}
	ch := s.channel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for kind, definition := range map[string]any{
		"policies/catch-all": map[string]any{
			"pattern": ".*", "apply-to": "queues", "definition": json.RawMessage("{" + siteLimit + "}"),
		},
		"policies/bill": map[string]any{
			"pattern":  "^bill$",
			"apply-to": "queues",
			"priority": 5,
			"definition": map[string]any{
				"dead-letter-exchange": "site.dlx", "dead-letter-routing-key": "bill.dead", "max-length": 1000,
			},
		},
		"policies/sms": map[string]any{
			"pattern":    "^sms$",
			"apply-to":   "queues",
			"priority":   5,
			"definition": map[string]any{"dead-letter-exchange": "sms.retry"},
		},
		"operator-policies/size": map[string]any{
			"pattern":    ".*",
			"apply-to":   "queues",
			"definition": map[string]any{"max-length-bytes": 50_000_000},
		},
	} {
		name, policy, _ := strings.Cut(kind, "/")
		must(node.API(http.MethodPut, "/api/"+name+"/"+url.PathEscape(vhost)+"/"+policy, definition, nil))
	}
	for _, e := range []struct {
		name, kind string
		args       amqp.Table
	}{
		{"site.dlx", "direct", nil},
		{"sms.retry", "fanout", nil},
		{"events", "topic", amqp.Table{"alternate-exchange": "events.others"}},
		{"events.others", "fanout", nil},
		{"by.header", "headers", nil},
	} {
		must(ch.ExchangeDeclare(e.name, e.kind, true, false, false, false, e.args))
	}
	for _, q := range s.queues {
		_, err := ch.QueueDeclare(q.name, true, q.name == "cache", false, false, q.args)
		must(err)
	}
	must(ch.QueueBind("pay.dead", "pay.dead", "site.dlx", false, nil))
	must(ch.QueueBind("bill.dead", "bill.dead", "site.dlx", false, nil))
	must(ch.QueueBind("sms.retry", "", "sms.retry", false, nil))
	must(ch.QueueBind("events.a", "events.#", "events", false, nil))
	must(ch.QueueBind("logs", "", "events.others", false, nil))
	must(ch.ExchangeBind("by.header", "headers.#", "events", false, nil))
	must(ch.QueueBind("events.b", "", "by.header", false, amqp.Table{"x-match": "all", "tenant": "acme"}))
	s.parked = s.channel()
	for _, q := range s.queues {
		if q.work != nil {
			s.consume(q)
		}
	}
	return s
}

func (s *site) channel() *amqp.Channel {
	s.t.Helper()
	ch, err := s.conn.Channel()
	if err != nil {
		s.t.Fatal(err)
	}
	return ch
}

// consume runs the consumer of a queue until the site stops.
func (s *site) consume(q *siteQueue) {
	s.t.Helper()
	ch := s.channel()
	if err := ch.Qos(20, 0, false); err != nil {
		s.t.Fatal(err)
	}
	deliveries, err := ch.Consume(q.name, "worker of "+q.name, false, false, false, false, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			v := q.work(s, &d)
			s.mu.Lock()
			s.handled[q.name]++
			switch f := s.messages[string(d.Body)]; v {
			case accepted:
				f.accepted++
			default:
				f.rejected = time.Now()
			}
			s.mu.Unlock()
			switch v {
			case accepted:
				d.Ack(false)
			case rejected:
				d.Reject(false)
			case again:
				d.Reject(true)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.leaving {
			s.ended = append(s.ended, q.name)
		}
	}()
}

// park publishes a message to the error queue of one of the site's services.
func (s *site) park(queue string, d *amqp.Delivery) {
	s.parking.Lock()
	defer s.parking.Unlock()
	if err := s.parked.PublishWithContext(context.Background(), "", queue, true, false, amqp.Publishing{
		Body: d.Body, DeliveryMode: 2,
	}); err != nil {
		s.t.Error(err)
	}
}

// publish publishes 200 messages per second to queues with consumers and 20 per second to the
// others, until ctx is done. The returned function waits for the last response of the broker.
func (s *site) publish(ctx context.Context) (done func()) {
	ch := s.channel()
	if err := ch.Confirm(false); err != nil {
		s.t.Fatal(err)
	}
	var worked, idle []*siteQueue
	for _, q := range s.queues {
		switch {
		case q.published && q.work != nil:
			worked = append(worked, q)
		case q.published:
			idle = append(idle, q)
		}
	}
	type sent struct {
		fate   *fate
		answer *amqp.DeferredConfirmation
	}
	answers := make(chan sent, 10_000)
	send := func(q *siteQueue, n int) {
		body, f := fmt.Sprintf("%s %d", q.name, n), &fate{queue: q, published: time.Now()}
		s.mu.Lock()
		s.messages[body] = f
		s.mu.Unlock()
		exchange, key, headers := "", q.name, amqp.Table(nil)
		switch q.name {
		case "events.a":
			exchange, key = "events", "events.created"
		case "events.b":
			exchange, key, headers = "events", "headers.created", amqp.Table{"tenant": "acme"}
		case "logs":
			exchange, key = "events", "nobody.asks.for.this"
		}
		answer, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, amqp.Publishing{
			Headers: headers, Body: []byte(body), DeliveryMode: 2, Priority: uint8(n % 6),
		})
		if err != nil {
			s.t.Error(err)
			return
		}
		answers <- sent{f, answer}
	}
	go func() {
		defer close(answers)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			send(worked[n%len(worked)], n/len(worked))
			if n%10 == 0 {
				send(idle[n/10%len(idle)], n/10/len(idle))
			}
		}
	}()
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		for a := range answers {
			ok := a.answer.Wait()
			s.mu.Lock()
			a.fate.refused = !ok
			s.mu.Unlock()
		}
	}()
	return func() { <-waited }
}

// waitForMessages waits until every consumer has handled the given number of further messages. It
// returns how many messages per second all consumers together handled in this time.
func (s *site) waitForMessages(more int) float64 {
	s.t.Helper()
	counts := func() map[string]int {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := map[string]int{}
		for name, n := range s.handled {
			all[name] = n
		}
		return all
	}
	sum := func(all map[string]int) (n int) {
		for _, k := range all {
			n += k
		}
		return n
	}
	before, began := counts(), time.Now()
	eventually(s.t, "all consumers work", func() bool {
		now := counts()
		return !slices.ContainsFunc(
			s.queues, func(q *siteQueue) bool { return q.work != nil && now[q.name] < before[q.name]+more },
		)
	})
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if len(ended) > 0 {
		s.t.Errorf("the consumers of %q have ended", ended)
	}
	return float64(sum(counts())-sum(before)) / time.Since(began).Seconds()
}

// ofDLO reports whether the name of a queue, an exchange or a policy shows that it belongs to dlo.
func ofDLO(name any) bool {
	s, _ := name.(string)
	return s == "dlo" || s == "dlo-own" || strings.HasPrefix(s, "dlo.")
}

// definitions returns everything that the management API exports for the vhost, by kind. It adds
// what the API shows about queues and consumers. If "mine" is true, it leaves out everything that
// belongs to dlo.
func (s *site) definitions(mine bool) map[string][]string {
	s.t.Helper()
	var exported map[string]any
	if err := s.node.API(http.MethodGet, "/api/definitions/"+url.PathEscape(s.vhost), nil, &exported); err != nil {
		s.t.Fatal(err)
	}
	for name, path := range map[string]string{
		"shown queues":    "queues/%s?columns=name,type,durable,auto_delete,exclusive,arguments,policy,operator_policy,effective_policy_definition,consumers",
		"shown consumers": "consumers/%s?columns=queue.name,consumer_tag,ack_required,prefetch_count,exclusive,active,activity_status",
	} {
		var list []any
		if err := s.node.API(
			http.MethodGet, "/api/"+fmt.Sprintf(path, url.PathEscape(s.vhost)), nil, &list,
		); err != nil {
			s.t.Fatal(err)
		}
		exported[name] = list
	}
	all := map[string][]string{}
	for kind, entries := range exported {
		list, ok := entries.([]any)
		if !ok {
			list = []any{entries}
		}
		for _, e := range list {
			fields, _ := e.(map[string]any)
			queue, _ := fields["queue"].(map[string]any)
			if mine && slices.ContainsFunc([]any{
				fields["name"], fields["source"], fields["destination"], queue["name"],
			}, ofDLO) {
				continue
			}
			text, err := json.Marshal(e)
			if err != nil {
				s.t.Fatal(err)
			}
			all[kind] = append(all[kind], string(text))
		}
		slices.Sort(all[kind])
	}
	return all
}

const (
	// a queue that delivers nothing for this long is empty; unacknowledged messages need a while to
	// return
	leaveIdle = 10 * time.Second
	leaveWait = time.Minute
)

// publishedTo returns how many published messages a queue has accepted.
func (s *site) publishedTo(queue string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.messages {
		if f.queue.name == queue && !f.refused {
			n++
		}
	}
	return n
}

// leave stops the consumers and reads all queues. It returns a map from the body of each message to
// the name of the queue that contains the message.
func (s *site) leave() map[string]string {
	s.t.Helper()
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	in := map[string]string{}
	s.conn.Close() // returns unacknowledged messages to their queues
	conn, err := amqp.Dial(s.node.AMQPURL(s.vhost))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	var mu sync.Mutex
	var reading sync.WaitGroup
	for _, q := range s.queues {
		if q.name == "cache" { // RabbitMQ deleted this queue with its consumer
			continue
		}
		ch, err := conn.Channel()
		if err != nil {
			s.t.Fatal(err)
		}
		// more than a slow run publishes, because the test acknowledges no message
		if err := ch.Qos(60_000, 0, false); err != nil {
			s.t.Fatal(err)
		}
		args := amqp.Table(nil)
		if q.name == "logs" {
			args = amqp.Table{"x-stream-offset": "first"}
		}
		deliveries, err := ch.Consume(q.name, "", false, false, false, false, args)
		if err != nil {
			s.t.Fatal(err)
		}
		least := 0
		if q.name == "logs" { // a stream keeps its messages, and its deliveries begin late
			least = s.publishedTo(q.name)
		}
		reading.Go(func() {
			for began, got := time.Now(), 0; ; {
				select {
				case d := <-deliveries:
					mu.Lock()
					in[string(d.Body)] = q.name
					mu.Unlock()
					got++
				case <-time.After(leaveIdle):
					if got >= least || time.Since(began) > leaveWait {
						return
					}
				}
			}
		})
	}
	reading.Wait()
	return in
}
