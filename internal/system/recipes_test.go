package system

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// seen is a record of the deliveries to a worker, in order. The worker rejects every letter each
// time.
type seen struct {
	mu         sync.Mutex
	deliveries []amqp.Delivery
}

func (s *seen) refuse(d *amqp.Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = append(s.deliveries, *d)
	return true
}

// withBody returns the recorded deliveries with the given body, in order.
func (s *seen) withBody(body string) []amqp.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []amqp.Delivery
	for _, d := range s.deliveries {
		if string(d.Body) == body {
			list = append(list, d)
		}
	}
	return list
}

// checkSame returns an error if a delivery differs from the first delivery of the message. It
// ignores the headers that dlo and the broker add.
func checkSame(d, first amqp.Delivery) error {
	if !bytes.Equal(d.Body, first.Body) || d.ContentType != first.ContentType || d.MessageId != first.MessageId ||
		d.CorrelationId != first.CorrelationId || d.Type != first.Type {
		return fmt.Errorf("body or properties differ: %q %q", d.Body, d.MessageId)
	}
	strip := func(t amqp.Table) amqp.Table {
		out := amqp.Table{}
		for k, v := range t {
			if !strings.HasPrefix(k, "dlo-") && !strings.HasPrefix(k, "x-") {
				out[k] = v
			}
		}
		return out
	}
	if a, b := fmt.Sprint(strip(d.Headers)), fmt.Sprint(strip(first.Headers)); a != b {
		return fmt.Errorf("headers %s, were %s", a, b)
	}
	return nil
}

type recipe struct {
	name    string
	rule    string
	delays  []time.Duration // the shortest allowed delay before each retry
	restart bool            // if true, dlo is restarted between the retries
	// the queue of the broker in which a letter waits before each retry; nil = the letters wait in
	// the store
	waits []string
}

// recipes are well-known ways to retry with RabbitMQ, written as rules of dlo (docs/retries.md).
// Their worker always rejects without requeue.
var recipes = []recipe{
	{
		name:   "back to the tail, ten times at most",
		rule:   "{attempts: 10, first: 1ms, factor: 1}",
		delays: []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	},
	{
		name:   "half a second, one, two, then dead",
		rule:   "{delays: [500ms, 1s, 2s]}",
		delays: []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second},
	},
	{
		name:   "growing threefold, with jitter",
		rule:   "{attempts: 3, first: 100ms, factor: 3, max: 5s, jitter: 0.2}",
		delays: []time.Duration{80 * time.Millisecond, 240 * time.Millisecond, 720 * time.Millisecond},
	},
	{
		name:    "a dead-letter service, restarted in the middle",
		rule:    "{delays: [10ms, 100ms, 1000ms]}",
		delays:  []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second},
		restart: true,
	},
	// On a busy machine, the dispatcher claims some letters too late, so that they wait in the
	// store and not in the broker.
	{
		name:   "wait queues",
		rule:   "{delays: [1500ms, 3s, 1500ms], waiter: wait-queue}",
		delays: []time.Duration{1500 * time.Millisecond, 3 * time.Second, 1500 * time.Millisecond},
		waits:  []string{"dlo.wait.1500", "dlo.wait.3000", "dlo.wait.1500"},
	},
	{
		name:   "an expiration for each letter, growing threefold, with jitter",
		rule:   "{attempts: 3, first: 1500ms, factor: 3, max: 5s, jitter: 0.2, waiter: message-ttl}",
		delays: []time.Duration{1200 * time.Millisecond, 3600 * time.Millisecond, 4 * time.Second},
		waits:  []string{"dlo.wait.ttl", "dlo.wait.ttl", "dlo.wait.ttl"},
	},
	// The test brokers do not have the plugin for delayed exchanges, so the letters wait in the
	// store.
	{
		name:   "a delayed exchange",
		rule:   "{delays: [200ms, 400ms], waiter: delayed-exchange}",
		delays: []time.Duration{200 * time.Millisecond, 400 * time.Millisecond},
	},
}

// TestEveryWaiterHasARecipe checks that a recipe exists for every waiter except the store. A recipe
// that names no waiter uses the store.
func TestEveryWaiterHasARecipe(t *testing.T) {
	t.Parallel()
	all := ""
	for _, r := range recipes {
		all += r.rule
	}
	for _, w := range rules.Waiters {
		if w.Broker() && !strings.Contains(all, "waiter: "+string(w)) {
			t.Errorf("no recipe has letters wait in %s", w)
		}
	}
}

// TestARecipeOfEachWaiter runs the first recipe of each waiter with classic queues.
func TestARecipeOfEachWaiter(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	for _, r := range recipes {
		if r.isFirst() {
			t.Run(r.name, func(t *testing.T) { checkRecipe(t, "classic", r) })
		}
	}
}

// TestEveryRecipeWorksInEffect runs the other recipes with classic queues, and each recipe with
// quorum queues.
func TestEveryRecipeWorksInEffect(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	for _, kind := range []string{"classic", "quorum"} {
		for _, r := range recipes {
			if kind == "quorum" || !r.isFirst() {
				t.Run(kind+"/"+r.name, func(t *testing.T) { checkRecipe(t, kind, r) })
			}
		}
	}
}

// isFirst reports whether no recipe before this one has the same waiter.
func (r recipe) isFirst() bool {
	waiter := func(r recipe) string {
		_, name, _ := strings.Cut(r.rule, "waiter: ")
		return name
	}
	return recipes[slices.IndexFunc(
		recipes, func(other recipe) bool { return waiter(other) == waiter(r) },
	)].name == r.name
}

// checkRecipe runs a recipe with queues of a kind. dlo must send every letter back as often as the
// recipe says, unchanged and never early. After that, the letter must be dead.
func checkRecipe(t *testing.T, kind string, r recipe) {
	t.Parallel()
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", amqp.Table{"x-queue-type": kind})
	a.header = amqp.Table{"tenant": "acme", "n": int32(7), "list": []any{"a", int64(1)}}
	var worker seen
	a.refuse = worker.refuse
	p := newChild(
		t, url,
		"rules: [{name: recipe, match: {queue: work}, retry: "+r.rule+
			"}]\ndefault: {retry: {delays: []}}\nrequeue: {rate: 0, watch: 1m}\n",
	)
	p.Start("")
	p.Draining()
	if r.waits != nil {
		p.Waiting()
	}
	a.work()
	const letters = 20
	body := func(i int) string { return fmt.Sprintf("%s letter %d", r.name, i) }
	a.publish(letters, func(i int) (string, string) { return body(i), fmt.Sprint(i) })
	if r.restart {
		eventually(t, "a first attempt", func() bool { return p.count("attempts", `outcome = 'came back'`) > 0 })
		if code := p.Stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		p.Start("")
	}
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == letters })
	for i := range letters {
		got := worker.withBody(body(i))
		if len(got) != len(r.delays)+1 {
			t.Fatalf("letter %d was delivered %d times, want once and %d retries", i, len(got), len(r.delays))
		}
		for n, d := range got[1:] {
			if err := checkSame(d, got[0]); err != nil {
				t.Errorf("letter %d, retry %d: %v", i, n+1, err)
			}
			if number := d.Headers[deadletter.HeaderAttempt]; number != int64(n+1) {
				t.Errorf("letter %d, retry %d says it is number %v", i, n+1, number)
			}
		}
	}
	if n := p.count("letters", `attempts <> $1 OR rule <> 'recipe'`, len(r.delays)); n != 0 {
		t.Errorf("%d letters with other attempts, or of another rule", n)
	}
	// the delay of a retry begins when the letter was received or when it came back from the
	// previous retry
	for n, delay := range r.delays {
		left := "a.at"
		// the broker gets the letter before it is due, so only the time of the next death shows
		// when it was delivered
		if r.waits != nil {
			left = "a.back_at"
		}
		if early := p.ask(`SELECT count(*) FROM attempts a JOIN letters l ON l.id = a.letter
			LEFT JOIN attempts b ON b.letter = a.letter AND b.number = a.number - 1 AND b.outcome = 'came back'
			WHERE a.number = $1 AND a.outcome = 'came back' AND `+left+` < coalesce(b.back_at, l.received_at) + $2`, n+1, delay.Milliseconds()); early != 0 {
			t.Errorf("retry %d of %d letters was early", n+1, early)
		}
		where := ""
		if r.waits != nil {
			where = r.waits[n]
		}
		// This query counts the letters that waited in the wrong place. Each letter
		// must wait in the expected queue of the broker. If the dispatcher claimed a
		// letter too late for the broker, the letter may also wait in the store until
		// it is due.
		if elsewhere := p.ask(`SELECT count(*) FROM attempts a JOIN letters l ON l.id = a.letter
			LEFT JOIN attempts b ON b.letter = a.letter AND b.number = a.number - 1 AND b.outcome = 'came back'
			WHERE a.number = $1 AND a.waits_in <> $2 AND (a.waits_in <> ''
			OR coalesce(a.closed_at, a.back_at, a.at) < coalesce(b.back_at,
			l.received_at) + $3)`, n+1, where, delay.Milliseconds()); elsewhere != 0 {
			t.Errorf("before retry %d %d letters did not wait in %q", n+1, elsewhere, where)
		}
	}
	if r.waits != nil && p.count("attempts", `waits_in <> ''`) == 0 {
		t.Error("no letter waited in the broker")
	}
	if r.waits != nil && p.count("letters", `origin IN (SELECT id FROM origins WHERE queue LIKE 'dlo.%')`) != 0 {
		t.Error("a wait queue became an origin")
	}
}

// TestAReloadIsWhole checks that SIGHUP applies all rules of the file to later decisions. If the
// file contains a mistake, no rule may change.
func TestAReloadIsWhole(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	a.refuse = func(*amqp.Delivery) bool { return true }
	p := newChild(t, url, "rules: [{name: one, match: {queue: work}, retry: {delays: []}}]\n")
	p.Start("")
	p.Draining()
	a.work()
	one := func(rule string, n int) {
		t.Helper()
		a.publish(1, func(int) (string, string) { return rule + fmt.Sprint(n), "" })
		eventually(t, "a letter of rule "+rule, func() bool {
			return p.count("letters", `rule = $1 AND state = 'dead'`, rule) == n
		})
	}
	one("one", 1)
	p.Configure("rules: [{name: two, match: {queue: work}, retry: {delays: []}}]\n")
	p.Hangup()
	eventually(
		t, "the rules are loaded", func() bool { return strings.Contains(p.Log(), `msg="configuration loaded" by=dlo rules=1`) },
	)
	one("two", 1)
	p.Configure("rules: [{name: four, match: {queue: work}, retry: {delays: [1s]}}]\n" +
		"ingest: {letters: 7}\nmasking: [{header: x}]\n")
	p.Hangup()
	eventually(t, "the configuration is loaded", func() bool { return p.events("rules loaded") == 2 })
	a.publish(1, func(int) (string, string) { return "sent again", "" })
	eventually(t, "a letter goes through the components of the new configuration", func() bool {
		return p.count("letters", `rule = $1 AND state = 'dead'`, "four") == 1
	})
	p.Configure("rules: [{name: two, match: {queue: work}, retry: {delays: []}}]\n")
	p.Hangup()
	eventually(t, "the rules of before are loaded", func() bool { return p.events("rules loaded") == 3 })
	p.Configure("rules: [{name: three, match: {queue: work}, retry: {delays: []}}, {name: three}]\n")
	p.Hangup()
	eventually(
		t, "the mistake is said",
		func() bool { return strings.Contains(p.Log(), "the configuration could not be reloaded") },
	)
	one("two", 2)
	if n := p.events("rules loaded"); n != 3 {
		t.Errorf("%d entries in the audit", n)
	}
}

// fanOut publishes ten events, each to four queues. The map "kinds" contains the type of each
// queue. All queues except the queue "log" reject the events, so each rejected event becomes a
// letter. All letters must end up dead. The map "times" contains how often each queue must have
// received each event.
func fanOut(t *testing.T, kinds map[string]string, config string, times map[string]int) (p *child, events int) {
	t.Helper()
	_, url := testenv.VHost(t)
	workers := map[string]*seen{}
	var a *audit
	for queue, kind := range kinds {
		b := newAudit(t, url, queue, amqp.Table{"x-queue-type": kind})
		worker := &seen{}
		workers[queue] = worker
		b.refuse = func(d *amqp.Delivery) bool { worker.refuse(d); return queue != "log" }
		if a == nil {
			a = b
			if err := b.channel().ExchangeDeclare("events", "topic", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.channel().QueueBind(queue, "order.#", "events", false, nil); err != nil {
			t.Fatal(err)
		}
		b.work()
	}
	p = newChild(t, url, config)
	p.Start("")
	p.Draining()
	if strings.Contains(config, "waiter: ") {
		p.Waiting()
	}
	ch := a.channel()
	events = 10
	for i := range events {
		if err := ch.Publish("events", "order.paid", true, false, amqp.Publishing{
			Body: fmt.Appendf(nil, "event %d", i), DeliveryMode: 2,
		}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all letters dead", func() bool {
		return p.letters("dead") == (len(kinds)-1)*events
	})
	for queue, want := range times {
		for i := range events {
			if got := len(workers[queue].withBody(fmt.Sprintf("event %d", i))); got != want {
				t.Errorf("%s got event %d %d times, want %d", queue, i, got, want)
			}
		}
	}
	return p, events
}

// TestOnlyTheFailingQueueSeesTheRetry publishes events to four queues, three of which reject them.
// Each of the three has its own rule in the same dlo.
func TestOnlyTheFailingQueueSeesTheRetry(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	fanOut(t, map[string]string{"mail": "classic", "sms": "classic", "push": "classic", "log": "classic"}, `rules:
  - {name: mail, match: {queue: mail}, retry: {delays: [10ms]}}
  - {name: sms, match: {queue: sms}, retry: {delays: [10ms, 10ms]}}
  - {name: push, match: {queue: push}, retry: {delays: [10ms, 10ms, 10ms]}}
requeue: {rate: 0, watch: 1m}
`, map[string]int{"mail": 2, "sms": 3, "push": 4, "log": 1})
}

// TestThreeOriginsShareAWaitQueue publishes events to four queues, three of which reject them. The
// rejected letters wait in the same queue of the broker. Each must return only to its own origin.
func TestThreeOriginsShareAWaitQueue(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	p, events := fanOut(t, map[string]string{"mail": "classic", "sms": "quorum", "push": "classic", "log": "quorum"},
		"default: {retry: {delays: [2s, 2s], waiter: wait-queue}}\nrequeue: {rate: 0, watch: 1m, breaker: {came_back: 0}}\n",
		map[string]int{
			"mail": 3, "sms": 3, "push": 3, "log": 1,
		})
	if n := p.count("attempts", `waits_in = 'dlo.wait.2000'`); n != 6*events {
		t.Errorf("%d of %d attempts waited in the queue of their delay", n, 6*events)
	}
}
