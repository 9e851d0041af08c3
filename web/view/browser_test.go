package view

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/chromedp/chromedp"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/static"
)

// TestPagesInABrowser opens every page in Chromium, wide and narrow, in light and dark colours. axe
// must find no fault, the console must stay empty, the content security policy must block nothing,
// and no page may be wider than the screen.
func TestPagesInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it takes a browser")
	}
	t.Parallel()
	all := pages()
	for name, c := range hostilePages(400) {
		all["hostile-"+name] = c
	}
	mux := http.NewServeMux()
	mux.HandleFunc(static.Prefix, serveFile)
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write([]byte(": hello\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/page/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		page := render(t, all[strings.TrimPrefix(r.URL.Path, "/page/")])
		if r.URL.Query().Get("theme") == "dark" {
			page = strings.Replace(page, `<html lang="en"`, `<html data-theme="dark" lang="en"`, 1)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(page))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)

	fits := func(t *testing.T, tab *testenv.Tab, name, theme string, width int) {
		t.Helper()
		if wide := testenv.Run(tab, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); wide > width {
			t.Errorf("%s, %s: the page is %d px wide on a screen of %d", name, theme, wide, width)
		}
	}
	// axe-core sets inline styles. The content security policy blocks them, and the console reports
	// this. Therefore the console is checked in tabs that do not run axe-core.
	inTabs(t, "quiet", all, func(t *testing.T, tab *testenv.Tab, names []string) {
		// The widths 720 and 320 stand for browsers that zoom (WCAG 1.4.10). On a 1440 px screen
		// with 200 % zoom, the page has a width of 720 px. On a 1280 px screen with 400 % zoom, it
		// has a width of 320 px.
		widths := []int64{720, 320, 390}
		tab.LessMotion()
		for _, name := range names {
			tab.Open(server.URL + "/page/" + name + "?theme=dark")
			for _, width := range widths {
				tab.Viewport(width, 1000)
				fits(t, tab, name, "dark", int(width))
			}
			if moves := testenv.Run(tab, chromedp.Evaluate[string](moving)); moves != "" {
				t.Errorf("%s moves for who wants less motion: %s", name, moves)
			}
		}
		for _, message := range tab.Console() {
			t.Errorf("console: %s", message)
		}
		for _, violation := range tab.CSPReports() {
			t.Errorf("content security policy: %s", violation)
		}
	})
	// Each page is loaded once for both widths and both themes. The themes differ only in colours.
	// Colour transitions are finished before each check.
	inTabs(t, "axe", pages(), func(t *testing.T, tab *testenv.Tab, names []string) {
		for _, name := range names {
			if strings.HasPrefix(name, "error-") && name != "error-404" {
				continue
			}
			tab.Open(server.URL + "/page/" + name)
			for _, width := range []int{1440, 390} {
				tab.Viewport(int64(width), 1000)
				for theme, rules := range map[string][]string{"light": nil, "dark": {"color-contrast"}} {
					tab.Do(chromedp.Evaluate[chromedp.Void](`document.documentElement.dataset.theme = "` + theme + `"; document.getAnimations().forEach(a => a.finish())`))
					fits(t, tab, name, theme, width)
					for _, fault := range tab.Axe(rules...) {
						t.Errorf("%s, %s, %d px: %s", name, theme, width, fault)
					}
				}
			}
		}
	})
}

// moving is a script that lists the elements of a page that have a transition or an animation.
const moving = `[...document.querySelectorAll('*')].filter(e => {
	const s = getComputedStyle(e);
	return [s.transitionDuration, s.animationDuration].some(d => d.split(',').some(t => parseFloat(t) > 0));
}).map(e => e.tagName + '.' + e.className).slice(0, 5).join(' ')`

// tabs is the number of pages that are checked at the same time. One page keeps one processor busy.
const tabs = 4

// inTabs divides the pages among several tabs, and calls "look" in each tab.
func inTabs(t *testing.T, what string, all map[string]templ.Component, look func(t *testing.T, tab *testenv.Tab, names []string)) {
	parts := make([][]string, tabs)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		parts[i%tabs] = append(parts[i%tabs], name)
	}
	for i, names := range parts {
		t.Run(fmt.Sprintf("%s %d", what, i+1), func(t *testing.T) {
			t.Parallel()
			look(t, testenv.Browser(t), names)
		})
	}
}

// serveFile serves style sheets and scripts, as package web does in production.
func serveFile(w http.ResponseWriter, r *http.Request) {
	body, kind, ok := static.File(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Write(body)
}
