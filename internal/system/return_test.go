package system

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTheReturnWinsOverALateConfirm uses a worker that rejects a letter again before dlo has
// recorded the confirm. dlo must receive and classify the letter again. After the return, dlo must
// never show it as requeued or quiet.
func TestTheReturnWinsOverALateConfirm(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	a.refuse = func(*amqp.Delivery) bool { return true }
	p := newChild(t, url, "default: {retry: {delays: [0s]}}\nrequeue: {rate: 0, watch: 1s}\n")
	retries := func(do string) { // pauses or resumes retries, so that all letters are sent together
		t.Helper()
		if code, body := p.post("/api/v1/queues/"+do, map[string]any{"queue": "work"}); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	p.Start("")
	p.Draining()
	a.work()
	letter := func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) }
	a.publish(1, letter)
	eventually(t, "a letter of the queue", func() bool { return p.letters("dead") == 1 })
	retries("pause")
	const letters = 20
	a.publish(letters, func(i int) (string, string) { return letter(1 + i) })
	eventually(t, "the others waiting", func() bool { return p.letters("scheduled") == letters })
	p.Stop()
	returned := filepath.Join(t.TempDir(), "returned")
	p.Start("requeue: confirmed=" + returned)
	retries("resume")
	eventually(
		t, "all letters dead",
		func() bool { return p.count("letters", `state = 'dead' AND attempts = 1`) == 1+letters },
	)
	before := p.count("events", `kind IN ('requeued', 'settled')`)
	if err := os.WriteFile(returned, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the late confirms noted", func() bool { return p.events("confirmed late") == letters })
	if n := p.count("attempts", `outcome = 'came back'`); n != 1+letters {
		t.Errorf("%d of %d attempts came back", n, 1+letters)
	}
	if n := p.count("events", `kind IN ('requeued', 'settled')`); n != before {
		t.Errorf("%d letters were shown as requeued or quiet although they had come back", n-before)
	}
	if n := p.letters(); n != 1+letters {
		t.Errorf("%d rows for %d letters", n, 1+letters)
	}
}
