package rabbitmq_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// wrongSite is a vhost with many faults. TestRecordASite records it. The tests of internal/topology
// list what dlo finds in it.
var wrongSite = struct {
	queues    map[string]amqp.Table
	fanouts   map[string]string // exchanges, each with the queue to which it is bound
	binds     [][3]string       // exchange, queue and routing key; the exchange is of the type direct
	policies  map[string]policyOf
	operators map[string]policyOf
}{
	queues: map[string]amqp.Table{
		"good":    nil,
		"orders":  nil,
		"paid":    {"x-dead-letter-exchange": "gone"},
		"mail":    nil,
		"sms":     {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "sms.dead"},
		"returns": {"x-dead-letter-exchange": "park"},
		"parked":  {"x-max-length": int32(1)},
		"refunds": {"x-queue-type": "quorum"},
		"stock":   {"x-queue-type": "quorum"},
		"held":    {"x-queue-type": "quorum", "x-dead-letter-exchange": "hold"},
		"small":   {"x-max-length": int32(1), "x-overflow": "reject-publish"},
		"shop":    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "shop.wait"},
		"shop.wait": {
			"x-message-ttl": int32(30000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "shop",
		},
		"round.a": {
			"x-message-ttl": int32(60000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "round.b",
		},
		"round.b": {
			"x-message-ttl": int32(60000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "round.a",
		},
		"audit":    {"x-dead-letter-exchange": "dlx"},
		"invoices": nil,
		"legacy":   nil,
		"left":     nil,
		"log":      {"x-queue-type": "stream"},
		"dlo.wait.5000": {
			"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-overflow": "reject-publish",
			"x-message-ttl": int32(5000),
		},
		"dlo.letters":     {"x-queue-type": "quorum", "x-delivery-limit": int32(-1)},
		"letters.limited": {"x-queue-type": "quorum", "x-delivery-limit": int32(-1)},
		"letters.default": {"x-queue-type": "quorum"},
	},
	fanouts: map[string]string{
		"dlo.dlx": "dlo.letters", "dlo.wait.5000": "dlo.wait.5000", "park": "parked", "hold": "small",
		"events": "audit", "unbound": "",
	},
	binds: [][3]string{{"dlx", "dlo.letters", "audit"}},
	policies: map[string]policyOf{
		"dlo":    {"^(good|refunds|left|legacy|invoices)$", 10, toDLO()},
		"mail":   {"^mail$", 10, toDLO("dead-letter-exchange", "unbound")},
		"strong": {"^stock$", 10, toDLO("dead-letter-strategy", "at-least-once")},
		"hold": {
			"^held$",
			10,
			map[string]any{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"},
		},
		"limits":  {"^legacy$", 20, map[string]any{"max-length": 1000}},
		"bills":   {"^invoices$", 20, toDLO("max-length", 1000)},
		"letters": {`^letters\.limited$`, 10, map[string]any{"delivery-limit": 5}},
	},
	operators: map[string]policyOf{"caps": {"^invoices$", 0, map[string]any{"max-length": 10}}},
}

// TestRecordASite creates the vhost wrongSite on a broker, and writes what dlo reads there to the
// test data of internal/topology. Run it by hand, once for each broker:
//
//	DLO_TEST_BROKER=../../.cache/rabbitmq-4.3 go test . -run TestRecordASite -update
func TestRecordASite(t *testing.T) {
	if !testenv.Updates() {
		t.Skip("-update records a site of this broker")
	}
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	ch := openChannel(t, address, nil)
	for kind, policies := range map[string]map[string]policyOf{
		"policies": wrongSite.policies, "operator-policies": wrongSite.operators,
	} {
		for name, p := range policies {
			setPolicy(t, node, vhost, kind, name, map[string]any{
				"pattern": p.pattern, "apply-to": "queues", "priority": p.priority, "definition": p.keys,
			})
		}
	}
	time.Sleep(2 * time.Second) // the broker applies a policy some time after it was set
	declare(t, address, wrongSite.queues)
	for exchange, queue := range wrongSite.fanouts {
		if err := ch.ExchangeDeclare(exchange, "fanout", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if queue != "" {
			if err := ch.QueueBind(queue, "", exchange, false, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range wrongSite.binds {
		if err := ch.ExchangeDeclare(b[0], "direct", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind(b[1], b[2], b[0], false, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, queue := range []string{"parked", "small", "left"} {
		publishTo(t, ch, queue)
	}
	for range 3 {
		rejectOf(t, ch, "held")
	}
	var s topology.Snapshot
	for until := time.Now().Add(patience); ; time.Sleep(time.Second) {
		list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf("guest:guest"), []string{vhost})
		if err != nil {
			t.Fatal(err)
		}
		s = list[0]
		ready := func(q topology.Queue) bool {
			waits := slices.Contains([]string{"parked", "small", "left"}, q.Name)
			return q.Consumers.Known && q.Ready.Known && (q.Policy != nil || q.Name != "invoices") &&
				(!waits || q.Ready.N == 1) && (q.Name != "held" || q.Stuck.N == 3)
		}
		if len(s.Gaps) == 0 && !slices.ContainsFunc(
			s.Queues, func(q topology.Queue) bool { return !ready(q) && q.Type != topology.Stream },
		) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the figures do not come: %+v", s)
		}
	}
	s.Broker, s.VHost, s.ReadAt = "main", "/", time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	version := strings.Join(strings.SplitN(node.Version(), ".", 3)[:2], ".")
	lines := strings.ReplaceAll(string(text), `},{"`, "},\n{\"") + "\n"
	if err := os.WriteFile(
		filepath.Join("../topology/testdata", "recorded-"+version+".json"), []byte(lines), 0o644,
	); err != nil {
		t.Fatal(err)
	}
}
