package system

import (
	"fmt"
	neturl "net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAMQP10Outcomes lets a client of AMQP 1.0 settle messages in the ways that docs/consumers.md
// describes. The annotations of the outcome "modified" must be the error of the letter. The broker
// does not pass on the condition of the outcome "rejected".
func TestAMQP10Outcomes(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
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
	newAudit(t, url, "work", amqp.Table{"x-queue-type": "quorum"})
	p := newChild(t, url, "default: {retry: {delays: []}}\n")
	p.Start("")
	p.Draining()
	address, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = ""
	worker := exec.Command(python, "testdata/amqp10_outcomes.py", address.String(), vhost, "work")
	var said output
	worker.Stdout, worker.Stderr = &said, &said
	worker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		worker.Process.Kill()
		worker.Wait()
		if t.Failed() {
			t.Logf("the client says:\n%s", said.String())
		}
	})
	eventually(
		t, "the values are letters",
		func() bool { return p.letters("dead") == 2 || strings.Contains(said.String(), "rror") },
	)
	if n := p.count("letters", "error = 'Acme.Stock: stock of 17' AND reason = 'rejected'"); n != 1 {
		t.Errorf("%d letters have the error of the annotations", n)
	}
	if n := p.count("letters", "error = '' AND reason = 'rejected'"); n != 1 {
		t.Errorf("%d letters have no error", n)
	}
}
