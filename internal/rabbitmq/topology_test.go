package rabbitmq_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// fault is a mistake that the test makes in the configuration of a vhost. It also contains what dlo
// should do about this mistake.
type fault struct {
	orders  amqp.Table // arguments of the queue orders
	letters amqp.Table // further arguments of the inbox
	queues  map[string]amqp.Table
	fanouts map[string]string   // further exchanges, each with the queue to which it is bound; "" = no queue
	binds   [][3]string         // exchange, queue and routing key; the exchange is of the type direct
	policy  map[string]any      // the keys of the policy for orders; nil = none
	more    map[string]policyOf // further policies
	limits  map[string]any      // the keys of an operator policy for orders
	use     func(t *testing.T, b *faulty)
	want    string   // the kind of the finding, and its queue if that is not orders
	safe    bool     // the plan is for dead-lettering at least once
	planned bool     // the plan cures the fault
	inboxes []string // further inboxes of dlo
	idle    bool     // dlo has seen no consumer of orders for an hour
	from    string   // the first RabbitMQ version that has the fault; "" = all versions
	before  string   // the first RabbitMQ version that no longer has the fault; "" = none

	// Some faults cannot be cured by a policy, so that people have to cure them by hand. For such a
	// fault, the function "cure" does what the text of the finding says. The field "says" is a part
	// of this text. After the cure, dead letters must reach the queue whose name is in "arrives".
	says    string
	cure    func(t *testing.T, b *faulty)
	arrives string // "" = dlo.letters
}

type policyOf struct {
	pattern  string
	priority int
	keys     map[string]any
}

// toDLO returns the keys of a policy that sends dead letters to dlo's exchange. The given pairs of
// key and value are added to the policy.
func toDLO(pairs ...any) map[string]any {
	keys := map[string]any{"dead-letter-exchange": "dlo.dlx"}
	for i := 0; i < len(pairs); i += 2 {
		keys[pairs[i].(string)] = pairs[i+1]
	}
	return keys
}

var faults = map[string]fault{
	"nothing":     {policy: toDLO()},
	"no exchange": {want: "no_exchange", planned: true},
	"missing exchange, declared": {
		policy: toDLO("dead-letter-exchange", "gone"), want: "exchange_missing",
		says: "Declare the exchange gone and bind a queue to it",
		cure: func(t *testing.T, b *faulty) {
			if err := b.ch.ExchangeDeclare("gone", "fanout", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			b.bind(t, "dlo.letters", "", "gone")
		},
	},
	"no binding, bound": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": ""},
		want:    "no_binding",
		says:    "Bind a dead-letter queue to the exchange dlx",
		cure:    func(t *testing.T, b *faulty) { b.bind(t, "dlo.letters", "", "dlx") },
	},
	"no binding for a key, set": {
		policy: toDLO("dead-letter-exchange", "dlx", "dead-letter-routing-key", "dead"),
		binds:  [][3]string{{"dlx", "dlo.letters", "other"}},
		want:   "no_binding",
		says:   "set a dead-letter routing key that is bound",
		cure: func(t *testing.T, b *faulty) {
			b.setPolicy(t, "dead-letter-exchange", "dlx", "dead-letter-routing-key", "other")
		},
	},
	"missing queue, declared": {
		policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "gone"), want: "queue_missing",
		says: "Declare the queue gone", arrives: "gone",
		cure: func(t *testing.T, b *faulty) { b.declare(t, "gone", nil) },
	},
	"second death, bound": {
		policy: toDLO("dead-letter-exchange", "dlx"),
		binds:  [][3]string{{"events", "orders", "order"}, {"dlx", "dlo.letters", "order"}},
		want:   "second_death_lost",
		says:   "Bind the dead-letter queue with the name of the queue as a key as well",
		cure:   func(t *testing.T, b *faulty) { b.bind(t, "dlo.letters", "orders", "dlx") },
	},
	"argument, declared again": {
		orders:  amqp.Table{"x-dead-letter-exchange": "dlx"},
		policy:  toDLO(),
		fanouts: map[string]string{"dlx": "parked"},
		queues:  map[string]amqp.Table{"parked": nil},
		want:    "argument_wins",
		says:    "Empty and delete the queue, and declare it again without the argument",
		cure: func(t *testing.T, b *faulty) {
			b.delete(t, "orders")
			b.declare(t, "orders", nil)
			b.delete(t, "parked") // nothing leads to this queue any more
		},
	},
	"operator, who removes the limit": {
		policy: toDLO("max-length", 1000),
		limits: map[string]any{"max-length": 10},
		want:   "operator_caps",
		says:   "Ask the operators of the broker",
		cure:   func(t *testing.T, b *faulty) { b.deletePolicy(t, "operator-policies", "caps") },
	},
	"cycle, broken": {
		policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "wait", "message-ttl", 5000),
		queues: map[string]amqp.Table{
			"wait": {"x-message-ttl": int32(5000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"},
		},
		want: "cycle",
		says: "Let the expired messages of one of these queues go to a queue outside the circle",
		cure: func(t *testing.T, b *faulty) { b.setPolicy(t, "message-ttl", 5000) },
	},
	"time-to-live of letters": {
		policy: toDLO(),
		more:   map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"message-ttl": 60000}}},
		want:   "letters_deleted dlo.letters",
		says:   "Remove these settings",
		cure:   deleteLimits,
	},
	"length of letters": {
		policy: toDLO(),
		more:   map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"max-length": 1000}}},
		want:   "letters_deleted dlo.letters",
		says:   "Remove these settings",
		cure:   deleteLimits,
	},
	"bytes of letters": {
		policy: toDLO(),
		more:   map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"max-length-bytes": 100000}}},
		want:   "letters_deleted dlo.letters",
		says:   "Remove these settings",
		cure:   deleteLimits,
	},
	"expiry of letters": {
		policy: toDLO(),
		more:   map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"expires": 3600000}}},
		want:   "letters_deleted dlo.letters",
		says:   "Remove these settings",
		cure:   deleteLimits,
	},
	"letters refused": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": "parked"},
		queues:  map[string]amqp.Table{"parked": nil},
		more: map[string]policyOf{
			"limits": {"^parked$", 9, map[string]any{"max-length": 1000, "overflow": "reject-publish"}},
		},
		want:    "letters_deleted parked",
		says:    "Remove the limit",
		cure:    deleteLimits,
		arrives: "parked",
	},
	"argument of letters": {
		policy:  toDLO(),
		letters: amqp.Table{"x-message-ttl": int32(60000)},
		want:    "letters_deleted dlo.letters",
		says:    "replace it by a queue without the argument",
		cure: func(t *testing.T, b *faulty) {
			b.delete(t, "dlo.letters")
			b.declare(t, "dlo.letters", nil)
			b.bind(t, "dlo.letters", "", "dlo.dlx")
		},
	},
	"letters deleted with their last consumer": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": ""},
		want:    "letters_deleted parked",
		says:    "replace it by a queue without the argument",
		arrives: "parked",
		use: func(t *testing.T, b *faulty) {
			if _, err := b.ch.QueueDeclare("parked", true, true, false, false, nil); err != nil {
				t.Fatal(err)
			}
			if err := b.ch.QueueBind("parked", "", "dlx", false, nil); err != nil {
				t.Fatal(err)
			}
		},
		cure: func(t *testing.T, b *faulty) {
			b.delete(t, "parked")
			b.declare(t, "parked", nil)
			b.bind(t, "parked", "", "dlx")
		},
	},
	"delivery limit of a policy": {
		policy: toDLO(),
		more:   map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"delivery-limit": 5}}},
		want:   "delivery_limit dlo.letters",
		says:   "Remove the limit",
		cure:   deleteLimits,
	},
	"default delivery limit": {
		policy:  toDLO(),
		letters: amqp.Table{"x-delivery-limit": nil},
		want:    "delivery_limit dlo.letters",
		from:    "4.0",
		says:    "Set a policy with delivery-limit -1 for the queue",
		cure: func(t *testing.T, b *faulty) {
			setPolicy(t, b.node, b.vhost, "policies", "limits", map[string]any{
				"pattern":    "^dlo",
				"apply-to":   "queues",
				"definition": map[string]any{"delivery-limit": -1},
			})
		},
	},
	"delivery limit -1 on 3.x": {
		policy:  toDLO(),
		letters: amqp.Table{"x-delivery-limit": int32(-1)},
		want:    "delivery_limit dlo.letters",
		before:  "4.0",
		says:    "Remove the limit: on 3.x, a quorum queue has none by default",
		cure: func(t *testing.T, b *faulty) {
			b.delete(t, "dlo.letters")
			b.declare(t, "dlo.letters", amqp.Table{"x-queue-type": "quorum"})
			b.bind(t, "dlo.letters", "", "dlo.dlx")
		},
	},
	"missing exchange": {policy: toDLO("dead-letter-exchange", "gone"), want: "exchange_missing", planned: true},
	"no binding": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": ""},
		want:    "no_binding",
		planned: true,
	},
	"no binding for a key": {
		policy:  toDLO("dead-letter-exchange", "dlx", "dead-letter-routing-key", "dead"),
		binds:   [][3]string{{"dlx", "dlo.letters", "other"}},
		want:    "no_binding",
		planned: true,
	},
	"missing queue": {
		policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "gone"), want: "queue_missing",
		planned: true,
	},
	"full queue": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": "parked"},
		queues:  map[string]amqp.Table{"parked": {"x-max-length": int32(1)}},
		use:     func(t *testing.T, b *faulty) { publishTo(t, b.ch, "parked") },
		want:    "queue_full orders, letters_deleted parked",
	},
	"full queue, emptied": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": "parked"},
		queues:  map[string]amqp.Table{"parked": nil},
		more:    map[string]policyOf{"limits": {"^parked$", 9, map[string]any{"max-length": 1}}},
		use:     func(t *testing.T, b *faulty) { publishTo(t, b.ch, "parked") },
		want:    "queue_full orders, letters_deleted parked",
		says:    "Empty parked, and remove its length limit",
		arrives: "parked",
		cure: func(t *testing.T, b *faulty) {
			if _, err := b.ch.QueuePurge("parked", false); err != nil {
				t.Fatal(err)
			}
			deleteLimits(t, b)
		},
	},
	"second death": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		binds:   [][3]string{{"events", "orders", "order"}, {"dlx", "dlo.letters", "order"}},
		want:    "second_death_lost",
		planned: true,
	},
	"fanout source": {
		policy:  toDLO("dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"events": "orders"},
		binds:   [][3]string{{"dlx", "dlo.letters", "orders"}},
		want:    "no_binding",
		planned: true,
	},
	"limit of the policy": {
		policy:  toDLO(),
		letters: amqp.Table{"x-delivery-limit": int32(9)},
		more:    map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"delivery-limit": 5}}},
		want:    "delivery_limit dlo.letters",
	},
	"argument": {
		orders:  amqp.Table{"x-dead-letter-exchange": "dlx"},
		policy:  toDLO(),
		fanouts: map[string]string{"dlx": "parked"},
		queues:  map[string]amqp.Table{"parked": nil},
		want:    "argument_wins",
	},
	"shadowed": {
		policy:  toDLO(),
		more:    map[string]policyOf{"limits": {"^ord", 99, map[string]any{"max-length": 1000}}},
		want:    "policy_shadowed",
		planned: true,
	},
	"tied": {
		policy:  toDLO(),
		more:    map[string]policyOf{"limits": {"^ord", 10, map[string]any{"max-length": 1000}}},
		want:    "policy_tied",
		planned: true,
	},
	"operator": {
		policy: toDLO("max-length", 1000),
		limits: map[string]any{"max-length": 10},
		want:   "operator_caps",
	},
	"cycle": {
		policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "wait", "message-ttl", 5000),
		queues: map[string]amqp.Table{
			"wait": {"x-message-ttl": int32(5000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"},
		},
		want: "cycle",
	},
	"retry recipe": {
		policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "wait"),
		queues: map[string]amqp.Table{
			"wait": {"x-message-ttl": int32(5000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"},
		},
		want: "retry_recipe",
	},
	"at most once": {
		orders:  amqp.Table{"x-queue-type": "quorum"},
		policy:  toDLO(),
		want:    "at_most_once",
		safe:    true,
		planned: true,
	},
	"overflow": {
		orders:  amqp.Table{"x-queue-type": "quorum"},
		policy:  toDLO("dead-letter-strategy", "at-least-once"),
		want:    "overflow_drops",
		safe:    true,
		planned: true,
	},
	"at least once": {
		orders: amqp.Table{"x-queue-type": "quorum"},
		policy: toDLO("dead-letter-strategy", "at-least-once", "overflow", "reject-publish"),
	},
	"deletes": {
		policy:  toDLO(),
		letters: amqp.Table{"x-message-ttl": int32(60000)},
		want:    "letters_deleted dlo.letters",
	},
	"delivery limit": {
		policy:  toDLO(),
		letters: amqp.Table{"x-delivery-limit": int32(7)},
		want:    "delivery_limit dlo.letters",
	},
	"taken twice": {
		policy:  toDLO(),
		queues:  map[string]amqp.Table{"orders.dlq": nil},
		binds:   [][3]string{{"dlo.dlx", "orders.dlq", ""}},
		inboxes: []string{"orders.dlq"},
		want:    "taken_twice ",
		says:    "Remove the bindings of all but one of these queues from exchange dlo.dlx",
		cure: func(t *testing.T, b *faulty) {
			if err := b.ch.QueueUnbind("orders.dlq", "", "dlo.dlx", nil); err != nil {
				t.Fatal(err)
			}
		},
	},
	"stuck": {
		orders: amqp.Table{"x-queue-type": "quorum"},
		policy: toDLO(
			"dead-letter-strategy", "at-least-once", "overflow", "reject-publish", "dead-letter-exchange", "dlx",
		),
		fanouts: map[string]string{"dlx": "parked"},
		queues:  map[string]amqp.Table{"parked": nil},
		more: map[string]policyOf{
			"limits": {"^parked$", 9, map[string]any{"max-length": 1, "overflow": "reject-publish"}},
		},
		use: func(t *testing.T, b *faulty) {
			publishTo(t, b.ch, "parked")
			for range 3 {
				reject(t, b.ch)
			}
		},
		want:    "stuck orders",
		says:    "its queue accepts messages. The broker then tries again within three minutes",
		arrives: "parked",
		cure:    deleteLimits,
	},
	"wait queue of dlo": {
		policy: toDLO(), fanouts: map[string]string{"dlo.wait.5000": "dlo.wait.5000"},
		queues: map[string]amqp.Table{
			"dlo.wait.5000": {
				"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-overflow": "reject-publish",
				"x-message-ttl": int32(5000),
			},
		},
	},
	"no consumers": {
		policy: toDLO(), idle: true, want: "no_consumers orders", says: "Start a consumer", cure: startRejecting,
		use: func(t *testing.T, b *faulty) {
			// the client library allows no other call on a channel while it publishes
			own := openChannel(t, b.node.AMQPURL(b.vhost), nil)
			go func() {
				for every := time.NewTicker(50 * time.Millisecond); t.Context().Err() == nil; <-every.C {
					_ = own.PublishWithContext(
						t.Context(), "", "orders", false, false, amqp.Publishing{Body: []byte("x")},
					)
				}
			}()
		},
	},
	"left behind": {
		policy: toDLO(), idle: true, want: "left_behind orders", says: "Start a consumer", cure: startRejecting,
		use: func(t *testing.T, b *faulty) { publishTo(t, b.ch, "orders") },
	},
	// The regular expression of this policy is one that dlo cannot evaluate. On a live broker, this
	// must cause no finding, because the broker itself reports which policy applies to a queue.
	"unknown pattern": {more: map[string]policyOf{"lookahead": {"^(?!mail|dlo).*$", 10, toDLO()}}},
	"storm": {
		policy: toDLO(),
		use: func(t *testing.T, b *faulty) {
			publishTo(t, b.ch, "orders")
			rejectMessages.Store(false)
			deliveries, err := b.ch.Consume("orders", "", false, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for d := range deliveries {
					time.Sleep(20 * time.Millisecond)
					_ = d.Nack(false, !rejectMessages.Load())
				}
			}()
		},
		want: "redelivery_storm", says: "Have consumers reject failed messages without requeue",
		cure: func(*testing.T, *faulty) { rejectMessages.Store(true) },
	},
}

// rejectMessages is true while the consumer in the test case "storm" rejects messages without
// requeue.
var rejectMessages atomic.Bool

// TestEachFaultOnABroker gives a vhost one fault at a time. It checks that dlo finds this fault and
// nothing else. If a policy cures the fault, the test sets the policies of the plan. If people have
// to cure it, the test does what the text of the finding says. It then checks that the finding is
// gone, and that a rejected message arrives in the dead-letter queue.
func TestEachFaultOnABroker(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	// A queue with the strategy at-least-once sends a dead letter again if it was not confirmed
	// within three minutes. The test shortens this time for the case "stuck".
	if _, err := node.Ctl(
		"eval", "application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, 15000).",
	); err != nil {
		t.Fatal(err)
	}
	for name, f := range faults {
		if f.from != "" && !node.AtLeast(f.from) || f.before != "" && node.AtLeast(f.before) {
			continue // this version does not have the fault
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vhost, address := node.VHost(t)
			ch := openChannel(t, address, nil)
			b := &faulty{node, vhost, ch}
			f.make(t, node, vhost, ch)
			if f.use != nil {
				f.use(t, b)
			}
			want := f.want
			if want != "" && !strings.Contains(want, " ") {
				want += " orders"
			}
			s := f.awaitFindings(t, node, vhost, want)
			if f.cure != nil {
				if !slices.ContainsFunc(
					f.findings(s), func(found topology.Finding) bool { return strings.Contains(found.Cure, f.says) },
				) {
					t.Errorf("no finding says %q", f.says)
				}
				f.cure(t, b)
				f.awaitFindings(t, node, vhost, "")
				rejectUntilDead(t, ch, cmp.Or(f.arrives, "dlo.letters"))
			}
			if !f.planned {
				return
			}
			plan := topology.MakePlan(s, topology.Want{
				Queues:      []string{"orders"},
				Exchange:    "dlo.dlx",
				AtLeastOnce: f.safe,
			})
			if len(plan.Policies) != 1 {
				t.Fatalf("%+v", plan)
			}
			p := plan.Policies[0]
			setPolicy(t, node, vhost, "policies", p.Name, map[string]any{
				"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition,
			})
			after := f.awaitFindings(t, node, vhost, map[bool]string{true: "", false: atMostOnce(f)}[f.safe])
			if wrong := plan.Verify(after); len(wrong) > 0 {
				t.Error(wrong)
			}
			rejectUntilDead(t, ch, "dlo.letters")
		})
	}
}

// atMostOnce returns the finding for a quorum queue that dead-letters at most once, so that a
// message can be lost on its way. For other types of queues, it returns "". This finding stays
// unless the plan sets dead-lettering at least once.
func atMostOnce(f fault) string {
	if f.orders["x-queue-type"] == "quorum" {
		return "at_most_once orders"
	}
	return ""
}

// make declares the objects of a fault.
func (f *fault) make(t *testing.T, node *testenv.Node, vhost string, ch *amqp.Channel) {
	t.Helper()
	letters := amqp.Table{"x-queue-type": "quorum"}
	if node.AtLeast("4.0") {
		letters["x-delivery-limit"] = int32(-1)
	}
	for key, value := range f.letters {
		if letters[key] = value; value == nil {
			delete(letters, key)
		}
	}
	queues := map[string]amqp.Table{"orders": f.orders, "dlo.letters": letters}
	for name, arguments := range f.queues {
		queues[name] = arguments
	}
	for name, arguments := range queues {
		if _, err := ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			t.Fatal(err)
		}
	}
	fanouts := map[string]string{"dlo.dlx": "dlo.letters"}
	for exchange, queue := range f.fanouts {
		fanouts[exchange] = queue
	}
	binds := slices.Clone(f.binds)
	for exchange, queue := range fanouts {
		if err := ch.ExchangeDeclare(exchange, "fanout", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if queue != "" {
			binds = append(binds, [3]string{exchange, queue, ""})
		}
	}
	for _, b := range binds {
		if _, ok := fanouts[b[0]]; !ok {
			if err := ch.ExchangeDeclare(b[0], "direct", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := ch.QueueBind(b[1], b[2], b[0], false, nil); err != nil {
			t.Fatal(err)
		}
	}
	if f.policy != nil {
		f.more = map[string]policyOf{"dlo": {"^orders$", 10, f.policy}, "limits": f.more["limits"]}
	}
	for name, p := range f.more {
		if p.keys != nil {
			setPolicy(t, node, vhost, "policies", name, map[string]any{
				"pattern": p.pattern, "apply-to": "queues", "priority": p.priority, "definition": p.keys,
			})
		}
	}
	if f.limits != nil {
		setPolicy(t, node, vhost, "operator-policies", "caps", map[string]any{
			"pattern": "^orders$", "apply-to": "queues", "definition": f.limits,
		})
	}
}

func setPolicy(t *testing.T, node *testenv.Node, vhost, kind, name string, body map[string]any) {
	t.Helper()
	if err := node.API(http.MethodPut, "/api/"+kind+"/"+url.PathEscape(vhost)+"/"+name, body, nil); err != nil {
		t.Fatal(err)
	}
}

// awaitFindings reads the vhost again and again, until its findings are the expected ones. The
// broker shows new numbers only after some time, and rates even later.
func (f *fault) awaitFindings(t *testing.T, node *testenv.Node, vhost, want string) *topology.Snapshot {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
		list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf("guest:guest"), []string{vhost})
		if err != nil {
			t.Fatal(err)
		}
		s := &list[0]
		var got []string
		for _, finding := range f.findings(s) {
			got = append(got, fmt.Sprintf("%s %s", finding.Kind, finding.Queue))
		}
		if strings.Join(got, ", ") == want && len(s.Gaps) == 0 {
			return s
		}
		if time.Now().After(until) {
			t.Fatalf("found %q, want %q; gaps %v", got, want, s.Gaps)
		}
	}
}

// findings returns the findings of a snapshot.
func (f *fault) findings(s *topology.Snapshot) []topology.Finding {
	o := topology.Options{Inboxes: append([]string{"dlo.letters"}, f.inboxes...), IdleAfter: 15 * time.Minute}
	if f.idle {
		o.Idle = map[string]time.Time{"orders": s.ReadAt.Add(-time.Hour)}
	}
	return topology.Inspect(s, o)
}

func publishTo(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	if err := ch.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte("x"),
	}); err != nil {
		t.Fatal(err)
	}
}

// reject publishes a message to the queue "orders" and rejects it.
func reject(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	rejectOf(t, ch, "orders")
}

// rejectOf publishes a message to a queue and rejects it.
func rejectOf(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	publishTo(t, ch, queue)
	for range 50 {
		d, ok, err := ch.Get(queue, false)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if err := d.Reject(false); err != nil {
				t.Fatal(err)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// rejectUntilDead publishes messages to the queue "orders" and rejects them, until a letter arrives
// in the given queue. The broker applies a policy some time after it accepts the policy.
func rejectUntilDead(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		reject(t, ch)
		time.Sleep(100 * time.Millisecond)
		if _, ok, err := ch.Get(queue, true); err != nil {
			t.Fatal(err)
		} else if ok {
			return
		}
	}
	t.Error("no letter arrived")
}
