package rabbitmq_test

import (
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

// fault is one way in which a vhost can be wrong.
type fault struct {
	orders  amqp.Table // arguments of the queue orders
	letters amqp.Table // further arguments of the inbox
	queues  map[string]amqp.Table
	fanouts map[string]string   // further exchanges, each bound to a queue; "" = to none
	binds   [][3]string         // exchange, queue, key; the exchange is of the type direct
	policy  map[string]any      // the keys of the policy for orders; nil = none
	more    map[string]policyOf // further policies
	limits  map[string]any      // the keys of an operator policy for orders
	use     func(t *testing.T, ch *amqp.Channel)
	mend    func() // ends what use started, after which the finding must be gone; nil = nothing does
	want    string // the finding, and its queue if that is not orders
	safe    bool   // plan at-least-once
	planned bool   // the plan cures the fault
	idle    bool   // dlo has seen no consumer of orders for an hour
}

type policyOf struct {
	pattern  string
	priority int
	keys     map[string]any
}

// toDLO returns the keys of a correct policy.
func toDLO(pairs ...any) map[string]any {
	keys := map[string]any{"dead-letter-exchange": "dlo.dlx"}
	for i := 0; i < len(pairs); i += 2 {
		keys[pairs[i].(string)] = pairs[i+1]
	}
	return keys
}

var faults = map[string]fault{
	"nothing":          {policy: toDLO()},
	"no exchange":      {want: "no_exchange", planned: true},
	"missing exchange": {policy: toDLO("dead-letter-exchange", "gone"), want: "exchange_missing", planned: true},
	"no binding":       {policy: toDLO("dead-letter-exchange", "dlx"), fanouts: map[string]string{"dlx": ""}, want: "no_binding", planned: true},
	"no binding for a key": {
		policy: toDLO("dead-letter-exchange", "dlx", "dead-letter-routing-key", "dead"), binds: [][3]string{{"dlx", "dlo.letters", "other"}}, want: "no_binding", planned: true,
	},
	"missing queue": {policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "gone"), want: "queue_missing", planned: true},
	"full queue": {
		policy: toDLO("dead-letter-exchange", "dlx"), fanouts: map[string]string{"dlx": "parked"}, queues: map[string]amqp.Table{"parked": {"x-max-length": int32(1)}},
		use:  func(t *testing.T, ch *amqp.Channel) { publishTo(t, ch, "parked") },
		want: "letters_deleted parked, queue_full orders",
	},
	"second death": {
		policy: toDLO("dead-letter-exchange", "dlx"), binds: [][3]string{{"events", "orders", "order"}, {"dlx", "dlo.letters", "order"}}, want: "second_death_lost", planned: true,
	},
	"fanout source": {
		policy: toDLO("dead-letter-exchange", "dlx"), fanouts: map[string]string{"events": "orders"}, binds: [][3]string{{"dlx", "dlo.letters", "orders"}}, want: "no_binding", planned: true,
	},
	"limit of the policy": {policy: toDLO(), letters: amqp.Table{"x-delivery-limit": int32(9)}, more: map[string]policyOf{"limits": {"^dlo", 9, map[string]any{"delivery-limit": 5}}}, want: "delivery_limit dlo.letters"},
	"argument": {
		orders: amqp.Table{"x-dead-letter-exchange": "dlx"}, policy: toDLO(), fanouts: map[string]string{"dlx": "parked"}, queues: map[string]amqp.Table{"parked": nil}, want: "argument_wins",
	},
	"shadowed":       {policy: toDLO(), more: map[string]policyOf{"limits": {"^ord", 99, map[string]any{"max-length": 1000}}}, want: "policy_shadowed", planned: true},
	"tied":           {policy: toDLO(), more: map[string]policyOf{"limits": {"^ord", 10, map[string]any{"max-length": 1000}}}, want: "policy_tied", planned: true},
	"operator":       {policy: toDLO("max-length", 1000), limits: map[string]any{"max-length": 10}, want: "operator_caps"},
	"cycle":          {policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "wait", "message-ttl", 5000), queues: map[string]amqp.Table{"wait": {"x-message-ttl": int32(5000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}}, want: "cycle"},
	"retry recipe":   {policy: toDLO("dead-letter-exchange", "", "dead-letter-routing-key", "wait"), queues: map[string]amqp.Table{"wait": {"x-message-ttl": int32(5000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}}, want: "retry_recipe"},
	"at most once":   {orders: amqp.Table{"x-queue-type": "quorum"}, policy: toDLO(), want: "at_most_once", safe: true, planned: true},
	"overflow":       {orders: amqp.Table{"x-queue-type": "quorum"}, policy: toDLO("dead-letter-strategy", "at-least-once"), want: "overflow_drops", safe: true, planned: true},
	"at least once":  {orders: amqp.Table{"x-queue-type": "quorum"}, policy: toDLO("dead-letter-strategy", "at-least-once", "overflow", "reject-publish")},
	"deletes":        {policy: toDLO(), letters: amqp.Table{"x-message-ttl": int32(60000)}, want: "letters_deleted dlo.letters"},
	"delivery limit": {policy: toDLO(), letters: amqp.Table{"x-delivery-limit": int32(7)}, want: "delivery_limit dlo.letters"},
	"stuck": {
		orders: amqp.Table{"x-queue-type": "quorum"}, policy: toDLO("dead-letter-strategy", "at-least-once", "overflow", "reject-publish", "dead-letter-exchange", "dlx"),
		fanouts: map[string]string{"dlx": "parked"}, queues: map[string]amqp.Table{"parked": {"x-max-length": int32(1), "x-overflow": "reject-publish"}},
		use: func(t *testing.T, ch *amqp.Channel) {
			publishTo(t, ch, "parked")
			for range 3 {
				reject(t, ch)
			}
		},
		want: "stuck orders",
	},
	"wait queue of dlo": {
		policy: toDLO(), fanouts: map[string]string{"dlo.wait.5000": "dlo.wait.5000"},
		queues: map[string]amqp.Table{"dlo.wait.5000": {"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-overflow": "reject-publish", "x-message-ttl": int32(5000)}},
	},
	"no consumers": {
		policy: toDLO(), idle: true, want: "no_consumers orders",
		use: func(t *testing.T, ch *amqp.Channel) {
			go func() {
				for every := time.NewTicker(50 * time.Millisecond); t.Context().Err() == nil; <-every.C {
					_ = ch.PublishWithContext(t.Context(), "", "orders", false, false, amqp.Publishing{Body: []byte("x")})
				}
			}()
		},
	},
	"left behind": {
		policy: toDLO(), idle: true, want: "left_behind orders",
		use: func(t *testing.T, ch *amqp.Channel) { publishTo(t, ch, "orders") },
	},
	// The broker reports which policy applies, so a pattern that dlo cannot evaluate causes no
	// finding on a broker.
	"unknown pattern": {more: map[string]policyOf{"lookahead": {"^(?!mail|dlo).*$", 10, toDLO()}}},
	"storm": {
		policy: toDLO(),
		use: func(t *testing.T, ch *amqp.Channel) {
			publishTo(t, ch, "orders")
			mended.Store(false)
			deliveries, err := ch.Consume("orders", "", false, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for d := range deliveries {
					time.Sleep(20 * time.Millisecond)
					_ = d.Nack(false, !mended.Load())
				}
			}()
		},
		want: "redelivery_storm",
		mend: func() { mended.Store(true) }, // the consumer rejects without requeue
	},
}

// mended makes the consumer of the case "storm" reject without requeue.
var mended atomic.Bool

// TestEachFaultOnABroker makes a vhost wrong in one way at a time. It checks that dlo finds this
// fault and nothing else. If a policy cures the fault, the test sets the policies of the plan. It
// then checks that the finding is gone and that a rejected message arrives in the inbox.
func TestEachFaultOnABroker(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vhost, address := node.VHost(t)
			ch := openChannel(t, address, nil)
			f.make(t, node, vhost, ch)
			if f.use != nil {
				f.use(t, ch)
			}
			want := f.want
			if want != "" && !strings.Contains(want, " ") {
				want += " orders"
			}
			s := f.found(t, node, vhost, want)
			if f.mend != nil {
				f.mend()
				f.found(t, node, vhost, "")
			}
			if !f.planned {
				return
			}
			plan := topology.MakePlan(s, topology.Want{Queues: []string{"orders"}, Exchange: "dlo.dlx", AtLeastOnce: f.safe})
			if len(plan.Policies) != 1 {
				t.Fatalf("%+v", plan)
			}
			p := plan.Policies[0]
			setPolicy(t, node, vhost, "policies", p.Name, map[string]any{"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition})
			after := f.found(t, node, vhost, map[bool]string{true: "", false: atMostOnce(f)}[f.safe])
			if wrong := plan.Verify(after); len(wrong) > 0 {
				t.Error(wrong)
			}
			rejected(t, ch)
		})
	}
}

// atMostOnce returns the finding that stays for a quorum queue, unless the plan is for
// at-least-once.
func atMostOnce(f fault) string {
	if f.orders["x-queue-type"] == "quorum" {
		return "at_most_once orders"
	}
	return ""
}

// make declares the objects of the fault.
func (f *fault) make(t *testing.T, node *testenv.Node, vhost string, ch *amqp.Channel) {
	t.Helper()
	letters := amqp.Table{"x-queue-type": "quorum"}
	if node.AtLeast("4.0") {
		letters["x-delivery-limit"] = int32(-1)
	}
	for key, value := range f.letters {
		letters[key] = value
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
			setPolicy(t, node, vhost, "policies", name, map[string]any{"pattern": p.pattern, "apply-to": "queues", "priority": p.priority, "definition": p.keys})
		}
	}
	if f.limits != nil {
		setPolicy(t, node, vhost, "operator-policies", "caps", map[string]any{"pattern": "^orders$", "apply-to": "queues", "definition": f.limits})
	}
}

func setPolicy(t *testing.T, node *testenv.Node, vhost, kind, name string, body map[string]any) {
	t.Helper()
	if err := node.API(http.MethodPut, "/api/"+kind+"/"+url.PathEscape(vhost)+"/"+name, body, nil); err != nil {
		t.Fatal(err)
	}
}

// found looks at the vhost until the findings are the wanted ones. Figures come late, and rates
// come even later.
func (f *fault) found(t *testing.T, node *testenv.Node, vhost, want string) *topology.Snapshot {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
		list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf("guest:guest"), []string{vhost})
		if err != nil {
			t.Fatal(err)
		}
		s := &list[0]
		var got []string
		o := topology.Options{Inboxes: []string{"dlo.letters"}, IdleAfter: 15 * time.Minute}
		if f.idle {
			o.Idle = map[string]time.Time{"orders": s.ReadAt.Add(-time.Hour)}
		}
		for _, finding := range topology.Inspect(s, o) {
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

// publishTo publishes a message to a queue.
func publishTo(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	if err := ch.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
}

// reject publishes a message to orders and rejects it.
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

// rejected publishes messages to orders and rejects them until a letter arrives in the inbox. The
// broker applies a policy some time after it accepts it.
func rejected(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		reject(t, ch)
		time.Sleep(100 * time.Millisecond)
		if _, ok, err := ch.Get("dlo.letters", true); err != nil {
			t.Fatal(err)
		} else if ok {
			return
		}
	}
	t.Error("no letter arrived")
}
