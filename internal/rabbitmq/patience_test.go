package rabbitmq

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAPatientCallerWaitsForTheAPI covers a broker that has just started, so that its management
// API does not accept connections yet. A session that opens an inbox must wait until the API
// accepts connections. The request of a person must return an error immediately.
func TestAPatientCallerWaitsForTheAPI(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	m, err := newManagement("http://guest:guest@" + address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.awaitEffect(t.Context(), "/", "q", false); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := m.awaitEffect(t.Context(), "/", "q", false); !errors.Is(err, errSilent) {
		t.Errorf("it is asked again at once: %v", err)
	}
	server := http.Server{
		ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/api/queues/") {
				w.Write([]byte("[]")) // no policies
				return
			}
			w.Write([]byte(`{"page_count": 1, "items": [{"name": "q", "type": "quorum", "effective_policy_definition": {"delivery-limit": -1}}]}`))
		}),
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		time.Sleep(100 * time.Millisecond)
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		server.Serve(l)
	}()
	e, err := m.awaitEffect(t.Context(), "/", "q", true)
	if err != nil {
		t.Fatal(err)
	}
	if limit, limited := e.DeliveryLimit("4.0.5"); limited {
		t.Errorf("limit %+v", limit)
	}
}
