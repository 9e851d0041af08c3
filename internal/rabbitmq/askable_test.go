package rabbitmq

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestTheAPIIsNotAskedAboutNamesWithoutAnAddress checks that no request is sent for a queue whose
// name cannot be part of a URL. dlo then knows nothing about the queue, so it must not report that
// the queue does not exist.
func TestTheAPIIsNotAskedAboutNamesWithoutAnAddress(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked++
		rw.Write([]byte(`{}`))
	}))
	defer server.Close()
	m, err := newManagement(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"caf\xe9", "", ".", ".."} {
		if _, err := m.Queue(t.Context(), "/", name); !errors.Is(err, errNotAsked) || errors.Is(err, errNoQueue) {
			t.Errorf("%q: %v", name, err)
		}
		l := Link{vhost: "/"}
		l.management.Store(m)
		if f := l.Facts(t.Context(), name); f != deadletter.UnknownQueue {
			t.Errorf("%q: %+v", name, f)
		}
	}
	if asked != 0 {
		t.Errorf("it was asked %d times", asked)
	}
	if _, err := m.Queue(t.Context(), "/", "café/..%2F?"); err != nil || asked != 1 {
		t.Errorf("%d, %v", asked, err)
	}
}
