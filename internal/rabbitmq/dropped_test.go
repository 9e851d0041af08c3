package rabbitmq_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestDroppedIsCounted rejects messages in a classic queue and a quorum queue, both without a
// dead-letter exchange. It also rejects messages in a queue with a dead-letter exchange. The node
// must count the messages of the first two queues, and no others.
func TestDroppedIsCounted(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.PrivateBrokerWith(t, testenv.Options{Metrics: true})
	ch := openChannel(t, node.AMQPURL("/"), nil)
	for name, arguments := range map[string]amqp.Table{
		"parked":  nil,
		"classic": nil,
		"quorum":  {"x-queue-type": "quorum"},
		"safe":    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parked"},
	} {
		if _, err := ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := rabbitmq.Dropped(t.Context(), node.MetricsURL()); err != nil || n != 0 {
		t.Fatalf("before: %d %v", n, err)
	}
	for queue, times := range map[string]int{"classic": 3, "quorum": 4, "safe": 5} {
		for range times {
			rejectOf(t, ch, queue)
		}
	}
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		n, err := rabbitmq.Dropped(t.Context(), node.MetricsURL())
		if err != nil {
			t.Fatal(err)
		}
		if n == 7 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d dropped, want 7", n)
		}
	}
}

// TestDroppedIsUnknown checks that Dropped returns an error if the metrics of a node do not contain
// the number of dropped messages.
func TestDroppedIsUnknown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = w.Write([]byte("erlang_uptime_seconds 5\n"))
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	for address, want := range map[string]string{
		server.URL + "/metrics": "counter of dropped messages is missing", server.URL: "404",
		"http://127.0.0.1:1/": "refused", "::": "looks like",
	} {
		if _, err := rabbitmq.Dropped(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	if got := rabbitmq.MetricsOf(
		"https://user:secret@rabbit.example:15671/base",
	); got != "http://rabbit.example:15692/metrics" {
		t.Error(got)
	}
}
