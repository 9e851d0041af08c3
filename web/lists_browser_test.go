package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestARowOpensWhereverItIsClicked checks the rows of Letters with the mouse. A click anywhere
// opens the letter, with Ctrl or the middle button in a new tab. Selected text and boxes open
// nothing.
func TestARowOpensWhereverItIsClicked(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	ids := h.receive("sms", 3, `{"a": "410 Gone"}`)
	tab.Open(url + "/letters")
	eventually(t, tab, `document.querySelectorAll('.is-live [data-row]').length == 3`)
	tab.Act(`window.open = u => { window.opened = (window.opened ?? 0) + (u.includes('/letters/') ? 1 : 100); }`)
	at := func(cell int) (x, y float64) {
		box := js[[]float64](tab, fmt.Sprintf(`(b => [b.x + b.width / 2, b.y + b.height / 2])(
			document.querySelectorAll('[data-row]')[1].cells[%d].getBoundingClientRect())`, cell))
		return box[0], box[1]
	}
	x, y := at(5)
	tab.Do(
		chromedp.MouseClickXY(x, y, chromedp.ButtonModifiers(chromedp.ModifierCtrl)),
		chromedp.MouseClickXY(x, y, chromedp.ButtonMiddle),
	)
	eventually(t, tab, `window.opened == 2`)
	tab.Act(`getSelection().selectAllChildren(document.querySelector('h1'));
		document.querySelectorAll('[data-row]')[1].cells[5].click()`)
	x, y = at(0)
	tab.Do(chromedp.MouseClickXY(x, y))
	eventually(t, tab, `document.querySelector('[data-bulk-count]').innerText == '1 selected'`)
	if path := js[string](tab, `location.pathname`); path != "/letters" {
		t.Errorf("selected text or a box opened %s", path)
	}
	x, y = at(3)
	tab.Do(chromedp.MouseClickXY(x, y))
	eventually(t, tab, `location.pathname.endsWith('`+string(ids[1])+`')`)
	checkConsole(t, tab)
}

// TestSpacePreviewsALetter checks that the space bar shows the letter under the cursor beside the
// list, that the preview follows the cursor, and that a second press hides it.
func TestSpacePreviewsALetter(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	ids := h.receive("sms", 3, `{"a": "410 Gone"}`)
	tab.Open(url + "/letters?q=queue:sms")
	eventually(t, tab, `document.querySelectorAll('.is-live [data-row]').length == 3`)
	shows := func(id deadletter.ID) {
		t.Helper()
		eventually(t, tab, `(x => x && x.querySelector('h2').innerText == '`+id.Short()+
			`' && x.innerText.includes('410 Gone'))(document.querySelector('[data-peek] .peek'))`)
	}
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent(" "))
	shows(ids[2])
	tab.Do(chromedp.KeyEvent("j"))
	shows(ids[1])
	if !js[bool](tab, `document.querySelector('.facets').offsetParent === null`) {
		t.Error("the facets take the room of the preview")
	}
	tab.Do(chromedp.KeyEvent(" "))
	eventually(t, tab, `document.querySelector('[data-peek]').hidden`)
	tab.Act(`document.querySelector('[data-row] [data-pick]').focus()`)
	tab.Do(chromedp.KeyEvent(" "))
	eventually(t, tab, `document.querySelector('[data-bulk-count]').innerText == '1 selected'`)
	checkConsole(t, tab)
}

// TestSelectAllThatMatch selects all letters of the page, then all matching letters, then all
// except one. The plan, the command and the operation must select the same letters.
func TestSelectAllThatMatch(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 500, "x")
	h.receive("sms", 500, "x")
	ids := h.receive("sms", 60, "x")
	tab.Open(url + "/letters?q=state:dead")
	press := func(selector string) {
		t.Helper()
		eventually(t, tab, "document.readyState == 'complete' && document.querySelector(`"+selector+"`)")
		tab.Act("document.querySelector(`" + selector + "`).click()")
	}
	says := func(selector, want string) {
		t.Helper()
		eventually(t, tab, "document.querySelector(`"+selector+"`).innerText.trim() == `"+want+"`")
	}
	press(`[data-pick-all]`)
	says(`[data-bulk-count]`, "50 selected")
	says(`[data-scope-word]`, "All 50 on this page are selected.")
	press(`[data-scope-all]`)
	says(`[data-bulk-count]`, "All 1,060 matching")
	press(`[data-row]:nth-child(2) [data-pick]`)
	says(`[data-bulk-count]`, "All 1,060 matching, except 1")
	checkConsole(t, tab)
	for _, fault := range tab.Axe() {
		t.Errorf("selection: %s", fault)
	}
	tab.Act(
		`navigator.clipboard.writeText = async t => { window.copied = t }; document.querySelector('[data-command]').click()`,
	)
	eventually(
		t, tab,
		`window.copied == "dlo letters requeue -q 'state:dead before:2026-11-20T09:01:00.000Z' --except `+
			string(ids[58])+`"`,
	)
	h.receive("sms", 1, "x") // this letter arrived after the page, so it is not selected
	press(`.bulkbar [value="requeue"]`)
	eventually(
		t, tab,
		`document.querySelector('#dlg-confirm').open && document.querySelector('#dlg-confirm h1').innerText.startsWith('Requeue ')`,
	)
	if except := js[string](
		tab, `document.querySelector('#dlg-confirm [name="except"]').value`,
	); except != string(ids[58]) {
		t.Errorf("the plan leaves out %q, not %s", except, ids[58])
	}
	tab.Do(chromedp.KeyEvent(kb.Escape))
	eventually(t, tab, `!document.querySelector('dialog[open]')`)
	tab.Do(chromedp.KeyEvent(kb.Escape))
	eventually(
		t, tab,
		`!document.querySelector('[data-pick]:checked, [data-all]:checked') && getComputedStyle(document.querySelector('.bulkbar')).display == 'none'`,
	)
	press(`[data-row] [data-pick]`)
	says(`[data-bulk-count]`, "1 selected")
}

// TestListsWithoutJavaScript checks everything in lists that does not need JavaScript: the
// selection of all matching letters, the time range, saved views and the plan.
func TestListsWithoutJavaScript(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 60, "x")
	tab.JavaScript(false)
	tab.Viewport(390, 900)
	press := func(selector string) {
		t.Helper()
		eventually(t, tab, "document.readyState == 'complete' && document.querySelector(`"+selector+"`)")
		tab.Act("document.querySelector(`" + selector + "`).click()")
	}
	tab.Open(url + "/letters?q=state:dead")
	press(`[name="range"][value="24h"]`)
	eventually(t, tab, `location.search == '?q=state%3Adead+since%3A24h'`)
	press(`[formaction="/views"]`)
	eventually(
		t, tab,
		`document.querySelector('main .menu-list .item').innerText == 'state:dead since:24h' || document.querySelector('main .menu-list .item').textContent == 'state:dead since:24h'`,
	)
	press(`[data-filters]`)
	eventually(
		t, tab, `location.hash == '#filters' && getComputedStyle(document.querySelector('#filters')).display != 'none'`,
	)
	press(`[name="toggle"][value="queue:sms"]`)
	eventually(t, tab, `decodeURIComponent(location.search).includes('queue:sms')`)
	press(`[name="scope"]`)
	if js[bool](tab, `getComputedStyle(document.querySelector('.bulkbar')).display == 'none'`) {
		t.Error("no bulk bar for all that match")
	}
	press(`.bulkbar [value="discard"]`)
	eventually(t, tab, `document.querySelector('h1').innerText == 'Discard 60 letters?'`)
	press(`[data-confirm-btn]`)
	eventually(t, tab, `location.pathname == '/operations/O-1'`)
	checkConsole(t, tab)
}
