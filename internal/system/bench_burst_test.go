package system

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestBenchBurst measures goal P12 of docs/performance.md: the memory of dlo with default settings.
// During the measurement, dlo receives, decides and indexes a burst of letters, and answers
// requests for pages.
func TestBenchBurst(t *testing.T) {
	testenv.Bench(t)
	node := testenv.PrivateBroker(t)
	_, url := node.VHost(t)
	a := newAudit(t, url, "orders", nil)
	p := newChild(t, url, "")
	p.Start("")
	p.Draining()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
				for _, path := range []string{"/", "/letters?q=state:scheduled", "/letters?q=number", "/operations"} {
					p.get(path)
				}
			}
		}
	}()
	began := time.Now()
	a.burst(*benchRows)
	published := time.Since(began)
	for p.count("letters", `state <> 'received'`) < *benchRows {
		time.Sleep(time.Second)
	}
	decided := time.Since(began)
	for p.count("unindexed", "") > 0 {
		time.Sleep(time.Second)
	}
	indexed := time.Since(began)
	close(stop)
	<-done
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	peak, now := 0, 0
	for line := range strings.Lines(string(status)) {
		fmt.Sscanf(line, "VmHWM: %d kB", &peak)
		fmt.Sscanf(line, "VmRSS: %d kB", &now)
	}
	t.Logf(
		"P12 a burst of %d letters, published in %s, decided after %s, indexed after %s: at most %d MiB resident, %d MiB after it, %s",
		*benchRows, published.Round(time.Second), decided.Round(time.Second),
		indexed.Round(time.Second), peak>>10, now>>10, against(float64(peak>>10), "<= 200"),
	)
}

// burst publishes letters with the headers that RabbitMQ gives to dead-lettered messages. The audit
// does not log them.
func (a *audit) burst(n int) {
	a.t.Helper()
	ch := a.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		a.t.Fatal(err)
	}
	var last *amqp.DeferredConfirmation
	for i := range n {
		c, err := ch.PublishWithDeferredConfirm("dlo.dlx", "orders", false, false, amqp.Publishing{
			ContentType:  "application/json",
			DeliveryMode: 2,
			MessageId:    fmt.Sprint(i),
			Body: fmt.Appendf(
				nil, `{"number": %d, "text": %q}`, i, strings.Repeat(vocabulary[i%len(vocabulary)]+" ", 40),
			),
			Headers: amqp.Table{
				"x-error-message": "template welcome_v3 not found", "x-tenant": fmt.Sprintf("tenant-%d", i%200),
				"x-death": rejectedIn("orders", "", "orders", time.Now()),
			},
		})
		if err != nil {
			a.t.Fatal(err)
		}
		if last = c; i%1000 == 999 {
			last.Wait()
		}
	}
	last.Wait()
}
