package rabbitmq_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// onBothKinds runs a test on a shared broker, and on a broker that reports no statistics. The
// parameter "root" is the folder of their RabbitMQ, as in testenv.BrokerIn.
func onBothKinds(t *testing.T, root string, test func(t *testing.T, node *testenv.Node)) {
	t.Run("with statistics", func(t *testing.T) {
		t.Parallel()
		test(t, testenv.BrokerIn(t, root))
	})
	t.Run("without statistics", func(t *testing.T) {
		t.Parallel()
		test(t, testenv.PrivateBrokerWith(t, testenv.Options{
			Root: root, Conf: []string{"management_agent.disable_metrics_collector = true"},
		}))
	})
}

func limitsOf(pattern string, keys map[string]any) map[string]any {
	return map[string]any{"pattern": pattern, "apply-to": "queues", "definition": keys}
}

// TestALimitIsSeenAtOnce sets policies a moment before dlo looks. Brokers without statistics do not
// show what applies to a queue, and others show it some seconds later. dlo must nevertheless refuse
// a queue with a delivery limit, name a length limit of its own inbox, and name a setting that it
// does not know.
func TestALimitIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	onBothKinds(t, "", func(t *testing.T, node *testenv.Node) {
		vhost, address := node.VHost(t)
		ch := openChannel(t, address, nil)
		declareOwn(t, ch, node)
		args := ownInbox(node)
		args["x-tomorrow"] = "all" // RabbitMQ ignores what it does not know
		declareInbox(t, ch, "team.dlq", args)
		link, err := rabbitmq.Connect(brokerAt(node, address), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := link.Inspect(t.Context(), "team.dlq"); err != nil {
			t.Errorf("without a limit: %v", err)
		}
		setPolicy(t, node, vhost, "policies", "limit", limitsOf("^team", map[string]any{"delivery-limit": 3}))
		if err := link.Inspect(t.Context(), "team.dlq"); !errors.Is(err, deadletter.ErrConflict) ||
			!strings.Contains(err.Error(), "delivery limit") {
			t.Errorf("with a limit: %v", err)
		}
		setPolicy(t, node, vhost, "operator-policies", "length", limitsOf("^dlo", map[string]any{"max-length": 50}))
		problems := link.Ask(t.Context(), "").Queues
		if !slices.ContainsFunc(problems, func(p deadletter.Problem) bool {
			return p.Kind == deadletter.ProblemInboxLoses && p.Severity == deadletter.SeverityPage &&
				strings.Contains(p.Text, "max-length 50 (operator policy length)")
		}) {
			t.Errorf("problems %+v", problems)
		}
		if !slices.ContainsFunc(problems, func(p deadletter.Problem) bool {
			return p.Kind == deadletter.ProblemUnknownSetting && p.Inbox == "team.dlq" &&
				strings.Contains(p.Text, "tomorrow")
		}) {
			t.Errorf("an unknown setting: problems %+v", problems)
		}
	})
}

// TestALimitEndsTheSession gives an inbox a delivery limit while dlo drains it. At its next look,
// dlo must stop, and it must go on when the limit is gone.
func TestALimitEndsTheSession(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	ch := openChannel(t, address, nil)
	declareInbox(t, ch, "team.dlq", ownInbox(node))
	b := brokerAt(node, address)
	b.Exchange, b.Inboxes = "", []string{"team.dlq"}
	link := runLink(t, b)
	inbox := link.Inbox("team.dlq", rabbitmq.Limits{Letters: 10, Bytes: 1 << 20, Linger: time.Millisecond})
	open := func() {
		t.Helper()
		if _, err := inbox.Open(t.Context(), deadletter.InboxSession{}); err != nil {
			t.Fatal(err)
		}
	}
	open()
	defer inbox.Close()
	setPolicy(t, node, vhost, "policies", "limit", limitsOf("^team", map[string]any{"delivery-limit": 3}))
	if _, err := inbox.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "delivery limit") {
		t.Fatalf("the session ends with %v", err)
	}
	opened := make(chan struct{})
	go func() {
		open()
		close(opened)
	}()
	for deadline := time.Now().Add(patience); !strings.Contains(
		link.Status().Inboxes[0].Reason, "delivery limit",
	); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the inbox: %+v", link.Status().Inboxes)
		}
	}
	if err := node.API("DELETE", "/api/policies/"+vhost+"/limit", nil, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-opened:
	case <-time.After(patience):
		t.Fatal("the inbox is not drained again")
	}
}

// TestAPatternThatDloCannotEvaluate sets an operator policy on a broker that may not say what
// applies to a queue. Unknown does not mean that there is no limit, so dlo must report a problem.
func TestAPatternThatDloCannotEvaluate(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	onBothKinds(t, "", func(t *testing.T, node *testenv.Node) {
		vhost, address := node.VHost(t)
		declareOwn(t, openChannel(t, address, nil), node)
		setPolicy(t, node, vhost, "operator-policies", "limit", limitsOf("^dlo(?R)?", map[string]any{"max-length": 50}))
		link, err := rabbitmq.Connect(brokerAt(node, address), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		queues := link.Ask(t.Context(), "").Queues
		if !slices.ContainsFunc(queues, func(p deadletter.Problem) bool {
			return p.Kind == deadletter.ProblemLimitsUnknown || p.Kind == deadletter.ProblemInboxLoses
		}) {
			t.Errorf("the problems: %+v", queues)
		}
	})
}

// TestAPolicyThatTheBrokerIgnores sets policies with a key that the type of the queue does not
// support. RabbitMQ then applies no key of them, so each reject is lost. dlo must say so.
func TestAPolicyThatTheBrokerIgnores(t *testing.T) {
	t.Parallel()
	onBothKinds(t, "", func(t *testing.T, node *testenv.Node) {
		vhost, address := node.VHost(t)
		ch := openChannel(t, address, nil)
		key, value := "queue-leader-locator", any("balanced") // 3.10: not for classic queues
		if node.AtLeast("4.0") {
			key, value = "max-in-memory-length", 5 // 4.x: not for classic queues
		}
		declareOwn(t, ch, node)
		for _, queue := range []string{"orders", "invoices"} {
			declareInbox(t, ch, queue, amqp.Table{"x-queue-type": "classic"})
		}
		setPolicy(t, node, vhost, "policies", "dead", limitsOf("^(orders|invoices)$", map[string]any{
			"dead-letter-exchange": "dlo.dlx", key: value,
		}))
		link, err := rabbitmq.Connect(brokerAt(node, address), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s, err := link.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, f := range topology.Inspect(&s, topology.Options{Inboxes: []string{"dlo.letters"}}) {
			if f.Severity != deadletter.SeverityDigest {
				kinds = append(kinds, string(f.Kind)+" "+string(f.Severity)+" "+f.Queue)
			}
			if f.Kind == topology.PolicyIgnored && (!strings.Contains(f.Why, "Policy dead has the key "+key) ||
				!slices.Contains(f.Queues(), "orders") || len(f.More) != 1) {
				t.Errorf("%+v", f)
			}
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, ", "); got != "policy_ignored page invoices" && got != "policy_ignored page orders" {
			t.Errorf("findings %s", got)
		}
	})
}
