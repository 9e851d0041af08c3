package testenv

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const soundPage = `<!doctype html><html lang="en"><head><title>Sound</title><link rel="icon" href="data:,"></head>
<body><main><h1>Letters</h1><p id="scripts">off</p></main></body></html>`

// serve returns the URL of a server that responds with one page and one content security policy.
func serve(t *testing.T, csp, page string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if csp != "" {
			w.Header().Set("Content-Security-Policy", csp)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestBrowserFindsPlantedFaults(t *testing.T) {
	t.Parallel()
	planted := strings.Replace(
		soundPage, "</main>", `<img src="data:,"><p style="color: red">styled</p><script>inline()</script></main>`, 1,
	)
	tab := Browser(t)
	tab.Open(serve(t, "default-src 'self'; img-src data:", planted))
	axe := tab.Axe()
	if len(axe) != 1 || !strings.HasPrefix(axe[0], "image-alt (critical)") {
		t.Errorf("axe: %q, want the image without a text", axe)
	}
	csp := strings.Join(tab.CSPReports(), "\n")
	for _, want := range []string{"style-src-attr blocked inline", "script-src-elem blocked inline"} {
		if strings.Count(csp, want) != 1 {
			t.Errorf("csp: want one %q in:\n%s", want, csp)
		}
	}

	tab.Open(serve(t, "", strings.Replace(soundPage, "</main>",
		`</main><script>console.error("said", 7); console.log("fine"); setTimeout(() => { throw new Error("thrown") })</script>`,
		1)))
	console := strings.Join(tab.Console(), "\n")
	for _, want := range []string{"error: said 7", "exception: Uncaught Error: thrown"} {
		if strings.Count(console, want) != 1 {
			t.Errorf("console: want one %q in:\n%s", want, console)
		}
	}
	if strings.Contains(console, "fine") {
		t.Errorf("console: a plain log counts as an error:\n%s", console)
	}
	if got := strings.Join(tab.CSPReports(), "\n"); got != csp {
		t.Errorf("csp reports did not survive the navigation: %s", got)
	}
}

func TestBrowserEmulates(t *testing.T) {
	t.Parallel()
	url := serve(
		t, "",
		strings.Replace(
			soundPage, "</main>", `</main><script>document.getElementById("scripts").textContent = "on"</script>`, 1,
		),
	)
	tab := Browser(t)
	scripts := func() string { return Run(tab, chromedp.Text(chromedp.ID("scripts"))) }
	dark := chromedp.Evaluate[bool](`matchMedia("(prefers-color-scheme: dark)").matches`)

	tab.Open(url)
	if got := scripts(); got != "on" {
		t.Errorf("with JavaScript: %q", got)
	}
	tab.DarkScheme(true)
	if !Run(tab, dark) {
		t.Error("the dark scheme is not on")
	}
	tab.DarkScheme(false)
	if Run(tab, dark) {
		t.Error("the dark scheme is not off")
	}
	tab.Viewport(390, 844)
	if got := Run(tab, chromedp.Evaluate[int](`innerWidth`)); got != 390 {
		t.Errorf("the page is %d wide, want 390", got)
	}
	tab.JavaScript(false)
	tab.Open(url)
	if got := scripts(); got != "off" {
		t.Errorf("without JavaScript: %q", got)
	}
	if got := tab.Console(); len(got) != 0 {
		t.Errorf("console: %q", got)
	}
}

// TestTabsShareNothing sets a cookie in one tab and checks that another tab does not have it.
func TestTabsShareNothing(t *testing.T) {
	t.Parallel()
	url := serve(t, "", soundPage)
	first, second := Browser(t), Browser(t)
	first.Open(url)
	first.Do(chromedp.Evaluate[chromedp.Void](`document.cookie = "session=1"`))
	second.Open(url)
	if got := Run(second, chromedp.Evaluate[string](`document.cookie`)); got != "" {
		t.Errorf("the second tab has the cookie %q", got)
	}
}
