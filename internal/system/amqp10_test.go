package system

import (
	"bufio"
	"fmt"
	"net/http"
	neturl "net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAMQP10Values lets a client of AMQP 1.0 reject values, whose sections begin with their length.
// An edit must write the length again. If the old length stayed in place, the broker would end the
// connection of the consumer each time.
func TestAMQP10Values(t *testing.T) {
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
	newAudit(t, url, "work", nil)
	p := newChild(t, url, "default: {retry: {delays: []}}\n")
	p.Start("")
	p.Draining()
	address, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = ""
	worker := exec.Command(python, "testdata/amqp10.py", address.String(), vhost, "work")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if worker.Stderr = worker.Stdout; worker.Start() != nil {
		t.Fatal("the client does not start")
	}
	t.Cleanup(func() { worker.Process.Kill(); worker.Wait() })
	var mu sync.Mutex
	var said []string
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			said = append(said, lines.Text())
			mu.Unlock()
		}
	}()
	says := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(said, "\n")
	}
	eventually(
		t, "the values are letters", func() bool { return p.letters("dead") == 3 || strings.Contains(says(), "rror") },
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
		func() bool { return strings.Count(says(), "accepted") == 3 || strings.Contains(says(), "error") },
	)
	if got := says(); got != "accepted 14\naccepted 424\naccepted 14" {
		t.Error(got)
	}
}
