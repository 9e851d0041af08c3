package system

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// rightOf is one right of the smallest user in docs/permissions.md: the operation (configure, write
// or read) and a regular expression for names.
type rightOf struct{ operation, expression string }

// smallestRights returns the rights of the smallest user, in the order of the table in
// docs/permissions.md.
func smallestRights(t *testing.T) []rightOf {
	t.Helper()
	text, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| for | configure | write | read |\n")
	code := regexp.MustCompile("`([^`]+)`")
	var rights []rightOf
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			break
		}
		for i, operation := range []string{"configure", "write", "read"} {
			if m := code.FindStringSubmatch(cells[i+2]); m != nil {
				rights = append(rights, rightOf{operation, m[1]})
			}
		}
	}
	if len(rights) != 8 {
		t.Fatalf("%d rights in the table, want 8: %v", len(rights), rights)
	}
	return rights
}

// grant gives a user the rights in the list, except one. The parameter "omitted" is the index of
// that right. If it is -1, grant gives all rights.
func grant(t *testing.T, node *testenv.Node, vhost, user string, rights []rightOf, omitted int) {
	t.Helper()
	of := map[string][]string{}
	for i, r := range rights {
		if i != omitted {
			of[r.operation] = append(of[r.operation], r.expression)
		}
	}
	expression := func(operation string) string { return "^(" + strings.Join(of[operation], "|") + ")$" }
	node.Grant(t, vhost, user, expression("configure"), expression("write"), expression("read"))
}

// printedForm returns the expression of a right in the form in which dlo prints it.
func printedForm(expression string) string {
	return strings.NewReplacer(`\..*`, ".*", `\.`, ".").Replace(expression)
}

// checkConfig returns what `dlo config check --broker` prints, and fails the test unless the exit
// code is the expected one.
func (p *child) checkConfig(management string, code int) string {
	p.t.Helper()
	var out, errs strings.Builder
	getenv := func(name string) string { return map[string]string{"DLO_MANAGEMENT_URL": management}[name] }
	program := cli.Program{
		Ctx: p.t.Context(), Getenv: getenv, Stdout: &out, Stderr: &errs, Check: server.Check, Ask: server.Ask,
	}
	if got := cli.ExitCode(cli.Run(program, &commands{}, []string{
		"config", "check", "--broker", p.config,
	}), &errs); got != code {
		p.t.Errorf("exit code %d, want %d\n%s%s", got, code, out.String(), errs.String())
	}
	return out.String()
}

// TestTheSmallestUser runs dlo as the RabbitMQ user that docs/permissions.md calls the smallest.
// Somebody else has declared the queues of dlo. dlo must receive letters and annotations, and
// letters must wait in the broker and come back. If a right is missing, `dlo config check` must
// name it.
func TestTheSmallestUser(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, owner := testenv.VHost(t)
	a := newAudit(t, owner, "work", nil)
	ch := a.channel()
	for _, queue := range []string{"dlo.letters", "dlo.annotations"} {
		args := amqp.Table{"x-queue-type": "quorum"}
		if node.AtLeast("4.0") {
			args["x-delivery-limit"] = int64(-1)
		}
		if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.QueueBind("dlo.letters", "", "dlo.dlx", false, nil); err != nil {
		t.Fatal(err)
	}
	user, address := node.User(t, vhost, "management")
	p := newChild(
		t, owner,
		"brokers: [{amqp: "+amqpOf(t, address)+
			"}]\ndefault: {retry: {delays: [2s], waiter: wait-queue}}\nrequeue: {watch: 1s}\n",
	)
	management := node.ManagementURLOf(user + ":secret")
	p.env = []string{"DLO_MANAGEMENT_URL=" + management}
	rights := smallestRights(t)
	grant(t, node, vhost, user, rights, -1)
	out := p.checkConfig(management, 0)
	for _, r := range rights {
		if name := printedForm(r.expression); name != "dlo.wait.*" &&
			!regexp.MustCompile(`proved +`+r.operation+` +`+regexp.QuoteMeta(name)).MatchString(out) {
			t.Errorf("%s %s is not proved:\n%s", r.operation, name, out)
		}
	}
	if strings.Contains(out, "assumed") || strings.Contains(out, "refused") {
		t.Errorf("not all is proved:\n%s", out)
	}
	a.refuse = func(d *amqp.Delivery) bool { return d.Headers[deadletter.HeaderAttempt] == nil }
	a.work()
	p.Start("")
	p.Draining()
	p.Waiting()
	const letters = 5
	a.publish(letters, func(i int) (string, string) { return fmt.Sprint("letter ", i), "" })
	eventually(t, "all letters waited in the broker, and came back", func() bool {
		return p.letters("settled") == letters && p.count("attempts", `waits_in = 'dlo.wait.2000'`) == letters
	})
	if _, body := p.get("/readyz"); strings.Contains(body, `"kind":"rights"`) ||
		strings.Contains(body, `"kind":"waiter"`) {
		t.Errorf("a right is missing: %s", body)
	}
	p.Stop()
	for i, r := range rights {
		name := printedForm(r.expression)
		if name == "dlo.wait.*" {
			continue // this right is needed only once a letter waits in the broker
		}
		grant(t, node, vhost, user, rights, i)
		if out := p.checkConfig(management, 1); !regexp.MustCompile(
			`refused +`+r.operation+` +`+regexp.QuoteMeta(name),
		).MatchString(out) || !strings.Contains(out, "set_permissions") {
			t.Errorf("without %s %s:\n%s", r.operation, name, out)
		}
	}
}

// TestTheSmallestUserOfAPlan applies a plan as the RabbitMQ user that docs/permissions.md calls the
// smallest. If a right to the temporary queue is missing, dlo must remove the policy again.
func TestTheSmallestUserOfAPlan(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	text, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| a plan \\| `(.+)` \\| `(.+)` \\| `(.+)` \\|$").FindStringSubmatch(string(text))
	if row == nil {
		t.Fatal("the document has no rights for plans")
	}
	node := testenv.Broker(t)
	vhost, owner := node.VHost(t)
	a := adoptable(t, node, vhost, owner)
	a.api(http.MethodPut, "exchanges", "dlo.dlx", map[string]any{"type": "fanout", "durable": true})
	args := map[string]any{"x-queue-type": "quorum"}
	if node.AtLeast("4.0") {
		args["x-delivery-limit"] = -1
	}
	a.api(http.MethodPut, "queues", "dlo.letters", map[string]any{"durable": true, "arguments": args})
	a.api(http.MethodPost, "bindings", "e/dlo.dlx/q/dlo.letters", map[string]any{})
	before := a.state()
	user, address := node.User(t, vhost, "management,policymaker")
	rights := []rightOf{
		{"configure", `dlo\.epoch\..*`},
		{"read", `dlo\.epoch\..*`},
		{"read", `dlo\.letters`},
		{"write", row[2]},
		{"configure", row[1]},
		{"read", row[3]},
	}
	grant(t, node, vhost, user, rights, -1)
	p := newChild(t, owner, fmt.Sprintf("brokers: [{amqp: %s, annotations: \"\"}]\n", amqpOf(t, address)))
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf(user+":secret")}
	p.Start("")
	p.Draining()
	for missing := range rights[3:] {
		missing += 3
		if rights[missing].operation == "write" {
			continue // without this right, dlo reports that it cannot send letters
		}
		grant(t, node, vhost, user, rights, missing)
		if status, body := p.post(
			"/api/v1/topology/apply", p.plan("orders"),
		); status == http.StatusOK || !strings.Contains(body, "dlo.probe.") ||
			!strings.Contains(body, "No policy of the plan stays set") {
			t.Errorf("without %+v: %d %s", rights[missing], status, body)
		}
		grant(t, node, vhost, user, rights, -1)
		eventually(t, "nothing is left", func() bool { return a.state() == before })
	}
	if status, body := p.post(
		"/api/v1/topology/apply", p.plan("orders"),
	); status != http.StatusOK || !strings.Contains(body, `"proved":true`) {
		t.Errorf("%d %s", status, body)
	}
}
