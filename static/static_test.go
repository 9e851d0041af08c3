package static

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHashedNames(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^/static/(css|js|img)/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)$`)
	for name, url := range load().urls {
		if !shape.MatchString(url) {
			t.Errorf("URL(%q) = %q", name, url)
		}
		body, kind, ok := File(url)
		if !ok || len(body) == 0 {
			t.Errorf("%s: %v, %d bytes", url, ok, len(body))
		}
		if as, err := embedded.ReadFile(name); err != nil || path.Ext(name) != ".css" && string(body) != string(as) {
			t.Errorf("%s is not served as it is: %v", name, err)
		}
		if kind == "" || strings.HasPrefix(kind, "text/html") {
			t.Errorf("%s: Content-Type %q", url, kind)
		}
	}
}

func content(name string) string {
	body, _, _ := File(URL(name))
	return string(body)
}

func TestStyleSheetsNameHashedFiles(t *testing.T) {
	t.Parallel()
	style := content("css/style.css")
	if !strings.Contains(style, `@import url("`+strings.TrimPrefix(URL("css/tokens.css"), Prefix+"css/")+`")`) {
		t.Errorf("style.css does not import the hashed tokens.css: %.80s", style)
	}
	for _, name := range []string{"css/tokens.css", "css/style.css", "css/dlo.css"} {
		if body := content(name); strings.Contains(body, "http:") || strings.Contains(body, "https:") ||
			strings.Contains(body, "data:") {
			t.Errorf("%s loads something from elsewhere", name)
		}
	}
}

func TestWrongFoldersAreRefused(t *testing.T) {
	t.Parallel()
	for name, fsys := range map[string]fstest.MapFS{
		"unknown kind":      {"css/a.exe": {Data: []byte("x")}},
		"missing reference": {"css/a.css": {Data: []byte(`@import url("b.css");`)}},
		"circle": {
			"css/a.css": {Data: []byte(`@import url("b.css");`)},
			"css/b.css": {Data: []byte(`@import url("a.css");`)},
		},
		"not closed": {"css/a.css": {Data: []byte(`@import url("b.css`)}},
	} {
		if _, err := read(fsys); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBudgets checks the maximum size of the files that a browser loads on its first visit. The
// browser then caches them forever. The files are sent unmodified, so comments in them count.
// Browsers load no framework besides these files.
func TestBudgets(t *testing.T) {
	t.Parallel()
	budgets := map[string]int{".css": 48 << 10, ".js": 58 << 10}
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
