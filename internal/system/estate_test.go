package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// estate is a vhost of another owner. It has 31 queues with traffic, none of which was made for
// dlo.
type estate struct {
	*adopting
	conn   *amqp.Connection
	queues map[string]amqp.Table // with the arguments that their services declare

	failing  atomic.Bool // consumers reject each tenth message, the first time that they see it
	stopping atomic.Bool // nothing more is published

	mu       sync.Mutex
	sent     map[string]bool // ids that consumers have to accept
	accepted map[string]int
	rejected map[string]bool
}

// openEstate declares the queues, the exchanges and the policies, and starts the consumers.
func openEstate(t *testing.T, node *testenv.Node, vhost, address string) *estate {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &estate{adopting: &adopting{t: t, node: node, vhost: vhost}, conn: conn, queues: map[string]amqp.Table{}, sent: map[string]bool{}, accepted: map[string]int{}, rejected: map[string]bool{}}
	if s.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		s.queues[fmt.Sprintf("work.%d", i)] = nil
	}
	for i := range 6 {
		s.queues[fmt.Sprintf("jobs.%d", i)] = amqp.Table{"x-queue-type": "quorum"}
	}
	for i := range 5 {
		s.queues[fmt.Sprintf("events.%d", i)] = nil
	}
	for i := range 3 {
		s.queues[fmt.Sprintf("metrics.%d", i)] = amqp.Table{"x-message-ttl": int32(500)}
	}
	for i := range 2 {
		s.queues[fmt.Sprintf("latest.%d", i)] = amqp.Table{"x-max-length": int32(10)}
	}
	s.queues["legacy"], s.queues["legacy.dlq"] = amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "legacy.dlq"}, nil
	s.queues["recipe"], s.queues["recipe.wait"] = amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "recipe.wait"}, amqp.Table{"x-message-ttl": int32(500), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "recipe"}
	s.queues["naive"] = nil
	s.declare()
	if err := s.ch.ExchangeDeclare("events", "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := s.ch.QueueBind(fmt.Sprintf("events.%d", i), "shop.#", "events", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.api(http.MethodPut, "policies", "everything", map[string]any{"pattern": ".*", "definition": map[string]any{"max-length": 100000}, "priority": 0, "apply-to": "queues"})
	s.api(http.MethodPut, "operator-policies", "caps", map[string]any{"pattern": "^jobs", "definition": map[string]any{"max-length": 50000}, "apply-to": "queues"})
	for name := range s.queues {
		if !strings.HasPrefix(name, "metrics") && !strings.HasPrefix(name, "latest") && name != "recipe.wait" && name != "legacy.dlq" {
			s.consume(name)
		}
	}
	return s
}

// declare declares every queue as its service does at its start.
func (s *estate) declare() {
	s.t.Helper()
	for name, arguments := range s.queues {
		if _, err := s.ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			s.t.Fatalf("declare %s: %v", name, err)
		}
	}
}

// consume runs the consumer of a queue. The consumer of the queue naive requeues a message instead
// of rejecting it.
func (s *estate) consume(queue string) {
	s.t.Helper()
	ch, err := s.conn.Channel()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := ch.Qos(20, 0, false); err != nil {
		s.t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			id := queue + " " + string(d.Body)
			s.mu.Lock()
			bad := s.failing.Load() && strings.HasSuffix(id, "0") && !s.rejected[id]
			if bad {
				s.rejected[id] = true
			} else {
				s.accepted[id]++
			}
			s.mu.Unlock()
			if bad {
				_ = d.Nack(false, queue == "naive")
				continue
			}
			_ = d.Ack(false)
		}
	}()
}

// publish sends messages to all queues, about 200 a second, until the site is stopping.
func (s *estate) publish() {
	ch, err := s.conn.Channel()
	if err != nil {
		s.t.Error(err)
		return
	}
	var names []string
	for name := range s.queues {
		if name != "recipe.wait" && name != "legacy.dlq" && !strings.HasPrefix(name, "events") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for n := 0; !s.stopping.Load(); n++ {
		exchange, key := "", names[n%len(names)]
		if n%40 == 0 {
			exchange, key = "events", "shop.order"
		}
		body := fmt.Sprint(n * 5)
		s.mu.Lock()
		switch {
		case exchange != "":
			for i := range 5 {
				s.sent[fmt.Sprintf("events.%d %s", i, body)] = true
			}
		case !strings.HasPrefix(key, "metrics") && !strings.HasPrefix(key, "latest"):
			s.sent[key+" "+body] = true
		}
		s.mu.Unlock()
		if err := ch.PublishWithContext(s.t.Context(), exchange, key, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: body, Body: []byte(body)}); err != nil {
			s.t.Error(err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// missing returns how many messages no consumer has accepted yet. Messages that the consumer of
// legacy rejects do not count, because they stay in the dead-letter queue of legacy.
func (s *estate) missing() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.sent {
		if s.accepted[id] == 0 && !strings.HasPrefix(id, "legacy ") {
			n++
		}
	}
	return n
}

// definitions returns the definitions that the broker would export for the vhost, sorted.
func (s *estate) definitions() string {
	s.t.Helper()
	var all map[string]json.RawMessage
	if err := s.node.API(http.MethodGet, "/api/definitions/"+url.PathEscape(s.vhost), nil, &all); err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for kind, text := range all {
		var things []json.RawMessage
		if json.Unmarshal(text, &things) != nil {
			continue // not a list, for example the version
		}
		for _, one := range things {
			list = append(list, kind+" "+string(one))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestASiteAdoptsDloAndLeavesIt adopts a running site of 31 queues as docs/adopting.md says:
// observe, read the plan, add its rule, apply, end the mode. Consumers then reject messages. Every
// message is accepted in the end, and nobody is paged. Messages that are dropped by design flood
// nobody, and no declaration of a service fails. After the site has left, its definitions are as
// before.
func TestASiteAdoptsDloAndLeavesIt(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	s := openEstate(t, node, vhost, address)
	if len(s.queues) != 31 {
		t.Fatalf("%d queues", len(s.queues))
	}
	before := s.definitions()
	var publishing sync.WaitGroup
	publishing.Go(s.publish)
	text := func(observe bool, rule string) string {
		return fmt.Sprintf("default: {retry: {delays: [1s]}, dead: {severity: page}}\nbrokers: [{url: %q, management: %q, observe: %t}]\n%s", address, node.ManagementURLOf("guest:guest"), observe, rule)
	}
	p := newChild(t, address, text(true, ""))
	p.Start("")
	p.Draining()
	// The catch-all policy also applies to dlo's queues. dlo prints the command that displaces it.
	own := map[string]any{"pattern": `^dlo\.`, "definition": map[string]any{"overflow": "drop-head"}, "priority": 1000, "apply-to": "queues"}
	s.api(http.MethodPut, "policies", "dlo-own", own)
	var plans struct{ Plans []struct{ Rule string } }
	eventually(t, "a plan", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Contains(body, `"read_at"`)
	})
	var out string
	// dlo may look before the site has filled the queues that keep only the latest messages.
	eventually(t, "the plan names every queue that drops by design", func() bool {
		out, _ = p.dlo(t.Context(), 0, "", "topology", "plan", "-o", "json")
		if err := json.Unmarshal([]byte(out), &plans); err != nil || len(plans.Plans) != 1 {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(plans.Plans[0].Rule, `queue: ["latest.0", "latest.1", "metrics.0", "metrics.1", "metrics.2"]`)
	})
	p.Stop()
	p.Configure(text(false, plans.Plans[0].Rule))
	p.Start("")
	p.Draining()
	eventually(t, "the server has looked", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Contains(body, `"read_at"`)
	})
	out, _ = p.dlo(t.Context(), 0, "", "topology", "apply", "--yes")
	if !strings.Contains(out, "instead of policy everything, whose other keys it repeats") || strings.Contains(out, "not proved") || strings.Contains(out, "  recipe\n") || strings.Contains(out, "  legacy\n") {
		t.Errorf("%s", out)
	}
	s.failing.Store(true)
	eventually(t, "200 letters were retried", func() bool { return p.count("attempts", "") >= 200 })
	s.declare() // every service starts again
	s.stopping.Store(true)
	publishing.Wait()
	eventually(t, "every message is accepted", func() bool { return s.missing() == 0 })
	s.failing.Store(false)
	eventually(t, "no letter waits", func() bool {
		return p.letters("received")+p.letters("scheduled")+p.letters("publishing") == 0
	})
	if n := p.letters("dead") + p.letters("held"); n > 0 {
		t.Errorf("%d letters need people", n)
	}
	if n := p.count("notices", "severity = 'page' AND grp IS NOT NULL"); n > 0 {
		t.Errorf("%d pages", n)
	}
	if p.letters("discarded") < 10 {
		t.Error("what is dropped by design did not become letters")
	}
	p.dlo(t.Context(), 0, "", "topology", "undo", "*", "--yes")
	s.api(http.MethodDelete, "policies", "dlo-own", nil)
	p.Stop()
	p.leave(0, "--yes")
	s.declare()
	if after := s.definitions(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
