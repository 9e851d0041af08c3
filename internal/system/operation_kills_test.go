package system

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// answered is an operation as the API returns it.
type answered struct {
	ID, State, Phase, Why string
	Total, Twice          int
	Counts                map[string]int
	NewFailures           struct{ Count int } `json:"new_failures"`
}

func (p *child) operation(id string) answered {
	p.t.Helper()
	code, body := p.get("/api/v1/operations/" + id)
	var op answered
	if err := json.Unmarshal([]byte(body), &op); err != nil || code != 200 {
		p.t.Fatalf("%d %s (%v)", code, body, err)
	}
	return op
}

// order returns the body of a protobuf message that orderSchema describes. The message has a tier
// and a number.
func order(tier string, n int) string {
	body := []byte{0x0a, byte(len(tier))}
	body = append(body, tier...)
	body = append(body, 0x10)
	for ; n >= 0x80; n >>= 7 {
		body = append(body, byte(n)|0x80)
	}
	return string(append(body, byte(n)))
}

const orderSchema = `syntax = "proto3"; package acme.v1; message Order { string tier = 1; uint64 number = 2; }`

// TestOperationOnAQuery has 2,000 letters and two kills.
func TestOperationOnAQuery(t *testing.T) {
	t.Parallel()
	operateOnAQuery(t, 2000, "operation: advanced=3", "requeue: confirmed=5")
}

// TestALargeOperationOnAQuery has 10,000 letters, or 500,000 in a soak, and five kills.
func TestALargeOperationOnAQuery(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	letters := 10_000
	if soak() {
		letters = 500_000
	}
	operateOnAQuery(
		t, letters, "operation: advanced=3", "requeue: publishing=9", "requeue: confirmed=11", "operation: advanced=4",
		"requeue: claimed=13",
	)
}

// operateOnAQuery tells the story of a bad deploy. A person starts an operation that selects
// letters by type, time and a decoded field. The canary must stop the operation, because the worker
// is still broken. After the fix, all letters must be sent once, although dlo is killed at each of
// the given points. The type "audit" of the tests checks the outcome.
func operateOnAQuery(t *testing.T, letters int, kills ...string) {
	testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	a := newAudit(t, amqpURL, "orders", nil)
	broken := true
	a.refuse = func(d *amqp.Delivery) bool {
		_, ours := d.Headers[deadletter.HeaderAttempt]
		a.mu.Lock()
		defer a.mu.Unlock()
		return !ours || broken
	}
	schemas := t.TempDir()
	if err := os.WriteFile(filepath.Join(schemas, "order.proto"), []byte(orderSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	const inFlight = 128
	p := newChild(
		t, amqpURL,
		fmt.Sprintf(
			"default: {retry: {delays: []}}\nrequeue: {watch: 8s, in_flight: %d}\nsearch: {fields: [tier]}\nschemas: {directory: %s, bindings: [{queue: orders, type: acme.v1.Order}]}\n",
			inFlight, schemas,
		),
	)
	p.Start("")
	p.Draining()
	a.work()
	tier := func(i int) string { return []string{"gold", "gold", "gold", "silver"}[i%4] }
	a.publish(letters, func(i int) (string, string) { return order(tier(i), i), fmt.Sprint(i) })
	gold := letters / 4 * 3
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == letters })
	eventually(t, "all letters can be searched", func() bool { return p.count("unindexed", "") == 0 })

	q := "type:acme.v1.Order state:dead since:1h body.tier:gold"
	code, plan := p.post("/api/v1/operations", map[string]any{"action": "requeue", "q": q, "dry_run": true})
	if want := fmt.Sprintf(`"total":%d,"eligible":%d`, gold, gold); code != 200 || !strings.Contains(plan, want) {
		t.Fatalf("%d %s", code, plan)
	}

	// The worker is still broken, so dlo may send only the canary.
	code, body := p.post("/api/v1/operations", map[string]any{
		"action": "requeue", "q": q, "hold": "0s", "canary": 5, "canary_wait": "10s", "rate": 2000 + letters/60,
	})
	if code != 202 {
		t.Fatalf("%d %s", code, body)
	}
	eventually(t, "the canary stops it", func() bool { return p.operation("O-1").State == "stopped" })
	time.Sleep(time.Second)
	a.mu.Lock()
	sent := a.rejected - letters
	a.mu.Unlock()
	if op := p.operation(
		"O-1",
	); sent == 0 || sent > 5 || op.Counts["came_back"] != sent || op.Counts["pending"] != gold-sent ||
		op.Total != gold {
		t.Fatalf("%d letters came back; the operation says %+v", sent, op)
	}

	// After the worker's bug is fixed, the operation must continue, although the test kills dlo.
	a.mu.Lock()
	broken = false
	a.mu.Unlock()
	p.Kill9()
	for kill, point := range kills {
		p.Start(point)
		if kill == 0 {
			if code, body := p.post("/api/v1/operations/O-1/resume", map[string]any{}); code != 200 {
				t.Fatalf("%d %s", code, body)
			}
		}
		p.Crashed("the crash at " + point)
	}
	p.Start("")
	eventually(t, "the verdict", func() bool { return p.operation("O-1").State == "done" })
	op := p.operation("O-1")
	quiet := op.Counts["quiet"] + op.Counts["unverified"]
	if quiet != gold-sent || op.Counts["came_back"] != sent || op.Total != gold {
		t.Errorf("the verdict is %+v; want %d quiet, %d came back", op, gold-sent, sent)
	}
	surplus, duplicates := a.checkStore(p)
	if surplus != 0 || duplicates > len(kills)*inFlight || duplicates > op.Twice {
		t.Errorf(
			"%d rows more than letters, %d duplicate copies, %d letters listed as maybe sent twice", surplus,
			duplicates, op.Twice,
		)
	}
	if n := a.acceptedLetters(); n != gold-sent {
		t.Errorf("%d letters arrived, want %d", n, gold-sent)
	}
	if n := p.letters("dead"); n != letters-gold+sent {
		t.Errorf("%d letters stayed dead, want %d", n, letters-gold+sent)
	}
	code, body = p.get(
		"/api/v1/letters/count?exact=1&q=" + url.QueryEscape("op:O-1/quiet,O-1/unverified body.tier:gold"),
	)
	if want := fmt.Sprintf(`"count":%d,"exact":true`, gold-sent); code != 200 || !strings.Contains(body, want) {
		t.Errorf("%d %s, want %s", code, body, want)
	}
	t.Logf("%d letters, %d duplicate copies, %d listed as maybe sent twice", gold, duplicates, op.Twice)
}
