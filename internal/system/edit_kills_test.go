package system

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAnEditSurvivesKills edits 2,000 letters with a patch while dlo is killed five times. Each
// letter must be edited once and must arrive as edited. No letter may arrive in its original form.
// Each copy must carry the token of its attempt.
func TestAnEditSurvivesKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	const letters, inFlight = 2_000, 128
	_, amqpURL := testenv.VHost(t)
	a := newAudit(t, amqpURL, "orders", nil)
	originals := 0 // number of unedited letters that dlo sent
	a.refuse = func(d *amqp.Delivery) bool {
		_, ours := d.Headers[deadletter.HeaderAttempt]
		if gold := bytes.Contains(d.Body, []byte("gold")); ours && gold {
			a.mu.Lock()
			originals++
			a.mu.Unlock()
		}
		return !ours
	}
	schemas := t.TempDir()
	if err := os.WriteFile(filepath.Join(schemas, "order.proto"), []byte(orderSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newChild(
		t, amqpURL,
		fmt.Sprintf(
			"default: {retry: {delays: []}}\nrequeue: {watch: 5s, in_flight: %d}\nschemas: {directory: %s, bindings: [{queue: orders, type: acme.v1.Order}]}\n",
			inFlight, schemas,
		),
	)
	p.Start("")
	p.Draining()
	a.work()
	a.publish(letters, func(i int) (string, string) { return order("gold", i+1), fmt.Sprint(i) })
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == letters })

	p.Kill9()
	for kill, point := range []string{
		"operation: frozen=1", "operation: advanced=2", "requeue: publishing=5", "requeue: confirmed=7",
		"operation: advanced=2",
	} {
		p.Start(point)
		if kill == 0 { // dlo is killed while it handles this request
			p.tryPost(
				"/api/v1/operations",
				json.RawMessage(`{"action":"edit","q":"state:dead","hold":"0s","canary":0,"rate":1000,"reason":"gold is no longer sold",
				"patch":[{"op":"test","path":"/tier","value":"gold"},{"op":"replace","path":"/tier","value":"silver"}]}`),
			)
		}
		p.Crashed("the crash at " + point)
	}
	p.Start("")
	eventually(t, "the verdict", func() bool { return p.operation("O-1").State == "done" })
	op := p.operation("O-1")
	if quiet := op.Counts["quiet"] + op.Counts["unverified"]; quiet != letters || op.Total != letters {
		t.Errorf("the verdict is %+v", op)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if originals > 0 {
		t.Errorf("%d originals were sent as well", originals)
	}
	// number of surplus copies, and number of letters with surplus copies; two kills may affect the
	// same letter
	duplicates, doubled := 0, 0
	for i := range letters {
		tokens := a.accepted[digest([]byte(order("silver", i+1)))]
		if len(tokens) != 1 {
			t.Errorf("order %d arrived under %d tokens", i, len(tokens))
		}
		for _, copies := range tokens {
			duplicates += copies - 1
			if copies > 1 {
				doubled++
			}
		}
	}
	if len(a.accepted) != letters || duplicates > 5*inFlight || doubled > op.Twice {
		t.Errorf(
			"%d different bodies arrived, %d duplicate copies of %d letters, %d listed as maybe sent twice",
			len(a.accepted), duplicates, doubled, op.Twice,
		)
	}
	for what, n := range map[string]int{
		`SELECT count(*) FROM revisions`:                                                            letters,
		`SELECT count(*) FROM letters WHERE revision <> 1`:                                          0,
		`SELECT count(*) FROM attempts WHERE revision <> 1`:                                         0,
		`SELECT count(*) FROM ` + storetest.Bodies + ` WHERE instr(body, CAST('gold' AS BLOB)) = 0`: 0,
	} {
		if got := p.ask(what); got != n {
			t.Errorf("%s: %d, want %d", what, got, n)
		}
	}
	t.Logf(
		"%d letters, %d duplicate copies of %d, %d listed as maybe sent twice", letters, duplicates, doubled, op.Twice,
	)
}
