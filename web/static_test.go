package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deadletteroffice/dlo/static"
)

func getFile(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	files(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestHashedNamesAreServedForEver(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"css/style.css", "js/dlo.js", "img/favicon.svg"} {
		url := static.URL(name)
		w := getFile(t, "GET", url)
		body, kind, _ := static.File(url)
		if w.Code != 200 || w.Body.String() != string(body) || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d, %d bytes, %s", url, w.Code, w.Body.Len(), w.Header().Get("Content-Type"))
		}
		for header, want := range map[string]string{
			"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", url, header, got, want)
			}
		}
	}
}

func TestAnythingElseIsNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/static/", "/static/css/", "/static/css/style.css", "/static/css/style.000000000000.css", "/static/static.go",
		"/static/../static.go", "/static/css/../css/tokens.css", "/static/%2e%2e/go.mod", "/css/style.css", "/",
	} {
		w := getFile(t, "GET", path)
		if w.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, w.Code)
		}
		if w.Header().Get("Cache-Control") != "" {
			t.Errorf("GET %s: a 404 must not be kept", path)
		}
	}
	if w := getFile(t, "POST", static.URL("css/style.css")); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}
