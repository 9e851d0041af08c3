package rabbitmq

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestALookOutlastsASlowOverview reads a whole vhost of a broker whose /api/overview needs more
// than 5 s. For a question about one queue, dlo waits at most 5 s. When it reads a whole vhost, it
// must wait longer. Questions about queues must still be answered afterwards.
func TestALookOutlastsASlowOverview(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/overview":
			time.Sleep(managementWait + 200*time.Millisecond)
			io.WriteString(w, `{"rabbitmq_version": "4.3.6"}`)
		case r.URL.Path == "/api/queues///orders":
			io.WriteString(w, `{"type": "classic", "messages_ready": 7}`)
		case strings.HasPrefix(r.URL.Path, "/api/queues/"):
			io.WriteString(w, `{"items": [{"name": "orders"}], "page_count": 1}`)
		default:
			io.WriteString(w, `[]`)
		}
	}))
	t.Cleanup(server.Close)
	l, err := Connect(Broker{
		Name: "main", URL: "amqp://guest:guest@127.0.0.1:1/", Management: server.URL,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Snapshot(t.Context())
	if err != nil || len(s.Gaps) > 0 || s.Version != "4.3.6" || len(s.Queues) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if f := l.Facts(t.Context(), "orders"); f.Ready != 7 {
		t.Errorf("after the look: %+v", f)
	}
}

// TestALookAtAnAPIThatHangs reads a vhost through a management API that never returns the bindings.
// dlo must record the bindings, and everything that it would have read after them, as unread. It
// must report no fault that depends on an unread part.
func TestALookAtAnAPIThatHangs(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case r.URL.Path == "/api/overview":
			io.WriteString(w, `{"rabbitmq_version": "4.3.6"}`)
		case strings.HasPrefix(r.URL.Path, "/api/queues/"):
			io.WriteString(
				w,
				`{"items": [{"name": "orders", "type": "classic", "arguments": {"x-dead-letter-exchange": "dlx"}}], "page_count": 1}`,
			)
		case strings.HasPrefix(r.URL.Path, "/api/exchanges/"):
			io.WriteString(w, `[{"name": "dlx", "type": "fanout"}]`)
		default:
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	l, err := Connect(Broker{
		Name: "main", URL: "amqp://guest:guest@127.0.0.1:1/", Management: server.URL,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l.looks.Load().client.Timeout = 300 * time.Millisecond
	s, err := l.Snapshot(t.Context())
	if err != nil || len(s.Queues) != 1 || len(s.Exchanges) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, part := range []string{
		topology.PartBindings, topology.PartPolicies, topology.PartOperators, topology.PartShovels,
	} {
		if why := s.Unread(part); !strings.Contains(why, "Client.Timeout exceeded") {
			t.Errorf("%s: %q", part, why)
		}
	}
	if found := topology.Inspect(&s, topology.Options{}); len(found) > 0 {
		t.Errorf("findings from what is not known: %+v", found)
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("%d requests: an API that does not answer is asked again", n)
	}
}
