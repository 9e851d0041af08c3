package system

import (
	"fmt"
	"net/http"
	neturl "net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// startClient runs a client of another language until the test ends, and returns what it says.
func startClient(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("the client says:\n%s", said.String())
		}
	})
	return said
}

// amqp10Client starts dlo, and a script of testdata that speaks AMQP 1.0 and uses the queue "work".
func amqp10Client(t *testing.T, script string, queue amqp.Table) (*child, *output) {
	t.Helper()
	node := testenv.Broker(t)
	if !node.AtLeast("4.0") {
		t.Skip("3.x refuses AMQP 1.0 without a plugin")
	}
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import proton").Run(); err != nil {
		testenv.Unavailable(
			t, fmt.Errorf("%w: proton (%w); to get it: apt-get install python3-qpid-proton", testenv.ErrMissing, err),
		)
	}
	vhost, url := node.VHost(t)
	newAudit(t, url, "work", queue)
	p := newChild(t, url, "default: {retry: {delays: []}}\n")
	p.Start("")
	p.Draining()
	address, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = ""
	// without -B, Python would leave compiled files in testdata
	return p, startClient(t, exec.Command(python, "-B", "testdata/"+script, address.String(), vhost, "work"))
}

// TestAMQP10Values lets a client of AMQP 1.0 reject values, whose sections begin with their length.
// An edit must write the length again. If the old length stayed in place, the broker would end the
// connection of the consumer each time.
func TestAMQP10Values(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p, said := amqp10Client(t, "amqp10.py", nil)
	eventually(
		t, "the values are letters", func() bool { return p.letters("dead") == 3 || strings.Contains(said.String(), "rror") },
	)
	ids := p.ids(`SELECT id, random FROM letters ORDER BY id`)
	for _, id := range ids {
		patch := []map[string]any{{"op": "replace", "path": "/id", "value": 1234567}}
		code, body := p.post("/api/v1/letters/"+string(id)+"/revisions", map[string]any{
			"patch": patch, "reason": "another number",
		})
		if code >= http.StatusMultipleChoices {
			t.Errorf("%d %s", code, body)
		}
	}
	if code, body := p.post("/api/v1/operations", requeueAtOnce(ids)); code >= 300 {
		t.Fatal(code, body)
	}
	eventually(
		t, "the values arrive",
		func() bool {
			return strings.Count(said.String(), "accepted") == 3 || strings.Contains(said.String(), "error")
		},
	)
	if got := said.String(); got != "accepted 14\naccepted 424\naccepted 14\n" {
		t.Error(got)
	}
}
