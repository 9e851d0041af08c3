package system

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// compressions contains the names of the compressions of kombu that work with Debian packages. It
// also contains "none".
var compressions = []string{"none", "gzip", "bzip2", "zstd"}

// TestCelery uses a worker that rejects Celery tasks. Each rejected task must become a letter with
// the name of the task. dlo must decode the arguments of the tasks with each compression. After a
// requeue, the repaired worker must run each task once.
func TestCelery(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	shop := celery(t)
	_, url := testenv.VHost(t)
	p := serve(t, url, "default: {retry: {delays: []}}\nrequeue: {rate: 0, watch: 2s}\n", nil).child
	p.Draining()
	dir := t.TempDir()
	repaired, charged := filepath.Join(dir, "repaired"), filepath.Join(dir, "charged")
	env := append(os.Environ(), "AMQP_URL="+url, "REPAIRED="+repaired, "CHARGED="+charged)
	conn, _ := testenv.Channel(t, url)
	worker := exec.Command(shop[0], append(shop[1:], "work")...)
	worker.Env = env
	startClient(t, worker)
	send := exec.Command(shop[0], append(append(shop[1:], "send"), compressions...)...)
	send.Env = env
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, "all tasks are dead", func() bool { return p.letters("dead") == len(compressions) })
	for _, id := range p.ids(`SELECT id, random FROM letters`) {
		var letter struct {
			Type, Queue string
			Decoded     struct{ JSON []json.RawMessage }
			Properties  struct {
				CorrelationID string `json:"correlation_id"`
			}
		}
		_, answer := p.get("/api/v1/letters/" + string(id))
		if err := json.Unmarshal([]byte(answer), &letter); err != nil {
			t.Fatal(err, answer)
		}
		if letter.Type != "shop.charge" || letter.Queue != "shop" || len(letter.Decoded.JSON) != 3 ||
			!strings.Contains(string(letter.Decoded.JSON[0]), "acme acme") {
			t.Errorf("it says %s", answer)
		}
		if _, page := p.get("/letters/" + string(id)); !strings.Contains(
			page, "<dt>Task id</dt><dd class=\"mono break\">"+letter.Properties.CorrelationID,
		) {
			t.Error("the page does not say which task of Celery it is")
		}
	}
	if n := p.count(
		"letters l JOIN groups g ON g.id = l.grp", "g.title = 'shop.charge rejected'",
	); n != len(compressions) {
		t.Errorf("%d letters are in the group of their task", n)
	}
	if err := os.WriteFile(repaired, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, answer := p.post(
		"/api/v1/operations", requeueAtOnce(p.ids(`SELECT id, random FROM letters`)),
	); code != 202 {
		t.Fatalf("%d %s", code, answer)
	}
	eventually(t, "all letters quiet", func() bool { return p.letters("settled") == len(compressions) })
	done, _ := os.ReadFile(charged)
	for order := range compressions {
		if n := strings.Count(string(done), string(rune('0'+order))+" acme "); n != 1 {
			t.Errorf("order %d was charged %d times:\n%s", order, n, done)
		}
	}
	if n := ready(t, conn, "shop"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// celery returns the command that runs testdata/shop.py. It skips the test if Celery is not
// installed.
func celery(t *testing.T) []string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import celery, zstandard").Run() == nil {
			return []string{python, "testdata/shop.py"}
		}
	}
	testenv.Unavailable(
		t, fmt.Errorf("%w: Celery; to install it: .ci/install python3-celery python3-zstandard", testenv.ErrMissing),
	)
	return nil
}
