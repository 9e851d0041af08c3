package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web"
)

// visit starts a server for people and a tab that looks at it.
func visit(t *testing.T) (*house, *testenv.Tab, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	h := open(t, func(o *web.Options) { o.Hosts = nil })
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Drain()
		server.Close()
	})
	tab := testenv.Browser(t)
	tab.Viewport(1440, 1000)
	return h, tab, server.URL
}

// js evaluates an expression on the page.
func js[T any](tab *testenv.Tab, expression string) T {
	return testenv.Run(tab, chromedp.Evaluate[T](expression))
}

// eventually waits until an expression on the page is true.
func eventually(t *testing.T, tab *testenv.Tab, expression string) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if js[bool](tab, "(() => { try { return !!("+expression+") } catch { return false } })()") { // a page that is not there yet is not true yet
			return
		}
	}
	t.Fatalf("never true: %s\non %s: %.2000s", expression, js[string](tab, "location.href"), js[string](tab, "document.querySelector('main')?.innerText ?? ''"))
}

// silent fails on anything that the pages logged or that the policy blocked.
func silent(t *testing.T, tab *testenv.Tab) {
	t.Helper()
	for _, m := range tab.Console() {
		t.Errorf("console: %s", m)
	}
	for _, v := range tab.CSPReports() {
		t.Errorf("content security policy: %s", v)
	}
}

func TestRequeueByKeyboard(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 5, "x")
	tab.Open(url + "/")
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"), chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	eventually(t, tab, `document.querySelector('[data-bulk-count]').innerText == '2 selected'`)
	tab.Do(chromedp.KeyEvent("r"))
	eventually(t, tab, `document.querySelector('#dlg-confirm').open && document.querySelector('#dlg-confirm h1').innerText == 'Requeue 2 letters to the tail'`)
	if focus := js[string](tab, `document.activeElement.innerText`); focus != "Cancel" {
		t.Errorf("the focus is on %q, not on the safe button", focus)
	}
	silent(t, tab) // before axe-core, which sets styles that the policy blocks
	for _, fault := range tab.Axe() {
		t.Errorf("dialog: %s", fault)
	}
	tab.Do(chromedp.KeyEvent(kb.Escape))
	eventually(t, tab, `!document.querySelector('dialog[open]') && document.querySelectorAll('[data-pick]:checked').length == 2`)
	tab.Do(chromedp.KeyEvent("r"))
	eventually(t, tab, `document.querySelector('#dlg-confirm').open`)
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#dlg-confirm [data-confirm-btn]').click()`))
	eventually(t, tab, `location.pathname == '/operations/O-1' && document.readyState == 'complete'`)

	// The page follows the operation without being touched.
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live'`)
	h.advance()
	eventually(t, tab, `document.querySelector('#progress').innerText.includes('2 of them on their way')`)
	tab.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("l"))
	eventually(t, tab, `location.search == '?q=state%3Adead' && document.querySelectorAll('[data-row]').length == 3`)

	// New letters wait behind a link; no row moves.
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live'`)
	h.receive("sms", 1, "x")
	eventually(t, tab, `!document.querySelector('[data-fresh]').hidden && document.querySelector('#found').innerText == '4 match'`)
	if rows := js[int](tab, `document.querySelectorAll('[data-row]').length`); rows != 3 {
		t.Errorf("%d rows: the list moved", rows)
	}
}

func TestTheSameWithoutJavaScript(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 3, `{"a": "b"}`)
	tab.JavaScript(false)
	tab.Open(url + "/")
	click := func(selector string) {
		t.Helper()
		tab.Do(chromedp.Evaluate[chromedp.Void]("document.querySelector(`" + selector + "`).click()"))
	}
	if js[bool](tab, `getComputedStyle(document.querySelector('.bulkbar')).display != 'none'`) {
		t.Error("the bulk bar shows before anything is selected")
	}
	click(`[data-pick]`)
	click(`.bulkbar [value="discard"]`)
	eventually(t, tab, `document.querySelector('h1').innerText == 'Discard 1 letter?'`)
	click(`[data-confirm-btn]`)
	eventually(t, tab, `location.pathname == '/operations/O-1'`)
	h.advance()
	tab.Open(url + "/letters?q=state:dead")
	eventually(t, tab, `document.querySelectorAll('[data-row]').length == 2`)
	click(`.rowlink`)
	eventually(t, tab, `document.querySelector('.tree').innerText.includes('"b"')`)
	click(`.tabs a:nth-child(3)`)
	eventually(t, tab, `location.search.includes('tab=raw') && document.querySelector('.hex').innerText.includes('7b 22 61')`)
	click(`[data-theme-form] button`)
	eventually(t, tab, `document.documentElement.dataset.theme == 'dark' && location.search.includes('tab=raw')`)
	if js[int](tab, `[...document.querySelectorAll('[data-js]')].filter(x => !x.hidden).length`) != 0 {
		t.Error("something shows that needs JavaScript")
	}
	silent(t, tab)
}

func TestALettersTabsAndActions(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	ids := h.receive("sms", 2, `{"a": "410 Gone"}`)
	tab.Open(url + "/letters/" + string(ids[1]) + "?q=state:dead")
	tab.Do(chromedp.Evaluate[chromedp.Void](`window.same = true; document.querySelector('.tabs a:nth-child(4)').click()`))
	eventually(t, tab, `location.search.includes('tab=headers') && document.querySelector('.headers')`)
	if !js[bool](tab, `window.same === true && document.activeElement.getAttribute('aria-current') == 'page'`) {
		t.Error("a tab left the page, or lost the focus")
	}
	tab.Do(chromedp.KeyEvent("j"))
	eventually(t, tab, `location.pathname.endsWith('`+string(ids[0])+`')`)
	eventually(t, tab, `document.readyState == 'complete' && !document.querySelector('[data-theme-form]').hidden`)
	tab.Do(chromedp.KeyEvent("r"))
	eventually(t, tab, `document.querySelector('#dlg-confirm').open`)
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#dlg-confirm [data-cancel]').click()`))
	eventually(t, tab, `!document.querySelector('dialog[open]')`)
	tab.Do(chromedp.KeyEvent("?"))
	eventually(t, tab, `document.querySelector('#dlg-keys').open`)
	tab.Do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("/"))
	eventually(t, tab, `document.querySelector('#dlg-jump').open && document.activeElement.id == 'jump-in'`)
	// The protocol types the slash into the field although the page has taken the key; a keyboard does not.
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ''`))
	tab.Do(chromedp.KeyEvent("o-1"), chromedp.KeyEvent(kb.Enter))
	eventually(t, tab, `location.pathname == '/operations/O-1'`)
	eventually(t, tab, `document.querySelector('h1').innerText == 'Nothing here'`)
	var loud []string
	for _, m := range tab.Console() {
		if !strings.Contains(m, "404") { // the operation that does not exist
			loud = append(loud, m)
		}
	}
	if len(loud) > 0 {
		t.Error(loud)
	}
}
