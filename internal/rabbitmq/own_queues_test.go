package rabbitmq_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// awaitProblems connects to a broker. Again and again, it passes the problems of the broker's
// queues to the function "done". When this function returns true, awaitProblems returns the
// problems.
func awaitProblems(t *testing.T, b rabbitmq.Broker, done func([]deadletter.Problem) bool) []deadletter.Problem {
	t.Helper()
	link := runLink(t, b)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		status := link.Status()
		if done(status.Queues) || time.Now().After(deadline) {
			return status.Queues
		}
	}
}

func brokerAt(node *testenv.Node, address string) rabbitmq.Broker {
	return rabbitmq.Broker{
		URL: address, Management: node.ManagementURLOf("guest:guest"), Exchange: "dlo.dlx",
		Inboxes: []string{"dlo.letters", "team.dlq"}, InFlight: 1, ConfirmTimeout: time.Second,
	}
}

// ownInbox returns the arguments with which dlo declares its inbox.
func ownInbox(node *testenv.Node) amqp.Table {
	args := amqp.Table{"x-queue-type": "quorum"}
	if node.AtLeast("4.0") {
		args["x-delivery-limit"] = int64(-1)
	}
	return args
}

// declareOwn declares dlo's exchange and inbox as dlo does.
func declareOwn(t *testing.T, ch *amqp.Channel, node *testenv.Node) {
	t.Helper()
	declareInbox(t, ch, "dlo.letters", ownInbox(node))
	if err := ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("dlo.letters", "", "dlo.dlx", false, nil); err != nil {
		t.Fatal(err)
	}
}

// awaitPolicy waits until the management API shows a key in the policies of a queue, or no longer
// shows it.
func awaitPolicy(t *testing.T, node *testenv.Node, vhost, queue, key string, there bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var q struct {
			Effective map[string]any `json:"effective_policy_definition"`
		}
		err := node.API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/"+queue, nil, &q)
		if err == nil && q.Effective != nil && (q.Effective[key] != nil) == there {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the API does not show what the policies of %s make of %s: %v %v", queue, key, q.Effective, err)
		}
	}
}

// TestAPolicyThatDeletesLettersIsFound sets a policy for all queues, as real sites do. The policy
// contains a length limit, an expiry and a time-to-live. dlo must name each of its queues with the
// setting that deletes its messages. The command that dlo shows must cure all of its queues and
// leave the site's policy unchanged.
func TestAPolicyThatDeletesLettersIsFound(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	for _, kind := range []string{"policies", "operator-policies"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			vhost, address := node.VHost(t)
			ch := openChannel(t, address, nil)
			declareOwn(t, ch, node)
			declareInbox(t, ch, "team.dlq", amqp.Table{"x-max-length": int32(1000)})
			declareInbox(t, ch, "dlo.annotations", nil)
			declareInbox(t, ch, "dlo.wait.1000", amqp.Table{"x-message-ttl": int32(1000)})
			limits := map[string]any{"max-length": 50, "message-ttl": 3600000, "expires": 86400000}
			if err := node.API(http.MethodPut, "/api/"+kind+"/"+url.PathEscape(vhost)+"/of-the-site", map[string]any{
				"pattern": ".*", "apply-to": "queues", "definition": limits,
			}, nil); err != nil {
				t.Fatal(err)
			}
			for _, queue := range []string{"dlo.letters", "team.dlq", "dlo.annotations", "dlo.wait.1000"} {
				awaitPolicy(t, node, vhost, queue, "expires", true)
			}
			of := func(list []deadletter.Problem, queue string) *deadletter.Problem {
				if i := slices.IndexFunc(list, func(p deadletter.Problem) bool { return p.Queue == queue }); i >= 0 {
					return &list[i]
				}
				return &deadletter.Problem{}
			}
			problems := awaitProblems(
				t, brokerAt(node, address), func(list []deadletter.Problem) bool { return len(list) >= 4 },
			)
			by := map[string]string{
				"policies": "policy of-the-site", "operator-policies": "operator policy of-the-site",
			}[kind]
			own, other := of(problems, "dlo.letters"), of(problems, "team.dlq")
			for _, p := range []*deadletter.Problem{own, other} {
				if p.Kind != deadletter.ProblemInboxLoses || p.Severity != deadletter.SeverityPage ||
					!strings.Contains(
						p.Text, "max-length 50 ("+by+"), message-ttl 3600000 ms ("+by+"), expires 86400000 ms ("+by+")",
					) {
					t.Errorf("%+v", p)
				}
			}
			if p := of(
				problems, "dlo.annotations",
			); p.Kind != deadletter.ProblemOwnQueue || !strings.Contains(p.Text, "max-length 50") {
				t.Errorf("annotations: %+v", p)
			}
			if p := of(
				problems, "dlo.wait.1000",
			); p.Kind != deadletter.ProblemOwnQueue || !strings.Contains(p.Text, "expires") ||
				strings.Contains(p.Text, "message-ttl") {
				t.Errorf("a wait queue, whose own time to live is shorter: %+v", p)
			}
			if !strings.Contains(other.Cure, "declare the queue again without x-max-length.") {
				t.Errorf("the argument of an inbox: %s", other.Cure)
			}
			if kind == "operator-policies" {
				if !strings.Contains(own.Cure, "The operator policy of-the-site can only be removed by its owner.") ||
					strings.Contains(own.Cure, "set_policy") {
					t.Error(own.Cure)
				}
				// The user has run the command that dlo showed. The command sets a policy for dlo's
				// queues. This policy takes precedence over the policy for all queues. dlo must not
				// show this command again.
				harmless := map[string]any{
					"pattern":    `^dlo\.`,
					"apply-to":   "queues",
					"priority":   1000,
					"definition": map[string]any{"overflow": "drop-head"},
				}
				if err := node.API(
					http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/dlo-own", harmless, nil,
				); err != nil {
					t.Fatal(err)
				}
				awaitPolicy(t, node, vhost, "dlo.letters", "overflow", true)
				own = of(
					awaitProblems(
						t, brokerAt(node, address), func(list []deadletter.Problem) bool { return len(list) >= 4 },
					),
					"dlo.letters",
				)
				if !strings.Contains(
					own.Cure,
					"The policy dlo-own should have no key but overflow. The operator policy of-the-site can only",
				) || strings.Contains(own.Cure, "set_policy") {
					t.Error(own.Cure)
				}
				return
			}
			for _, p := range []*deadletter.Problem{own, other} {
				command := regexp.MustCompile(
					`rabbitmqctl set_policy -p (\S+) --priority 1000 --apply-to queues (\S+) '(.*)' '(.*)'`,
				).FindStringSubmatch(p.Cure)
				if command == nil {
					t.Fatalf("no command in %s", p.Cure)
				}
				if out, err := node.Ctl(
					"set_policy", "-p", command[1], "--priority", "1000", "--apply-to", "queues", command[2],
					command[3], command[4],
				); err != nil {
					t.Fatal(err, out)
				}
			}
			for _, queue := range []string{"dlo.letters", "team.dlq", "dlo.annotations", "dlo.wait.1000"} {
				awaitPolicy(t, node, vhost, queue, "expires", false)
			}
			problems = awaitProblems(
				t, brokerAt(node, address), func(list []deadletter.Problem) bool { return len(list) > 0 },
			)
			if len(problems) != 1 || problems[0].Queue != "team.dlq" ||
				!strings.Contains(problems[0].Text, "max-length 1000 (an argument of the queue)") {
				t.Errorf("after the cure: %+v", problems)
			}
		})
	}
}

// TestADeliveryLimitIsFoundWhileAnInboxIsRead sets a delivery limit for an inbox that dlo already
// drains. dlo must notice the limit.
func TestADeliveryLimitIsFoundWhileAnInboxIsRead(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	ch := openChannel(t, address, nil)
	declareInbox(t, ch, "team.dlq", amqp.Table{"x-queue-type": "quorum"})
	declareInbox(t, ch, "old.dlq", amqp.Table{"x-queue-type": "quorum"})
	limit := map[string]any{"pattern": "dlq$", "apply-to": "queues", "definition": map[string]any{"delivery-limit": 3}}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/limit", limit, nil); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"team.dlq", "old.dlq"} {
		awaitPolicy(t, node, vhost, queue, "delivery-limit", true)
	}
	b := brokerAt(node, address)
	b.Exchange, b.Inboxes, b.AcceptLimited = "", []string{"team.dlq", "old.dlq"}, []string{"old.dlq"}
	problems := awaitProblems(t, b, func(list []deadletter.Problem) bool { return len(list) > 0 })
	if len(problems) != 1 || problems[0].Kind != deadletter.ProblemInboxLoses || problems[0].Inbox != "team.dlq" ||
		!strings.Contains(problems[0].Text, "delivery limit") || !strings.Contains(problems[0].Cure, `'^team\.dlq$'`) {
		t.Errorf("%+v", problems)
	}
}

// TestABindingThatIsGoneIsMadeAgain deletes the binding that leads dead letters to the inbox. dlo
// must restore it within a minute and report it.
func TestABindingThatIsGoneIsMadeAgain(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, address := node.VHost(t)
	ch := openChannel(t, address, nil)
	declareInbox(t, ch, "team.dlq", nil)
	declareInbox(t, ch, "dlo.letters", ownInbox(node))
	problems := awaitProblems(t, brokerAt(node, address), func(list []deadletter.Problem) bool { return len(list) > 0 })
	if len(problems) != 1 || problems[0].Kind != deadletter.ProblemInboxUnbound ||
		problems[0].Cure != "Both were declared again. Find out who deleted them." {
		t.Errorf("%+v", problems)
	}
	publishLetters(t, ch, "dlo.letters", "first")
	if err := ch.PublishWithContext(
		t.Context(), "dlo.dlx", "any", true, false, amqp.Publishing{Body: []byte("second")},
	); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, ch, "dlo.letters"); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("the inbox has %q", got)
	}
}

// TestAPolicyIsFoundWhileAnInboxIsRead sets a limit in bytes and a delivery limit while dlo is
// connected. It waits until the check that dlo makes every minute finds them.
func TestAPolicyIsFoundWhileAnInboxIsRead(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	ch := openChannel(t, address, nil)
	declareInbox(t, ch, "team.dlq", amqp.Table{"x-queue-type": "quorum"})
	b := brokerAt(node, address)
	b.Exchange, b.Inboxes, b.AcceptLimited = "", []string{"team.dlq"}, []string{"team.dlq"}
	link := runLink(t, b)
	await := func(what string, enough func(deadletter.BrokerStatus) bool) deadletter.BrokerStatus {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			status := link.Status()
			if enough(status) {
				return status
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, status)
			}
		}
	}
	await(
		"the rights are looked at, so the queues were",
		func(s deadletter.BrokerStatus) bool { return s.Connected && len(s.Rights) > 0 },
	)
	if problems := link.Status().Queues; len(problems) > 0 {
		t.Fatalf("before there is a policy: %+v", problems)
	}
	limits := map[string]any{
		"pattern":    "dlq$",
		"apply-to":   "queues",
		"definition": map[string]any{"max-length-bytes": 1000},
	}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/limits", limits, nil); err != nil {
		t.Fatal(err)
	}
	status := await("the policy is found", func(s deadletter.BrokerStatus) bool { return len(s.Queues) > 0 })
	if p := status.Queues[0]; p.Kind != deadletter.ProblemInboxLoses || p.Queue != "team.dlq" ||
		!strings.Contains(p.Text, "max-length-bytes 1000 bytes (policy limits)") {
		t.Errorf("%+v", p)
	}
}
