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

// TestPagesInABrowser opens every sample in Chromium: the console must stay empty, the content
// security policy must block nothing, and no page may be wider than the narrowest screen. In each
// page that has a golden file, axe must find no fault in light colours, and no fault of contrast in
// dark ones.
func TestPagesInABrowser(t *testing.T) {
	all, address := servePages(t)
	inTabs(t, all, func(t *testing.T, tab *testenv.Tab, names []string) {
		for _, name := range names {
			tab.Viewport(narrow, 1000)
			tab.Open(address + name)
			fits(t, tab, name, narrow)
			isQuiet(t, tab, name)
			if !slices.Contains(whole, name) {
				continue
			}
			tab.Viewport(1440, 1000)
			axe(t, tab, name)
			// axe-core sets inline styles. The content security policy blocks them, and the console
			// reports this.
			tab.Forget()
		}
	})
}

// TestEveryStateInABrowser opens every sample. On a phone, axe must find no fault in either theme,
// and at any zoom, no page may be wider than the screen. Nothing may move for people who want less
// motion.
func TestEveryStateInABrowser(t *testing.T) {
	testenv.Full(t)
	all, address := servePages(t)
	inTabs(t, all, func(t *testing.T, tab *testenv.Tab, names []string) {
		tab.LessMotion()
		for _, name := range names {
			tab.Open(address + name + "?theme=dark")
			isQuiet(t, tab, name)
			if moves := testenv.Run(tab, chromedp.Evaluate[string](moving)); moves != "" {
				t.Errorf("%s moves for who wants less motion: %s", name, moves)
			}
			// The widths 720 and 320 stand for browsers that zoom (WCAG 1.4.10). On a 1440 px
			// screen with 200 % zoom, the page has a width of 720 px. On a 1280 px screen with 400
			// % zoom, it has a width of 320 px.
			for _, width := range []int{720, narrow, 390} {
				tab.Viewport(int64(width), 1000)
				fits(t, tab, name+" in dark colours", width)
			}
			if !strings.HasPrefix(name, "hostile-") {
				axe(t, tab, name)
				tab.Forget()
			}
		}
	})
}

// narrow is the width of the narrowest screen, in CSS pixels.
const narrow = 320

// servePages serves the samples, and pages with hostile text, as package web serves pages. It
// returns them and their address without the name.
func servePages(t *testing.T) (all map[string]templ.Component, address string) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it takes a browser")
	}
	t.Parallel()
	all = pages()
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
		w.Header().Set(
			"Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		)
		page := render(t, all[strings.TrimPrefix(r.URL.Path, "/page/")])
		if r.URL.Query().Get("theme") == "dark" {
			page = strings.Replace(page, `<html lang="en"`, `<html data-theme="dark" lang="en"`, 1)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(page))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)
	return all, server.URL + "/page/"
}

// fits fails the test if the current page is wider than a screen of the given width.
func fits(t *testing.T, tab *testenv.Tab, name string, width int) {
	t.Helper()
	if wide := testenv.Run(tab, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); wide > width {
		t.Errorf("%s: the page is %d px wide on a screen of %d", name, wide, width)
	}
}

// isQuiet fails the test if the current page logged anything or violated its content security
// policy.
func isQuiet(t *testing.T, tab *testenv.Tab, name string) {
	t.Helper()
	complaints := slices.Concat(tab.Console(), tab.CSPReports())
	for _, text := range complaints {
		t.Errorf("%s: console or content security policy: %s", name, text)
	}
	if len(complaints) > 0 {
		tab.Forget()
	}
}

// axe fails the test if axe finds a fault in the current page in light colours, or a fault of
// contrast in dark colours. The themes differ only in colours. Colour transitions are finished
// before each check.
func axe(t *testing.T, tab *testenv.Tab, name string) {
	t.Helper()
	for theme, rules := range map[string][]string{"light": nil, "dark": {"color-contrast"}} {
		tab.Do(chromedp.Evaluate[chromedp.Void](`document.documentElement.dataset.theme = "` + theme + `"; document.getAnimations().forEach(a => a.finish())`))
		for _, fault := range tab.Axe(rules...) {
			t.Errorf("%s, %s: %s", name, theme, fault)
		}
	}
}

// moving is a script that lists the elements of a page that have a transition or an animation.
const moving = `[...document.querySelectorAll('*')].filter(e => {
	const s = getComputedStyle(e);
	return [s.transitionDuration, s.animationDuration].some(d => d.split(',').some(t => parseFloat(t) > 0));
}).map(e => e.tagName + '.' + e.className).slice(0, 5).join(' ')`

// tabs is the number of pages that are checked at the same time. One page keeps one processor busy.
const tabs = 4

// inTabs divides the pages among several tabs, and calls "look" in each tab.
func inTabs(t *testing.T, all map[string]templ.Component, look func(t *testing.T, tab *testenv.Tab, names []string)) {
	t.Helper()
	parts := make([][]string, tabs)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		parts[i%tabs] = append(parts[i%tabs], name)
	}
	for i, names := range parts {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
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
