package system

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestFindingsAreTold checks the notices about findings. dlo must page people about a missing
// exchange. It must send a normal notice about a storm of redeliveries, and another one about a
// queue without an exchange. It must send no notice about a queue that dead-letters at most once.
// The finding about the storm must contain the queue and the rates. When a fault is repaired,
// people must get a notice of its end.
func TestFindingsAreTold(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address) // the queues orders and jobs have no dead-letter exchange
	a.api(http.MethodPut, "queues", "mail", map[string]any{
		"durable":   true,
		"arguments": map[string]any{"x-dead-letter-exchange": "nowhere"},
	})
	a.api(http.MethodPut, "queues", "safe", map[string]any{
		"durable":   true,
		"arguments": map[string]any{"x-queue-type": "quorum", "x-dead-letter-exchange": "dlo.dlx"},
	})
	a.api(http.MethodPut, "queues", "loop", map[string]any{
		"durable":   true,
		"arguments": map[string]any{"x-dead-letter-exchange": "dlo.dlx"},
	})
	pager := newReceiver(t)
	p := newChild(t, address, pager.configFor(t, "page"))
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	p.Start("")
	p.Draining()

	var mended atomic.Bool
	deliveries, err := a.ch.Consume("loop", "naive", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			time.Sleep(10 * time.Millisecond)
			_ = d.Reject(!mended.Load()) // requeues the message until the variable "mended" is true
		}
	}()
	if err := a.ch.PublishWithContext(t.Context(), "", "loop", false, false, amqp.Publishing{
		Body: []byte("poison"), DeliveryMode: 2,
	}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	type finding struct {
		Kind, Severity, Queue, Title, Why string
		Since                             time.Time
	}
	find := func(kind, queue string) (found *finding) {
		_, body := p.get("/api/v1/topology/findings")
		var all struct{ Findings []finding }
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		for i, f := range all.Findings {
			if f.Kind == kind && f.Queue == queue {
				found = &all.Findings[i]
			}
		}
		return found
	}
	eventually(t, "the storm is found", func() bool { return find("redelivery_storm", "loop") != nil })
	if storm := find("redelivery_storm", "loop"); storm == nil || storm.Since.Before(began) ||
		!strings.HasPrefix(storm.Title, "loop delivers the same messages again, ") || !strings.Contains(
		storm.Why, " redeliveries and 0 acknowledgements a second",
	) {
		t.Errorf("%+v", storm)
	}
	for _, says := range []string{
		"mail dead-letters to exchange nowhere, which does not exist",
		"jobs has no dead-letter exchange, and 1 more of this kind", "loop delivers the same messages again",
	} {
		pager.waitForNotice(t, says)
	}
	if find("at_most_once", "safe") == nil {
		t.Error("a queue that dead-letters at most once is not found")
	}

	mended.Store(true)
	a.api(http.MethodPut, "exchanges", "nowhere", map[string]any{"type": "fanout", "durable": true})
	a.api(http.MethodPost, "bindings", "e/nowhere/q/dlo.letters", map[string]any{})
	for _, queue := range []string{"orders", "jobs"} {
		a.api(http.MethodDelete, "queues", queue, nil)
	}
	eventually(t, "the end of all three is told", func() bool { return len(pager.notices("notice.over")) == 3 })
	eventually(t, "the message of the storm is a letter", func() bool { return p.letters("dead") == 1 })
	severities := map[string]int{}
	pager.mu.Lock()
	for _, n := range pager.told {
		if n.Type == "notice.problem" {
			severities[n.Data.Severity]++
		}
		if strings.Contains(n.Data.Title, "safe") {
			t.Errorf("people are told of a finding for the digest: %+v", n)
		}
	}
	pager.mu.Unlock()
	if severities["page"] != 1 || severities["notify"] != 2 {
		t.Errorf("notices by severity: %v", severities)
	}
}
