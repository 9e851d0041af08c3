package rabbitmq

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestALookOutlastsASlowOverview reads a vhost although /api/overview takes longer than the 5 s
// that a question about a queue may take. The look waits for it. Other questions are answered
// afterwards.
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
	l, err := Connect(Broker{Name: "main", URL: "amqp://guest:guest@127.0.0.1:1/", Management: server.URL}, slog.New(slog.DiscardHandler))
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
