package view

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/static"
)

// TestNodesAndBytesLeadToEachOther checks that the nodes of the tree and the bytes of the hex view
// highlight each other. This must happen when the mouse moves over one of them, when the keyboard
// moves the focus to it, and when a person clicks on it. It needs JavaScript.
func TestNodesAndBytesLeadToEachOther(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it takes a browser")
	}
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc(static.Prefix, serveFile)
	page := render(t, pages()["letter-decoded"])
	mux.HandleFunc("/letters/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(page))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	tab := testenv.Browser(t)
	tab.Viewport(1440, 900)
	tab.Open(server.URL + "/letters/x")
	lit := func(do string) string {
		t.Helper()
		return testenv.Run(
			tab,
			chromedp.Evaluate[string](
				do+`; [...document.querySelectorAll('.is-at')].map(x => x.id || x.textContent.trim()).join('|')`,
			),
		)
	}
	const over = `.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))`
	if got := lit(
		`document.getElementById('n2.0')` + over,
	); got != "n2.0|0a 10|64 61 6e 61 40 65 78 61|6d 70 6c 65 2e 63 6f 6d" &&
		got != "n2.0|0a 10  64 61 6e 61 40 65 78 61|6d 70 6c 65 2e 63 6f 6d" {
		t.Errorf("over a node: %q", got)
	}
	if got := lit(`document.querySelector('.hex a[data-n="1"]')` + over); got != "n1|10 d5 f8 02" {
		t.Errorf("over bytes: %q", got)
	}
	if got := lit(`document.querySelector('#n6').parentElement.querySelector('.to-bytes').focus()`); got == "" {
		t.Error("nothing is lit for the keyboard")
	}
	if got := lit(
		`document.querySelector('.hex a[data-n="3.1"]').click(); document.body` + over,
	); got != "n3.1|12 05|65 6e 2d 47 42" && got != "n3.1|12 05  65 6e 2d 47 42" {
		t.Errorf("after a click: %q", got)
	}
}
