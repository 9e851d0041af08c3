package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestRequestsAreLogged checks what the log says of a request, and that it has no query.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := web.New(web.Options{
		Logged: slog.New(slog.NewTextHandler(&log, nil)),
		Actor: func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{Name: "ana"}, nil
		},
	})
	r := httptest.NewRequest(http.MethodGet, "/letters?q=hunter2", nil)
	r.Header.Set("Authorization", "Bearer hunter2")
	w.ServeHTTP(httptest.NewRecorder(), r)
	line := log.String()
	for _, want := range []string{"method=GET", "path=/letters", "status=403", "bytes=", "duration=", "by=ana", "address="} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is missing in %s", want, line)
		}
	}
	if strings.Contains(line, "hunter2") {
		t.Error(line)
	}
}
