package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// leave runs `dlo leave` with the configuration of a stopped dlo. It returns the output and the
// error output, and fails the test unless the exit code is the expected one.
func (p *child) leave(code int, args ...string) (string, string) {
	p.t.Helper()
	var out, errs strings.Builder
	program := cli.Program{Ctx: p.t.Context(), Getenv: noEnvironment, Stdout: &out, Stderr: &errs, Version: "test"}
	err := cli.Run(program, &commands{}, append([]string{"leave", "--config", p.config}, args...), server.Options{
		Getenv: noEnvironment, Out: &out,
	})
	if got := cli.ExitCode(err, &errs); got != code {
		p.t.Fatalf("leave %v: exit code %d, want %d\n%s%s", args, got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// everything returns the names of all queues, exchanges and policies in the vhost, and the
// bindings.
func (a *adopting) everything() string {
	a.t.Helper()
	var all struct {
		Queues, Exchanges, Policies, Bindings []struct{ Name, Source, Destination string }
	}
	if err := a.node.API(http.MethodGet, "/api/definitions/"+url.PathEscape(a.vhost), nil, &all); err != nil {
		a.t.Fatal(err)
	}
	return fmt.Sprint(all.Queues, all.Exchanges, all.Policies, all.Bindings)
}

// TestDloLeaves applies a policy, lets a message die, stops dlo, and runs `dlo leave`. dlo must
// refuse to leave while the letter waits for people. It must also refuse while the dead letters of
// another queue would be lost. After it has left, the vhost must be as it was before dlo.
func TestDloLeaves(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	before := a.everything()
	p := newChild(
		t, address,
		fmt.Sprintf(
			"rules: [{name: jobs, match: {queue: jobs}, retry: {delays: [1h], waiter: wait-queue}}]\ndefault: {retry: {delays: []}}\nbrokers: [{url: %q, management: %q}]\n",
			address, node.ManagementURLOf("guest:guest"),
		),
	)
	p.Start("")
	p.Draining()
	if _, errs := p.leave(4, "--yes"); !strings.Contains(errs, "another dlo") && errs == "" {
		t.Errorf("while dlo runs: %s", errs)
	}
	if status, body := p.post("/api/v1/topology/apply", p.plan("orders", "jobs")); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	a.reject("orders")
	eventually(t, "the letter is dead", func() bool { return p.letters("dead") == 1 })
	a.reject("jobs")
	eventually(
		t, "a letter waits in the broker",
		func() bool { return p.count("letters", "waits_in = 'dlo.wait.3600000'") == 1 },
	)
	p.Stop()
	if _, errs := p.leave(1, "--yes"); !strings.Contains(errs, "2 letters in the store still wait") {
		t.Errorf("%s", errs)
	}
	running := a.everything()
	out, _ := p.leave(0, "--keep-letters")
	for _, want := range []string{
		"policy dlo-", "exchange dlo.dlx in vhost " + vhost, "queue dlo.letters", "queue dlo.annotations",
		"queue dlo.epoch.", "exchange dlo.wait.3600000", "queue dlo.wait.3600000",
	} {
		if !strings.Contains(out, "would be removed: "+want) {
			t.Errorf("without --yes, no %s:\n%s", want, out)
		}
	}
	if a.everything() != running {
		t.Error("without --yes, something changed")
	}
	if _, err := a.ch.QueueDeclare("own", true, false, false, false, amqp.Table{
		"x-dead-letter-exchange": "dlo.dlx",
	}); err != nil {
		t.Fatal(err)
	}
	if _, errs := p.leave(1, "--keep-letters", "--yes"); !strings.Contains(
		errs, "the messages would be lost: queue own, whose dead letters go to exchange dlo.dlx",
	) {
		t.Errorf("%s", errs)
	}
	if _, err := a.ch.QueueDelete("own", false, false, false); err != nil {
		t.Fatal(err)
	}
	// A message from another queue waits in the inbox.
	if err := a.ch.PublishWithContext(
		t.Context(), "", "dlo.letters", false, false, amqp.Publishing{Body: []byte("x")},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message waits", func() bool {
		q, err := a.ch.QueueDeclarePassive("dlo.letters", true, false, false, false, nil)
		return err == nil && q.Messages == 1
	})
	if out, errs := p.leave(3, "--keep-letters", "--yes"); !strings.Contains(
		out, "not removed: queue dlo.letters in vhost "+vhost+" of broker",
	) || !strings.Contains(out, "not removed: queue dlo.wait.3600000 in") ||
		!strings.Contains(errs, "2 things could not be removed") {
		t.Errorf("%s%s", out, errs)
	}
	for _, queue := range []string{"dlo.letters", "dlo.wait.3600000"} {
		if _, err := a.ch.QueuePurge(queue, false); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "letters.ndjson")
	if out, _ := p.leave(0, "--export", file); strings.Contains(out, "written") {
		t.Errorf("without --yes: %s", out)
	}
	if out, _ := p.leave(0, "--export", file, "--yes"); !strings.Contains(out, "written: all letters, to "+file) {
		t.Errorf("%s", out)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") != 4 ||
		!strings.Contains(string(text), `"queue":"orders"`) || !strings.Contains(string(text), `"body":"eA=="`) {
		t.Errorf("the file has %s, %v", text, err)
	}
	if _, errs := p.leave(2, "--export", file, "--yes"); !strings.Contains(errs, "file exists") {
		t.Errorf("over a file: %s", errs)
	}
	if after := a.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	p.leave(0, "--keep-letters", "--yes")

	// The first `dlo leave` deleted the record of the store's progress from the broker, so dlo
	// reports that the broker is older than its store. The loop kills `dlo leave` at three points
	// and runs it again each time.
	p.copied = true
	p.Start("")
	p.Draining()
	p.Stop()
	for _, point := range []string{"leave: exchange removed=1", "leave: queue removed=1", "leave: queue removed=2"} {
		args, err := json.Marshal([]string{"leave", "--config", p.config, "--keep-letters", "--yes"})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), runVariable+"="+string(args), crashVariable+"="+point)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%s: %v %s", point, err, out)
		}
	}
	p.leave(0, "--keep-letters", "--yes")
	if after := a.everything(); after != before {
		t.Errorf("before:\n%s\nafter the kills:\n%s", before, after)
	}
}

// TestDloNamesWhatItLeaves uses a configuration in which the exchange and some queues have names
// that do not begin with dlo. `dlo leave` must name them and must not delete them. It must delete
// nothing that is still in use.
func TestDloNamesWhatItLeaves(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	p := newChild(
		t, address,
		fmt.Sprintf(
			"brokers: [{url: %q, management: %q, exchange: team.dlx, annotations: team.reports}]\n", address,
			node.ManagementURLOf("guest:guest"),
		),
	)
	p.Start("")
	p.Draining()
	p.Stop()
	running := a.everything()
	a.api(http.MethodPut, "exchanges", "shop", map[string]any{"type": "topic", "durable": true})
	a.api(http.MethodPost, "bindings", "e/shop/q/dlo.letters", map[string]any{"routing_key": "#"})
	if _, errs := p.leave(1, "--yes"); !strings.Contains(
		errs, "would be lost: exchange shop, which is bound to queue dlo.letters",
	) {
		t.Errorf("%s", errs)
	}
	a.api(http.MethodDelete, "exchanges", "shop", nil)
	if after := a.everything(); after != running {
		t.Errorf("before:\n%s\nafter a refusal:\n%s", running, after)
	}
	out, _ := p.leave(0)
	for _, want := range []string{
		"would stay: exchange team.dlx in", "would stay: queue team.reports in",
		"would be removed: queue dlo.letters in",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
	if out, _ := p.leave(3, "--yes"); strings.Count(out, "not removed: ") != 2 ||
		!strings.Contains(out, "removed: queue dlo.letters in") {
		t.Errorf("%s", out)
	}
	if after := a.everything(); strings.Contains(after, "dlo.") {
		t.Errorf("after leaving:\n%s", after)
	}
}

// TestDloIsRemovedByHand runs the commands with which docs/operations.md removes dlo where dlo does
// not have the management API. After them, the vhost must be as it was before dlo.
func TestDloIsRemovedByHand(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	before := a.everything()
	p := newChild(t, address, "default: {retry: {delays: []}}\n")
	p.Start("")
	p.Draining()
	for _, command := range commandsOf(t, "docs/quickstart.md", "") {
		rabbitmqctl(t, node, vhost, command)
	}
	a.reject("orders")
	eventually(t, "the letter is dead", func() bool { return p.letters("dead") == 1 })
	var queues, exchanges string
	for _, command := range commandsOf(t, "docs/operations.md", "Taking dlo out again") {
		args := words(command)
		switch {
		case strings.HasPrefix(command, "dlo letters export"):
			file := filepath.Join(t.TempDir(), "letters.ndjson")
			p.dlo(t.Context(), 0, "", words(strings.Replace(command, "letters.ndjson", file, 1))[1:]...)
			p.Stop()
		case args[0] == "dlo":
			p.dlo(t.Context(), 0, "", args[1:]...)
		case args[1] == "delete_queue":
			for queue := range strings.FieldsSeq(queues) {
				rabbitmqctl(t, node, vhost, strings.Replace(command, "dlo.letters", queue, 1))
			}
		case args[0] == "curl":
			_, path, _ := strings.Cut(args[len(args)-1], ":15672")
			for exchange := range strings.FieldsSeq(exchanges) {
				to := strings.NewReplacer("%2F", url.PathEscape(vhost), "dlo.dlx", exchange).Replace(path)
				if err := node.API(args[4], to, nil, nil); err != nil {
					t.Error(err)
				}
			}
		default:
			out := rabbitmqctl(t, node, vhost, command)
			if strings.HasSuffix(command, "list_queues name policy") && strings.Contains(out, "\tdlo\n") {
				t.Errorf("queues are still protected:\n%s", out)
			}
			if strings.Contains(command, "list_queues name --no-table-headers") {
				queues = out
			}
			if strings.Contains(command, "list_exchanges") {
				exchanges = out
			}
		}
	}
	if after := a.everything(); after != before || len(strings.Fields(queues)) < 3 {
		t.Errorf("before:\n%s\nafter, without the queues %q:\n%s", before, queues, after)
	}
}
