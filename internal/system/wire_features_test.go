package system

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWireFeaturesThroughABroker sends every feature of the wire format to a consumer that rejects
// it. The letter is requeued unchanged, rejected again, edited in one field, and requeued. The
// consumer must first get the published body, exact to the byte. After the edit, it must get an
// equal message in which only that field has changed.
func TestWireFeaturesThroughABroker(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	schemas, err := filepath.Abs("../payload/testdata/schemas")
	if err != nil {
		t.Fatal(err)
	}
	p := newChild(
		t, url,
		fmt.Sprintf(
			"default: {retry: {delays: []}}\nrequeue: {rate: 0, in_flight: 128, watch: 1s}\nschemas: {directory: %q}\n",
			schemas,
		),
	)
	p.Start("")
	p.Draining()

	types := descriptor.NewRegistry()
	if _, err := types.AddSource("schemas", os.DirFS(schemas)); err != nil {
		t.Fatal(err)
	}
	content := func(attempt, typ string, body []byte) string {
		if attempt != "2" {
			return string(body)
		}
		doc := (&payload.Decoder{Types: types}).Decode(body, payload.Hints{Type: typ}, nil)
		return fmt.Sprint(typ, doc.JSON, doc.UnknownFields)
	}
	features := payloadtest.WireFeatures()
	var mu sync.Mutex
	got := map[string]map[string]int{} // dlo's attempt ("" = before the first attempt) -> body -> number of deliveries
	ch := a.channel()
	deliveries, err := ch.Consume("work", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			attempt := ""
			if n, ours := d.Headers[deadletter.HeaderAttempt]; ours {
				attempt = fmt.Sprint(n)
			}
			mu.Lock()
			if got[attempt] == nil {
				got[attempt] = map[string]int{}
			}
			got[attempt][content(attempt, d.Type, d.Body)]++
			mu.Unlock()
			if attempt == "2" {
				_ = d.Ack(false)
			} else {
				_ = d.Reject(false)
			}
		}
	}()
	pub := a.channel()
	if err := pub.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for i, f := range features {
		c, err := pub.PublishWithDeferredConfirm("", "work", true, false, amqp.Publishing{
			MessageId: fmt.Sprint(i), Type: f.Type, DeliveryMode: 2, Body: f.With(7),
		})
		if err != nil || !c.Wait() {
			t.Fatal(f.Name, err)
		}
	}
	arrived := func(what, attempt string, v uint64) {
		t.Helper()
		eventually(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, copies := range got[attempt] {
				n += copies
			}
			return n == len(features)
		})
		want := map[string]int{}
		for _, f := range features {
			want[content(attempt, f.Type, f.With(v))]++
		}
		mu.Lock()
		defer mu.Unlock()
		for _, f := range features {
			if body := content(attempt, f.Type, f.With(v)); got[attempt][body] != want[body] {
				t.Errorf("%s, %s: the consumer did not get %q", what, f.Name, body)
			}
		}
		if !maps.Equal(got[attempt], want) {
			t.Errorf("%s: the bodies are others", what)
		}
	}
	dead := func(attempts int) {
		t.Helper()
		eventually(
			t, "all are dead",
			func() bool { return p.count("letters", "state = 'dead' AND attempts = $1", attempts) == len(features) },
		)
	}
	ask := func(request string) {
		t.Helper()
		if code, answer := p.post("/api/v1/operations", json.RawMessage(request)); code != 202 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	arrived("as published", "", 7)
	dead(0)
	ask(`{"action":"requeue","q":"state:dead","hold":"0s","canary":0,"rate":10000,"stop_at":0}`)
	arrived("requeued", "1", 7)
	dead(1)
	for typ, field := range payloadtest.EditedField {
		ask(fmt.Sprintf(`{"action":"edit","q":"state:dead type:%s","hold":"0s","canary":0,"rate":10000,"stop_at":0,"reason":"r","patch":[{"op":"replace","path":"/%s","value":300}]}`, typ, field.Name))
	}
	arrived("edited", "2", 300)
	eventually(t, "all are quiet", func() bool { return p.letters("settled") == len(features) })
}
