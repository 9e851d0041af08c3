package web_test

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/web"
)

func withBasePath(o *web.Options) { o.BasePath = "/tools/dlo" }

var pathsOfPage = regexp.MustCompile(` (?:href|src|action|formaction|data-events|data-query)="([^"#][^"]*)"`)

// TestBasePath follows every path in the pages of a dlo below a base path. A proxy can keep the
// base path in requests, or remove it. Most requests of the test still have it, and some do not.
func TestBasePath(t *testing.T) {
	t.Parallel()
	h := open(t, withBasePath, withRetries, withLibrary, withUsers)
	id := string(h.receive("sms", 3, "x")[0])
	h.post("/views", url.Values{"name": {`" href="/evil`}, "q": {"state:dead"}}).want(t, 303)
	seen := map[string]bool{}
	for next := []string{
		"/tools/dlo/", "/tools/dlo/letters/" + id, "/tools/dlo/groups/G-1", "/tools/dlo/account",
	}; len(next) > 0 && len(seen) < 300; {
		path := next[0]
		next = next[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		a := h.get(path)
		if a.StatusCode == 404 || a.StatusCode >= 500 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		if to := a.Header.Get("Location"); to != "" && !strings.HasPrefix(to, "/tools/dlo/") {
			t.Errorf("%s redirects to %s", path, to)
		}
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range pathsOfPage.FindAllStringSubmatch(a.text, -1) {
			switch {
			case strings.HasPrefix(m[1], "http") || strings.HasPrefix(m[1], "?"):
			case !strings.HasPrefix(m[1], "/tools/dlo/"):
				t.Errorf("%s leads to %s", path, m[1])
			case strings.HasPrefix(m[0], " href") || strings.HasPrefix(m[0], " src"):
				link := strings.ReplaceAll(m[1], "&amp;", "&")
				link, _, _ = strings.Cut(link, "#")
				next = append(next, link)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d pages", len(seen))
	}
	h.get("/letters/"+id).want(t, 200, `href="/tools/dlo/letters`) // the proxy has removed the base path
	h.get("/tools/dlo/api/v1/letters").want(t, 200, id)
	h.postJSON("/api/v1/users", `{"name":"mia","role":"viewer"}`).want(
		t, 201, `"link":"http://dlo.example/tools/dlo/welcome?code=`,
	)
	h.get("/tools/dlo").want(t, 308)
	h.get("/tools/dloletters").want(t, 404)
	r := httptest.NewRequest("POST", "/tools/dlo/theme", strings.NewReader("theme=dark&return=%2Fletters"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if a := h.do(r).want(t, 303); a.Header.Get("Location") != "/tools/dlo/letters" {
		t.Errorf("the form returns to %s", a.Header.Get("Location"))
	}
}

// TestBasePathInABrowser checks the paths that the scripts fetch below a base path: completions,
// the palette, live changes and the event stream.
func TestBasePathInABrowser(t *testing.T) {
	t.Parallel()
	h, tab, at := visit(t, withBasePath)
	h.receive("sms", 3, "x")
	tab.Open(at + "/tools/dlo/letters?q=state:dead")
	eventually(t, tab, `document.documentElement.dataset.base === '/tools/dlo'`)
	h.receive("sms", 2, "y")
	eventually(t, tab, `document.querySelector('[data-fresh]') !== null || document.body.innerText.includes('5 ')`)
	js[any](
		tab,
		`(() => { const box = document.querySelector('input[data-query]'); box.focus(); box.value = 'queue:s'; box.dispatchEvent(new Event('input', { bubbles: true })); return 1 })()`,
	)
	eventually(t, tab, `document.body.innerText.includes('queue:sms')`)
	tab.Open(at + "/tools/dlo/triage")
	tab.Act(`document.querySelector('[data-row]').click()`)
	eventually(t, tab, `location.pathname === '/tools/dlo/groups/G-1' && document.readyState === 'complete'`)
	for _, entry := range js[[]string](
		tab, `performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)`,
	) {
		if !strings.HasPrefix(entry, "/tools/dlo/") {
			t.Errorf("the page fetches %s", entry)
		}
	}
}
