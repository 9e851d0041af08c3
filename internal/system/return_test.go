package system

import (
	"fmt"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTheReturnWinsOverALateConfirm has a worker that rejects again before the confirm is recorded:
// the letter is received again and classified afresh, and never shows as requeued or quiet after it
// came back.
func TestTheReturnWinsOverALateConfirm(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	a.refuse = func(*amqp.Delivery) bool { return true }
	p := newChild(t, url, "default: {retry: {delays: [0s]}}\nrequeue: {rate: 0, watch: 1s}\n")
	p.Start("requeue: confirmed=3s") // longer than a return takes, on a busy machine too
	p.Draining()
	a.work()
	const letters = 20
	a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	eventually(t, "all letters dead", func() bool {
		return p.count("letters", `state = 'dead' AND attempts = 1`) == letters
	})
	eventually(t, "the late confirms noted", func() bool { return p.events("confirmed late") == letters })
	if n := p.count("attempts", `outcome = 'came back'`); n != letters {
		t.Errorf("%d of %d attempts came back", n, letters)
	}
	if n := p.count("events", `kind IN ('requeued', 'settled')`); n != 0 {
		t.Errorf("%d letters were shown as requeued or quiet although they had come back", n)
	}
	if n := p.letters(); n != letters {
		t.Errorf("%d rows for %d letters", n, letters)
	}
}
