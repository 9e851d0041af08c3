package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web"
)

// visit starts a server and opens it in a browser tab.
func visit(t *testing.T, change ...func(*web.Options)) (*house, *testenv.Tab, string) {
	t.Helper()
	return visitThrough(t, func(h http.Handler) http.Handler { return h }, change...)
}

// visitThrough starts a server and opens it in a browser tab. A request of the tab passes through
// the handler "between" before it reaches the server.
func visitThrough(
	t *testing.T, between func(http.Handler) http.Handler, change ...func(*web.Options),
) (*house, *testenv.Tab, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it takes a browser")
	}
	h := open(t, append(change, func(o *web.Options) { o.Hosts = nil })...)
	server := httptest.NewServer(between(h))
	t.Cleanup(func() {
		h.Drain()
		server.Close()
	})
	tab := testenv.Browser(t)
	tab.Viewport(1440, 1000)
	return h, tab, server.URL
}

// js evaluates a JavaScript expression on the page.
func js[T any](tab *testenv.Tab, expression string) T {
	return testenv.Run(tab, chromedp.Evaluate[T](expression))
}

// eventually waits until a JavaScript expression is true on the page.
func eventually(t *testing.T, tab *testenv.Tab, expression string) {
	t.Helper()
	tab.Until(20*time.Second, expression)
}

// checkConsole fails the test if a page logged anything, or if the content security policy blocked
// anything.
func checkConsole(t *testing.T, tab *testenv.Tab) {
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
	tab.Open(url + "/letters")
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"), chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	eventually(t, tab, `document.querySelector('[data-bulk-count]').innerText == '2 selected'`)
	tab.Do(chromedp.KeyEvent("r"))
	eventually(
		t, tab,
		`document.querySelector('#dlg-confirm').open && document.querySelector('#dlg-confirm h1').innerText == 'Requeue 2 letters to the tail'`,
	)
	if focus := js[string](tab, `document.activeElement.innerText`); strings.Fields(focus)[0] != "Requeue" {
		t.Errorf("the focus is on %q: Enter does not requeue", focus)
	}
	checkConsole(t, tab) // must come before axe-core, which sets styles that the policy blocks
	for _, fault := range tab.Axe() {
		t.Errorf("dialog: %s", fault)
	}
	tab.Do(chromedp.KeyEvent(kb.Escape))
	eventually(
		t, tab,
		`!document.querySelector('dialog[open]') && document.querySelectorAll('[data-pick]:checked').length == 2`,
	)
	for key, want := range map[string]string{"d": "Discard 2 letters?", "h": "Hold 2 letters"} {
		tab.Do(chromedp.KeyEvent(key))
		eventually(t, tab, `document.querySelector('#dlg-confirm[open] h1')?.innerText == '`+want+`'`)
		if focus := js[string](tab, `document.activeElement.innerText`); focus != "Cancel" {
			t.Errorf("the focus is on %q, not on the safe button", focus)
		}
		tab.Do(chromedp.KeyEvent(kb.Escape))
		eventually(t, tab, `!document.querySelector('dialog[open]')`)
	}
	tab.Do(chromedp.KeyEvent("r"))
	eventually(t, tab, `document.querySelector('#dlg-confirm[open] h1')?.innerText.startsWith('Requeue')`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	eventually(t, tab, `location.pathname == '/operations/O-1' && document.readyState == 'complete'`)

	// The open page must show the progress of the operation although nobody reloads it.
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live updates'`)
	h.advance()
	eventually(t, tab, `document.querySelector('#progress').innerText.includes('2 of them on their way')`)
	tab.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("l"))
	eventually(t, tab, `location.search == '?q=state%3Adead%2Cheld' && document.querySelectorAll('[data-row]').length == 3`)

	// The list must show a link to the new letter, and none of its rows may move.
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live updates'`)
	h.receive("sms", 1, "x")
	eventually(t, tab, `!document.querySelector('[data-fresh]').hidden`)
	if rows := js[int](tab, `document.querySelectorAll('[data-row]').length`); rows != 3 {
		t.Errorf("%d rows: the list moved", rows)
	}
}

// TestTheSignOfLiveUpdatesKnowsTheBroker checks that live updates continue while the broker is
// disconnected. The page must also show that the broker is disconnected.
func TestTheSignOfLiveUpdatesKnowsTheBroker(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 1, "x")
	h.brokers = awayBrokers("main")
	tab.Open(url + "/letters")
	eventually(
		t, tab,
		`document.querySelector('[data-live-word]').innerText == 'Live updates, broker away' && document.querySelector('[data-live-state] .dot').className == 'dot warn'`,
	)
	tab.Act(`document.querySelector('#banners button').click()`)
	eventually(
		t, tab,
		`!document.querySelector('#banners button') && document.querySelector('[data-live-word]').innerText == 'Live updates' && document.querySelector('[data-live-state] .dot').className == 'dot '`,
	)
	checkConsole(t, tab)
}

func TestTheSameWithoutJavaScript(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 3, `{"a": "b"}`)
	tab.JavaScript(false)
	tab.Open(url + "/letters")
	click := func(selector string) {
		t.Helper()
		eventually(t, tab, "document.readyState == 'complete' && document.querySelector(`"+selector+"`)")
		tab.Act("document.querySelector(`" + selector + "`).click()")
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
	eventually(
		t, tab, `location.search.includes('tab=raw') && document.querySelector('.hex').innerText.includes('7b 22 61')`,
	)
	click(`[data-theme-form] button`)
	eventually(t, tab, `document.documentElement.dataset.theme == 'dark' && location.search.includes('tab=raw')`)
	if js[int](tab, `[...document.querySelectorAll('[data-js]')].filter(x => !x.hidden).length`) != 0 {
		t.Error("something shows that needs JavaScript")
	}
	checkConsole(t, tab)
}

func TestALettersTabsAndActions(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	ids := h.receive("sms", 2, `{"a": "410 Gone"}`)
	tab.Open(url + "/letters/" + string(ids[1]) + "?q=state:dead")
	tab.Act(`window.same = true; document.querySelector('.tabs a:nth-child(4)').click()`)
	eventually(t, tab, `location.search.includes('tab=headers') && document.querySelector('.headers')`)
	if !js[bool](tab, `window.same === true && document.activeElement.getAttribute('aria-current') == 'page'`) {
		t.Error("a tab left the page, or lost the focus")
	}
	tab.Do(chromedp.KeyEvent("j"))
	eventually(t, tab, `location.pathname.endsWith('`+string(ids[0])+`')`)
	eventually(t, tab, `document.readyState == 'complete' && !document.querySelector('[data-theme-form]').hidden`)
	tab.Do(chromedp.KeyEvent("r"))
	eventually(t, tab, `document.querySelector('#dlg-confirm').open`)
	tab.Act(`document.querySelector('#dlg-confirm [data-cancel]').click()`)
	eventually(t, tab, `!document.querySelector('dialog[open]')`)
	tab.Do(chromedp.KeyEvent("?"))
	eventually(t, tab, `document.querySelector('#dlg-keys').open`)
	tab.Do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("/"))
	eventually(t, tab, `document.querySelector('#dlg-jump').open && document.activeElement.id == 'jump-in'`)
	// The browser protocol types the slash into the field, although the page has already handled
	// the key. The test deletes the slash, because a real keyboard would not type it.
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ''`))
	tab.Do(chromedp.KeyEvent("o-1"), chromedp.KeyEvent(kb.Enter))
	eventually(t, tab, `location.pathname == '/operations/O-1'`)
	eventually(t, tab, `document.querySelector('h1').innerText == 'Not found'`)
	var loud []string
	for _, m := range tab.Console() {
		if !strings.Contains(m, "404") { // this operation does not exist
			loud = append(loud, m)
		}
	}
	if len(loud) > 0 {
		t.Error(loud)
	}
}

// TestTheQueryBox checks that the query box completes words, turns its last token back into text,
// remembers searches, and shows times in the time zone of the browser.
func TestTheQueryBox(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 2, "x")
	h.receive("a b", 1, "x")
	tab.Open(url + "/letters?q=" + "state:dead+-queue:sms")
	const offered = `[...document.querySelectorAll('.query .choice > .mono')].map(o => o.textContent).join(' ')`
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').focus()`))
	eventually(t, tab, offered+`.includes('queue:') && document.querySelector('[data-query]').ariaExpanded == 'true'`)
	tab.Do(chromedp.KeyEvent("qu"))
	eventually(t, tab, offered+` == 'queue:'`)
	// accepts the name of a field, after which the values of this field are offered
	tab.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Tab))
	eventually(
		t, tab, `document.querySelector('[data-query]').value == 'queue:' && `+offered+`.includes('queue:"a b"')`,
	)
	tab.Do(chromedp.KeyEvent(kb.Escape))
	eventually(t, tab, offered+` == ''`)
	tab.Do(chromedp.KeyEvent("s"))
	eventually(
		t, tab, offered+` == 'queue:sms' && document.querySelector('.query .choice .push').textContent == '2 letters'`,
	)
	tab.Do(
		chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').value = ''`),
		chromedp.KeyEvent("state:dead header."),
	)
	eventually(t, tab, offered+`.includes('state:dead header.x-error-message:')`)
	tab.Do(
		chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').value = ''`),
		chromedp.KeyEvent(kb.Backspace),
	)
	eventually(
		t, tab,
		`document.querySelector('[data-query]').value == '-queue:sms' && document.querySelectorAll('.token').length == 1`,
	)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	eventually(t, tab, `location.search == '?q=state%3Adead+-queue%3Asms' && document.readyState == 'complete'`)
	// The query box shows each term of the query as a token. The Backspace key turns the last token
	// back into text, and the test deletes this text. The term must stay removed when the next
	// token is turned back into text.
	clear := chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').value = ''`)
	tab.Do(
		chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').focus()`),
		chromedp.KeyEvent(kb.Backspace), clear, chromedp.KeyEvent(kb.Backspace), clear, chromedp.KeyEvent("queue:sms"),
		chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Enter),
	)
	eventually(t, tab, `location.search == '?q=queue%3Asms' && document.readyState == 'complete'`)
	tab.Open(url + "/audit")
	tab.Do(
		chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').focus()`),
		chromedp.KeyEvent("-who:dlo action:res"),
	)
	eventually(t, tab, offered+`.includes('-who:dlo action:resolved')`)
	tab.Open(url + "/letters?q=queue:sms")
	eventually(
		t, tab, `document.querySelector('[data-recent] li:nth-child(1) a').textContent == 'state:dead -queue:sms'`,
	)
	tab.Act(
		`document.querySelector('.query .menu summary').click(); document.querySelector('[data-zone="local"]').click()`,
	)
	eventually(
		t, tab,
		`document.cookie.includes('zone=local') && document.querySelector('[data-zone-word]').textContent == 'local time'`,
	)
	tab.Act(
		`document.querySelector('#from').value = '2026-11-20T08:00'; document.querySelector('#from').form.querySelector('.btn-primary').click()`,
	)
	eventually(
		t, tab, `decodeURIComponent(location.search).includes('since:' + new Date('2026-11-20T08:00').toISOString())`,
	)
	checkConsole(t, tab)

	tab.Viewport(390, 900)
	tab.Open(url + "/letters?q=queue:sms")
	tab.Act(`document.querySelector('[data-filters]').click()`)
	eventually(
		t, tab,
		`document.querySelector('#dlg-filters').open && document.querySelector('#filters').getBoundingClientRect().height > 100`,
	)
	checkConsole(t, tab)
	for _, fault := range tab.Axe() {
		t.Errorf("filters: %s", fault)
	}
	tab.Do(chromedp.KeyEvent(kb.Escape))
	eventually(
		t, tab,
		`!document.querySelector('dialog[open]') && document.activeElement.matches('[data-filters]') && document.querySelector('.cols-facets > #filters')`,
	)
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-query]').focus()`))
	eventually(t, tab, offered+`.includes('queue:')`)
	for _, fault := range tab.Axe() {
		t.Errorf("completion: %s", fault)
	}
}

// TestThePalette checks that the palette finds everything that has a name, with the keyboard alone.
// It must also offer the actions of the page.
func TestThePalette(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	id := h.receive("sms.retry", 2, "x")[0]
	h.indexed()
	found := func(text, want string) {
		t.Helper()
		tab.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		// pages
		eventually(
			t, tab,
			`document.querySelector('#dlg-jump').open && document.querySelector('#jump-in').value == '' &&
			document.querySelectorAll('#jump-list .choice').length >= 8`,
		)
		tab.Do(chromedp.KeyEvent(text))
		eventually(
			t, tab,
			`[...document.querySelectorAll('#jump-list .choice')].some(c => c.innerText.replace(/\s+/g, ' ').startsWith(`+"`"+want+"`"+`))`,
		)
	}
	tab.Open(url + "/")
	found(id.Short(), "Open "+id.Short())
	tab.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	eventually(t, tab, `location.pathname == '/letters/`+string(id)+`'`)
	tab.Open(url + "/")
	found("gone", "Group G-1 endpoint answered 410 Gone")
	tab.Open(url + "/")
	found("retry", "Queue sms.retry")
	tab.Open(url + "/")
	found("audit", "Page Audit log")
	tab.Open(url + "/triage")
	found("resol", "Do Resolve")
	// the earlier results are not shown any more
	eventually(t, tab, `document.querySelector('#jump-list .choice').innerText.includes('Resolve')`)
	tab.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Tab))
	eventually(t, tab, `document.querySelector('main').innerText.includes('Resolved G-1')`)
	checkConsole(t, tab)
	found("audit", "Page Audit log")
	for _, fault := range tab.Axe() {
		t.Errorf("palette: %s", fault)
	}
}

// tryMenus is an expression that opens each visible menu of a page, one after the other. Its value
// lists the names of the menus, and a fault for each menu that moves or resizes another element, is
// not whole in the window, or opens away from its button.
const tryMenus = `(() => {
	const names = [], faults = [], box = e => e.getBoundingClientRect();
	const at = e => { const b = box(e); return [b.x, b.y, b.width, b.height].map(Math.round).join(' '); };
	const others = [...document.body.querySelectorAll('*')].filter(e => !e.closest('.menu-list'));
	for (const menu of [...document.querySelectorAll('details.menu')].filter(m => m.checkVisibility())) {
		const button = menu.querySelector('summary'), list = menu.querySelector('.menu-list'), was = others.map(at);
		const name = button.innerText.trim().replace(/\s+/, ' ') || button.ariaLabel;
		button.click();
		const moved = others.filter((e, i) => at(e) !== was[i]), b = box(button), l = box(list);
		const where = ', list ' + at(list) + ', button ' + at(button) + ', window ' + innerWidth;
		if (moved.length) faults.push(name + ' moves ' + moved.length + ', first ' + moved[0].cloneNode().outerHTML);
		if (!list.checkVisibility() || l.left < 0 || l.top < 0 || l.right > innerWidth) faults.push(name + ' is cut' + where);
		const seen = x => l.top + 6 > innerHeight || list.contains(document.elementFromPoint(x, l.top + 6));
		if (!seen(l.left + 6) || !seen(l.right - 6)) faults.push(name + ' is under something' + where);
		const gap = Math.min(Math.abs(b.top - l.bottom), Math.abs(l.top - b.bottom));
		const away = gap > 8 || l.right < b.left || l.left > b.right;
		if (away && getComputedStyle(list).position != 'fixed') faults.push(name + ' opens away from its button' + where);
		button.click();
		names.push(name);
	}
	return {names, faults};
})()`

// TestAMenuMovesNothing opens every menu of the pages with menus, at the widths of a phone, a
// tablet, and a narrow and a wide window. Everything else must stay where it is, and the list must
// open at its button. On phones and tablets, the list is at the bottom of the window.
func TestAMenuMovesNothing(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	id := h.receive("sms", 3, "x")[1]
	const ofLetters = "?, Saved views, Save view, CLI, Export, All time, Sort: Newest first"
	for _, page := range []struct{ path, tick, menus string }{
		{"/letters?q=state:dead", "", ofLetters},
		{"/letters?q=state:dead", "[data-pick]", ofLetters + ", More actions"},
		{"/letters/" + string(id) + "?q=state:dead", "", "?, Copy, More actions"},
		{"/groups/G-1", "", "?, Snooze"},
		{"/triage", "[data-pick]", "?, Snooze, Assign"},
	} {
		for _, width := range []int64{390, 768, 900, 1440} {
			tab.Viewport(width, 900)
			tab.Open(url + page.path)
			if page.tick != "" {
				tab.Act("document.querySelector(`" + page.tick + "`).click()")
			}
			got := js[struct{ Names, Faults []string }](tab, tryMenus)
			if names := strings.Join(got.Names, ", "); !strings.HasPrefix(names, page.menus) {
				t.Errorf("%s at %d px has the menus %s, want %s", page.path, width, names, page.menus)
			}
			for _, fault := range got.Faults {
				t.Errorf("%s at %d px: %s", page.path, width, fault)
			}
		}
	}
	checkConsole(t, tab)
}

// TestRetriesArePausedByKeyboard checks that retries can be paused and resumed with the keyboard
// alone, on a phone, and without JavaScript.
func TestRetriesArePausedByKeyboard(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 2, "x")
	tab.Viewport(390, 1000)
	enter := func(selector string) {
		t.Helper()
		eventually(t, tab, "document.readyState == 'complete' && document.querySelector(`"+selector+"`)")
		tab.Act("document.querySelector(`" + selector + "`).focus()")
		tab.Do(chromedp.KeyEvent(kb.Enter))
	}
	pause := func(where, of string) {
		t.Helper()
		tab.Open(url + where)
		enter(`summary[aria-label="Pause the retries of ` + of + `"]`)
		eventually(t, tab, `document.querySelector('details[open] input[name="reason"]')`)
		tab.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("the gateway is down"), chromedp.KeyEvent(kb.Enter))
		eventually(t, tab, `document.querySelector('main')?.innerText.includes('by you (no sign-in): the gateway is down')`)
	}
	resume := func(of string) {
		t.Helper()
		enter(`button[aria-label="Resume the retries of ` + of + `"]`)
		eventually(
			t, tab,
			`document.readyState == 'complete' && !document.querySelector('main').innerText.includes('the gateway is down')`,
		)
	}
	for _, scripts := range []bool{true, false} {
		tab.JavaScript(scripts)
		pause("/queues", "sms")
		resume("sms")
		pause("/letters?q=group:G-1", "group G-1")
		if got := js[string](tab, "location.pathname + location.search"); got != "/letters?q=group:G-1" {
			t.Errorf("the list is lost: %s", got)
		}
		tab.Open(url + "/letters?q=")
		if scripts {
			tab.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("q"))
		} else {
			tab.Open(url + "/queues")
		}
		eventually(
			t, tab,
			`location.pathname == '/queues' && document.querySelector('main')?.innerText.includes('1 group held back')`,
		)
		enter(`#all-queues td summary:not([aria-label])`)
		resume("group G-1")
	}
	checkConsole(t, tab)
}
