package rabbitmq_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// generated is a definitions file for one vhost, and how messages come to its work queues.
type generated struct {
	vhost    string
	metadata map[string]any
	objects  map[string][]map[string]any
	works    []work
}

// work is a work queue, and what publishes to it. The field "anyKey" is true if the topology does
// not show with which keys. The field "open" is true if it does not show whether dead letters are
// routed: because of that, or because messages may only wait in the queue.
type work struct {
	queue, exchange, key string
	anyKey, open         bool
}

func (g *generated) add(kind string, object map[string]any) {
	object["vhost"] = g.vhost
	g.objects[kind] = append(g.objects[kind], object)
}

func (g *generated) queue(name string, arguments map[string]any) {
	g.add("queues", map[string]any{"name": name, "durable": true, "auto_delete": false, "arguments": arguments})
}

func (g *generated) exchange(name, kind string, arguments map[string]any) {
	g.add("exchanges", map[string]any{
		"name": name, "type": kind, "durable": true, "auto_delete": false, "internal": false, "arguments": arguments,
	})
}

func (g *generated) bind(source, to, destination, key string, arguments map[string]any) {
	g.add("bindings", map[string]any{
		"source": source, "destination_type": to, "destination": destination, "routing_key": key,
		"arguments": arguments,
	})
}

func (g *generated) policy(pattern string, priority int, definition map[string]any) {
	g.add("policies", map[string]any{
		"name": fmt.Sprint("p", len(g.objects["policies"])), "pattern": pattern, "apply-to": "queues",
		"priority": priority, "definition": definition,
	})
}

// file returns the definitions file as a version of RabbitMQ would have exported it.
func (g *generated) file(version string) map[string]any {
	file := map[string]any{
		"rabbit_version": version, "rabbitmq_version": version,
		"vhosts": []any{map[string]any{"name": g.vhost, "metadata": g.metadata}},
		"permissions": []any{map[string]any{
			"user": "guest", "vhost": g.vhost, "configure": ".*", "write": ".*", "read": ".*",
		}},
	}
	for kind, list := range g.objects {
		file[kind] = list
	}
	return file
}

// one returns one of several values.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// generate returns a topology with some work queues. Each of them is right, or has a fault.
func generate(r *rand.Rand, vhost string) *generated {
	g := &generated{vhost: vhost, metadata: map[string]any{}, objects: map[string][]map[string]any{}}
	if r.IntN(4) == 0 {
		g.metadata["default_queue_type"] = one(r, "quorum", "undefined")
	}
	g.queue("dlo.letters", map[string]any{"x-queue-type": "classic"})
	g.exchange("dlo.dlx", "fanout", map[string]any{})
	g.bind("dlo.dlx", "queue", "dlo.letters", "", map[string]any{})
	for i := range 4 {
		g.work(r, fmt.Sprintf("work%d", i))
	}
	switch r.IntN(4) {
	case 0: // a policy that hides others
		g.policy(one(r, `^(?!dlo\.).*`, `^(?!dlo\.|work0).*`, `^work[12]$`, `(?<!dead)$`), 20, map[string]any{
			"max-length": 100_000,
		})
	case 1: // a policy that hides none, because it is for few or comes last
		g.policy(one(r, `^(?!work|dlo).*`, `^work9`), 20, map[string]any{"max-length": 100_000})
	}
	return g
}

// work adds a work queue, with a way of messages into it and a way of its dead letters.
func (g *generated) work(r *rand.Rand, name string) {
	dlx, dead, arguments := name+".dlx", name+".dead", map[string]any{}
	if r.IntN(3) == 0 {
		arguments["x-queue-type"] = one(r, "classic", "quorum")
	}
	w := work{queue: name, key: name}
	switch r.IntN(7) {
	case 0:
		w.exchange, w.key = name+".in", name+".created"
		g.exchange(w.exchange, "direct", map[string]any{})
		g.bind(w.exchange, "queue", name, w.key, map[string]any{})
	case 1:
		w.exchange, w.key = name+".in", name+".created"
		g.exchange(w.exchange, "topic", map[string]any{})
		g.bind(w.exchange, "queue", name, one(r, name+".*", "#", "*.created", name+".created"), map[string]any{})
	case 2: // a chain of topic exchanges
		w.exchange, w.key = name+".all", "eu."+name
		g.exchange(w.exchange, "topic", map[string]any{})
		g.exchange(name+".in", "topic", map[string]any{})
		g.bind(w.exchange, "exchange", name+".in", one(r, "eu.#", "#", "*.*"), map[string]any{})
		g.bind(name+".in", "queue", name, one(r, "*."+name, "#."+name, "#"), map[string]any{})
	case 3: // a fanout exchange behind one that routes by keys
		w.exchange, w.key = name+".all", one(r, name+".created", "")
		g.exchange(w.exchange, "direct", map[string]any{})
		g.exchange(name+".in", "fanout", map[string]any{})
		g.bind(w.exchange, "exchange", name+".in", w.key, map[string]any{})
		g.bind(name+".in", "queue", name, "", map[string]any{})
	case 4: // any key
		w.exchange, w.key, w.anyKey = name+".in", one(r, "any", ""), true
		g.exchange(w.exchange, "fanout", map[string]any{})
		g.bind(w.exchange, "queue", name, "", map[string]any{})
	}
	if r.IntN(6) == 0 {
		arguments["x-message-ttl"] = 60_000
	}
	if r.IntN(6) == 0 {
		value := map[string]any{
			"pattern": "^" + name + "$", "apply-to": "queues", "priority": 0, "definition": map[string]any{"expires": 3_600_000},
		}
		g.add("parameters", map[string]any{"component": "operator_policy", "name": name, "value": value})
	}
	keys := map[string]any{"dead-letter-exchange": dlx}
	kind := g.deadLetters(r, w, dlx, dead, keys)
	_, fixed := keys["dead-letter-routing-key"]
	w.open = !fixed && (kind == "direct" || kind == "topic") && (w.anyKey || arguments["x-message-ttl"] != nil)
	g.works = append(g.works, w)
	if r.IntN(5) == 0 { // a key that some types and versions do not support
		key := one(r, "queue-leader-locator", "max-in-memory-length", "delivery-limit", "queue-mode")
		keys[key] = map[string]any{
			"queue-leader-locator": "balanced", "max-in-memory-length": 1000, "delivery-limit": 7, "queue-mode": "lazy",
		}[key]
	}
	if _, plain := keys["max-in-memory-length"]; !plain && len(keys) <= 2 && r.IntN(3) == 0 {
		for key, value := range keys {
			if strings.HasPrefix(key, "dead-letter-") {
				arguments["x-"+key] = value
			}
		}
	} else {
		g.policy(one(r, "^"+name+"$", "^(?!dlo)"+name+"$", name+"(?!\\.)", "^(?="+name+").{5}$"), 5, keys)
	}
	g.queue(name, arguments)
}

// deadLetters adds the exchange for the dead letters of a work queue, or leaves a part of it out.
// It returns the type of the exchange.
func (g *generated) deadLetters(r *rand.Rand, w work, dlx, dead string, keys map[string]any) (kind string) {
	g.queue(dead, map[string]any{"x-queue-type": "classic", "x-dead-letter-exchange": "dlo.dlx"})
	to := func(key string, arguments map[string]any) { g.bind(dlx, "queue", dead, key, arguments) }
	switch r.IntN(7) {
	case 0:
		keys["dead-letter-exchange"] = "dlo.dlx"
	case 1: // no exchange
	case 2:
		g.exchange(dlx, "fanout", map[string]any{})
		if r.IntN(3) > 0 {
			to("", map[string]any{})
		}
	case 3:
		g.exchange(dlx, "direct", map[string]any{})
		to(one(r, w.key, w.key, w.queue, "other"), map[string]any{})
		if r.IntN(2) == 0 {
			keys["dead-letter-routing-key"] = one(r, "other", w.key)
		}
		if r.IntN(3) == 0 { // an alternate exchange
			g.policy(one(r, "^"+w.queue+`\.dlx$`, `^(?!dlo)`+w.queue+`\.dlx(?:\x{41})?$`, `^dlx$`), 1, map[string]any{
				"alternate-exchange": one(r, "dlo.dlx", "gone"),
			})
			g.objects["policies"][len(g.objects["policies"])-1]["apply-to"] = "exchanges"
		}
	case 4:
		g.exchange(dlx, "topic", map[string]any{})
		to(one(r, "#", "*."+w.queue, w.queue+".#", "eu.#", "x.y.#", "*.*", "*", "*.#"), map[string]any{})
		if r.IntN(4) == 0 {
			keys["dead-letter-routing-key"] = ""
		}
	case 5:
		g.exchange(dlx, "headers", map[string]any{})
		to("", one(
			r, map[string]any{}, map[string]any{"x-match": "all-with-x", "x-first-death-reason": "rejected"},
			map[string]any{"x-match": "all", "x-first-death-reason": "expired"},
			map[string]any{"x-match": "any", "x-first-death-queue": w.queue},
			map[string]any{"x-match": "all-with-x", "x-first-death-queue": "elsewhere"}, map[string]any{"tenant": "a"},
		))
	case 6:
		keys["dead-letter-exchange"], keys["dead-letter-routing-key"] = "", one(r, dead, dead, "gone")
	}
	if of := g.objects["exchanges"]; len(of) > 0 && of[len(of)-1]["name"] == dlx {
		kind = of[len(of)-1]["type"].(string)
	}
	return kind
}

// TestGeneratedTopologies imports generated definitions into a broker, and rejects a message in
// each work queue. What arrives is compared with what dlo says about the file and about the broker:
// no page where the message arrives, and a finding wherever it is lost and the topology shows it.
func TestGeneratedTopologies(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	onEachVersion(t, func(t *testing.T, root string) { onBothKinds(t, root, compareTopologies) })
}

func compareTopologies(t *testing.T, node *testenv.Node) {
	type imported struct {
		*generated
		seed    uint64
		ch      *amqp.Channel
		file    []byte
		arrived map[string]bool // the work queues whose message arrived in another queue
	}
	var all []imported
	arrived, lost, refused := 0, 0, 0
	for seed := range uint64(40) {
		vhost, address := node.VHost(t)
		g := generate(rand.New(rand.NewPCG(seed, 49)), vhost)
		file := g.file(node.Version())
		if err := node.API(http.MethodPost, "/api/definitions", file, nil); err != nil {
			t.Logf("seed %d: %s refuses the file: %v", seed, node.Version(), err)
			refused++
			continue
		}
		text, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		ch := openChannel(t, address, nil)
		g.rejectInEach(t, ch)
		all = append(all, imported{g, seed, ch, text, map[string]bool{}})
	}
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		for _, i := range all {
			i.collect(t, i.ch, i.arrived)
		}
	}
	for _, i := range all {
		byFile, err := topology.ReadDefinitions(i.file)
		if err != nil {
			t.Fatal(err)
		}
		byBroker, err := rabbitmq.Look(t.Context(), node.ManagementURLOf("guest:guest"), []string{i.vhost})
		if err != nil {
			t.Fatal(err)
		}
		for from, s := range map[string]*topology.Snapshot{"file": &byFile[0], "broker": &byBroker[0]} {
			found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
			for _, w := range i.works {
				page, said := saysLost(found, w.queue)
				switch {
				case i.arrived[w.queue] && page != "":
					t.Errorf("seed %d, %s, %+v: the letter arrives, and there is a page: %s", i.seed, from, w, page)
				case !i.arrived[w.queue] && !said && !w.open:
					t.Errorf("seed %d, %s, %+v: the letter is lost, and nothing says so", i.seed, from, w)
				}
			}
		}
		for _, w := range i.works {
			if i.arrived[w.queue] {
				arrived++
			} else {
				lost++
			}
		}
	}
	t.Logf("%s: %d arrived, %d lost, %d files refused", node.Version(), arrived, lost, refused)
	if arrived < 20 || lost < 20 {
		t.Errorf("only %d arrived, and %d were lost", arrived, lost)
	}
}

// saysLost returns the page about lost dead letters of a queue. The result "said" is also true if a
// finding says that they may be lost, or that it is not known whether they are.
func saysLost(found []topology.Finding, queue string) (page string, said bool) {
	kinds := []topology.Kind{
		topology.NoExchange, topology.ExchangeMissing, topology.NoBinding, topology.QueueMissing,
		topology.PolicyShadowed, topology.PolicyIgnored, topology.RouteUnknown, topology.PatternUnknown,
	}
	for _, f := range found {
		if !slices.Contains(kinds, f.Kind) || !slices.Contains(f.Queues(), queue) {
			continue
		}
		said = said || f.Sure == topology.Likely
		if f.Severity == deadletter.SeverityPage {
			said, page = true, string(f.Kind)+": "+f.Title
		}
	}
	return page, said
}

// rejectInEach publishes a message to each work queue and rejects it.
func (g *generated) rejectInEach(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	for _, w := range g.works {
		if err := ch.PublishWithContext(
			t.Context(), w.exchange, w.key, false, false, amqp.Publishing{MessageId: w.queue},
		); err != nil {
			t.Fatal(err)
		}
		var d amqp.Delivery
		for until, ok := time.Now().Add(patience), false; !ok; time.Sleep(20 * time.Millisecond) {
			var err error
			if d, ok, err = ch.Get(w.queue, false); err != nil || time.Now().After(until) {
				t.Fatalf("%+v gets no message: %v", w, err)
			}
		}
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
	}
}

// collect takes the messages out of all queues except the work queues. It adds the work queues that
// they come from to the parameter "arrived".
func (g *generated) collect(t *testing.T, ch *amqp.Channel, arrived map[string]bool) {
	t.Helper()
	for _, q := range g.objects["queues"] {
		name := q["name"].(string)
		if slices.ContainsFunc(g.works, func(w work) bool { return w.queue == name }) {
			continue
		}
		for {
			d, ok, err := ch.Get(name, true)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			arrived[d.MessageId] = true
		}
	}
}
