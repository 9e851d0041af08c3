package static

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestHashedNamesAreServedForEver(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^/static/(css|js|img)/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)$`)
	for name, url := range load().urls {
		if !shape.MatchString(url) {
			t.Errorf("URL(%q) = %q", name, url)
		}
		w := get(t, "GET", url)
		if w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", url, w.Code, w.Body.Len())
		}
		if body, err := embedded.ReadFile(name); err != nil || path.Ext(name) != ".css" && w.Body.String() != string(body) {
			t.Errorf("%s is not served as it is: %v", name, err)
		}
		for header, want := range map[string]string{
			"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", url, header, got, want)
			}
		}
		if kind := w.Header().Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "text/html") {
			t.Errorf("%s: Content-Type %q", url, kind)
		}
	}
}

func TestAnythingElseIsNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/static/", "/static/css/", "/static/css/style.css", "/static/css/style.000000000000.css", "/static/static.go",
		"/static/../static.go", "/static/css/../css/tokens.css", "/static/%2e%2e/go.mod", "/css/style.css", "/",
	} {
		w := get(t, "GET", path)
		if w.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, w.Code)
		}
		if w.Header().Get("Cache-Control") != "" {
			t.Errorf("GET %s: a 404 must not be kept", path)
		}
	}
	if w := get(t, "POST", URL("css/style.css")); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestStyleSheetsNameHashedFiles(t *testing.T) {
	t.Parallel()
	style := get(t, "GET", URL("css/style.css")).Body.String()
	if !strings.Contains(style, `@import url("`+URL("css/tokens.css")+`")`) {
		t.Errorf("style.css does not import the hashed tokens.css: %.80s", style)
	}
	for _, name := range []string{"css/tokens.css", "css/style.css", "css/dlo.css"} {
		if body := get(t, "GET", URL(name)).Body.String(); strings.Contains(body, "http:") || strings.Contains(body, "https:") || strings.Contains(body, "data:") {
			t.Errorf("%s loads something from elsewhere", name)
		}
	}
}

func TestWrongFoldersAreRefused(t *testing.T) {
	t.Parallel()
	for name, fsys := range map[string]fstest.MapFS{
		"unknown kind":      {"css/a.exe": {Data: []byte("x")}},
		"missing reference": {"css/a.css": {Data: []byte(`@import url("b.css");`)}},
		"circle":            {"css/a.css": {Data: []byte(`@import url("b.css");`)}, "css/b.css": {Data: []byte(`@import url("a.css");`)}},
		"not closed":        {"css/a.css": {Data: []byte(`@import url("b.css`)}},
	} {
		if _, err := read(fsys); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBudgets bounds what a browser loads on its first visit and keeps for ever after it. The files
// are sent as they are, so comments count.
func TestBudgets(t *testing.T) {
	t.Parallel()
	budgets := map[string]int{".css": 48 << 10, ".js": 36 << 10}
	sizes := map[string]int{}
	for url, f := range load().byPath {
		sizes[path.Ext(url)] += len(f.body)
	}
	for ext, budget := range budgets {
		if got := sizes[ext]; got == 0 || got > budget {
			t.Errorf("all %s files together have %d bytes, of at most %d", ext, got, budget)
		}
	}
}
