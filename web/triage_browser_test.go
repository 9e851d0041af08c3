package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web"
)

// TestFortyGroupsByKeyboard handles forty groups with the keyboard alone. One key resolves,
// snoozes, assigns or requeues each group, until the list is empty. Another key undoes the last
// decision.
func TestFortyGroupsByKeyboard(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	for i := range 40 {
		h.receive(fmt.Sprintf("queue-%02d", i), 1, "x")
	}
	tab.Open(url + "/triage")
	rows := func(n int) {
		t.Helper()
		eventually(
			t, tab,
			fmt.Sprintf(
				`document.querySelectorAll('[data-row]').length == %d && document.querySelector('#found').innerText.startsWith('%d group')`,
				n, n,
			),
		)
	}
	rows(40)
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			tab.Do(chromedp.KeyEvent(k))
		}
	}
	press("j", "j")
	second := `[...document.querySelectorAll('[data-row]')][1]`
	eventually(
		t, tab,
		second+`.classList.contains('is-here') && document.querySelector('[data-peek] .mono').innerText == `+second+
			`.querySelector('[data-pick]').value`,
	)
	press("k", "x", "j", "x") // two groups at once
	eventually(t, tab, `document.querySelector('[data-bulk-count]').innerText == '2 selected'`)
	press("e")
	rows(38)
	eventually(t, tab, `document.querySelector('.toast').innerText.startsWith('Resolved 2 groups')`)
	press("s")
	eventually(t, tab, `document.querySelector('[data-menu="snooze"]').open && document.activeElement.name == 'for'`)
	press(kb.Tab, kb.Tab, kb.Tab, kb.Enter)
	rows(37)
	press("a")
	eventually(t, tab, `document.querySelector('[data-menu="assign"]').open && document.activeElement.name == 'owner'`)
	// The browser protocol types the key into the field, although the page has already handled the
	// key. The test deletes the text, because a real keyboard would not type it.
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ''`))
	press("ana", kb.Tab, kb.Enter)
	eventually(
		t, tab,
		`document.querySelector('.toast').innerText.startsWith('Assigned G-') && document.querySelector('.c-own [title="ana"]')`,
	)
	rows(37)   // an assigned group still needs a person
	press("a") // now the name is completed
	eventually(
		t, tab,
		`document.querySelector('[data-menu="assign"]').open && document.activeElement.name == 'owner' && [...document.activeElement.list.options].map(o => o.value).join() == 'local,ana'`,
	)
	press(kb.Escape)
	for left := 36; left >= 1; left-- {
		press("e")
		rows(left)
	}
	press("r")
	eventually(
		t, tab,
		`document.querySelector('#dlg-confirm').open && document.querySelector('#dlg-confirm h1').innerText == 'Requeue 1 letter to the tail'`,
	)
	press(kb.Escape, "e")
	eventually(
		t, tab,
		`location.pathname == '/triage' && document.querySelector('main').innerText.includes('Inbox zero') && document.querySelector('main').innerText.includes('Decided today')`,
	)
	tab.Act(`[...document.querySelectorAll('form[action="/triage/undo"] button')][0].click()`)
	eventually(
		t, tab,
		`document.readyState == 'complete' && document.querySelectorAll('[data-row]').length == 1 && document.querySelector('.note.good').innerText.includes('Undone')`,
	)
	press("j", "e")
	eventually(t, tab, `document.querySelector('main').innerText.includes('Inbox zero')`)
	checkConsole(t, tab)
}

// TestTheInboxStandsStill checks that a list does not move while somebody reads it. A link must
// announce a new group, and the key z must undo a decision.
func TestTheInboxStandsStill(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	tab.Open(url + "/triage")
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live updates'`)
	h.receive("billing", 9, "x") // the group would be the first one, because it has the most letters
	eventually(
		t, tab,
		`!document.querySelector('[data-fresh-groups]').hidden && document.querySelector('[data-fresh-count]').innerText == '1 new group' && document.querySelector('#found').innerText.startsWith('3 groups')`,
	)
	if got := js[string](
		tab, `[...document.querySelectorAll('[data-row] [data-pick]')].map(x => x.value).join(' ')`,
	); got != "G-1 G-2" {
		t.Errorf("the list moved: %s", got)
	}
	h.receive("email", 3, "x") // the rows must keep their positions, but their numbers change
	eventually(
		t, tab,
		`[...document.querySelectorAll('[data-row] .k-side .strong')].map(x => x.innerText).join(' ') == '2 4' && document.querySelector('#found').innerText.includes(', 15 letters')`,
	)
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("e"))
	eventually(
		t, tab, `document.querySelectorAll('[data-row]').length == 1 && document.querySelector('.toast [data-undo]')`,
	)
	tab.Do(chromedp.KeyEvent("z"))
	eventually(
		t, tab,
		`document.querySelectorAll('[data-row]').length == 2 && document.querySelector('.is-here [data-pick]').value == 'G-1' && document.querySelector('.toast').innerText.startsWith('Undone: Resolved G-1')`,
	)
	if got := js[string](
		tab, `[...document.querySelectorAll('[data-row] [data-pick]')].map(x => x.value).join(' ')`,
	); got != "G-1 G-2" {
		t.Errorf("after the undo the list is %s", got)
	}
	checkConsole(t, tab)
}

// TestWhatComesBackIsSeen checks two things in Triage. The panel beside the list must show new
// letters of the group under the cursor. If letters of a resolved group die again, the list must
// announce this group as new.
func TestWhatComesBackIsSeen(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	tab.Open(url + "/triage")
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live updates'`)
	tab.Do(chromedp.KeyEvent("j"))
	for n := 2; n <= 4; n++ { // the first group was there before the key was pressed
		eventually(t, tab, fmt.Sprintf(`(document.querySelector('.peek')?.innerText ?? '').includes('%d dead')`, n))
		h.receive("sms", 1, "x")
	}
	tab.Do(chromedp.KeyEvent("e"))
	eventually(
		t, tab,
		`document.querySelectorAll('[data-row]').length == 1 && document.querySelector('[data-fresh-groups]').hidden`,
	)
	h.late.Store(int64(2 * time.Minute))
	h.receive("sms", 1, "x")
	eventually(
		t, tab,
		`!document.querySelector('[data-fresh-groups]').hidden && document.querySelector('[data-fresh-count]').innerText == '1 new group'`,
	)
	checkConsole(t, tab)
}

// TestTheCursorIsFoundAgain checks that the browser's Back button leads from the page of a group to
// the row of that group. If a person leaves a menu with Esc, the cursor must stay where it was.
func TestTheCursorIsFoundAgain(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	for i := range 5 {
		h.receive(fmt.Sprintf("queue-%d", i), 5-i, "x")
	}
	tab.Open(url + "/triage")
	here := func(id string) {
		t.Helper()
		eventually(
			t, tab,
			`document.readyState == 'complete' && document.querySelector('.is-here [data-pick]').value == '`+id+
				`' && document.activeElement.closest('.is-here')`,
		)
	}
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	here("G-3")
	tab.Do(chromedp.KeyEvent(kb.Enter))
	eventually(t, tab, `location.pathname == '/groups/G-3' && document.readyState == 'complete'`)
	tab.Back()
	eventually(t, tab, `location.pathname == '/triage'`)
	here("G-3")
	tab.Do(chromedp.KeyEvent("s"))
	eventually(
		t, tab,
		`document.querySelector('[data-menu="snooze"]').open && document.querySelector('[data-bulk-count]').innerText == 'G-3 endpoint answered 410 Gone'`,
	)
	tab.Do(chromedp.KeyEvent(kb.Escape))
	here("G-3")
	if js[bool](tab, `!!document.querySelector('[data-pick]:checked')`) {
		t.Error("a key has ticked a row")
	}
	tab.Do(chromedp.KeyEvent("e"))
	here("G-4")
	eventually(
		t, tab,
		`document.querySelectorAll('[data-row]').length == 4 && document.querySelector('[data-shown]').innerText == '4 groups on this page'`,
	)
	checkConsole(t, tab)
}

// TestTriageIsAccessible checks that the pages of Triage pass axe-core at both widths and in both
// colour themes. Nothing may be wider than the screen of a phone.
func TestTriageIsAccessible(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t, func(o *web.Options) { o.Facts = someFacts })
	h.receive("sms", 3, `{"customer":{"tier":"gold"}}`)
	h.receive("a-very-long-name-of-a-queue.that.never-ends.and-goes-on-and-on", 1, "x")
	h.receive("billing", 1, "x")
	h.patchJSON("/api/v1/groups/G-3", `{"snooze":{"for":"4h","after":3},"owner":"ana maria"}`).want(t, 200)
	h.patchJSON(
		"/api/v1/groups/G-1", `{"severity":"page","note":"it is the template","ticket":"https://tickets.example/1"}`,
	).want(t, 200)
	h.postJSON("/api/v1/deploys", `{"service":"notifications","version":"1"}`).want(t, 201)
	for _, width := range []int64{1440, 390} {
		tab.Viewport(width, 1000)
		for _, dark := range []bool{false, true} {
			tab.DarkScheme(dark)
			var rules []string
			if dark { // the themes differ only in their colours
				rules = []string{"color-contrast"}
			}
			for _, path := range []string{
				"/triage", "/triage?tab=digest", "/triage?tab=snoozed", "/triage?tab=resolved", "/triage?tab=mine",
				"/triage?q=queue:nothing", "/groups/G-1", "/groups/G-3",
			} {
				tab.Open(url + path)
				if wide := js[int](tab, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
					t.Errorf("%s at %d is %d px too wide", path, width, wide)
				}
				for _, fault := range tab.Axe(rules...) {
					t.Errorf("%s at %d, dark %v: %s", path, width, dark, fault)
				}
			}
		}
	}
}

// TestInboxZeroOnAPhone checks the first tab of Triage when no letter waits for the decision of a
// person. Even on a phone, the tab must show the decisions of the day.
func TestInboxZeroOnAPhone(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 3, "x")
	h.postJSON(
		"/api/v1/groups/decisions", `{"groups":["G-1"],"snooze":{"for":"4h","after":3,"queue":true}}`,
	).want(t, 200)
	tab.Viewport(390, 1000)
	tab.Open(url + "/triage")
	eventually(t, tab, `document.querySelector('main').innerText.includes('Decided today')`)
	if wide := js[int](tab, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		t.Errorf(
			"%d px too wide: %s", wide,
			js[string](
				tab,
				`[...document.querySelectorAll('*')].filter(x => x.getBoundingClientRect().right > innerWidth + 1 && !x.closest('.tabs, .more')).map(x => x.tagName + '.' + x.className + ' ' + x.getBoundingClientRect().right).join('; ')`,
			),
		)
	}
	checkConsole(t, tab)
	for _, fault := range tab.Axe() {
		t.Error(fault)
	}
}

// TestTriageWithoutJavaScript checks that everything works with forms: a snooze with the conditions
// that end it, an undo, and a discard of a group's letters.
func TestTriageWithoutJavaScript(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	tab.JavaScript(false)
	tab.Viewport(390, 900)
	click := func(selector string) {
		t.Helper()
		eventually(t, tab, "document.readyState == 'complete' && document.querySelector(`"+selector+"`)")
		tab.Act("document.querySelector(`" + selector + "`).click()")
	}
	tab.Open(url + "/triage")
	click(`[data-pick][value="G-1"]`)
	click(`form[data-groups] [data-menu="snooze"] summary`)
	click(`form[data-groups] [name="another_queue"]`)
	click(`form[data-groups] [value="snooze"]`)
	eventually(
		t, tab,
		`document.querySelector('.note.good').innerText.includes('Snoozed G-1') && document.querySelectorAll('[data-row]').length == 1`,
	)
	click(`.note.good button`)
	eventually(t, tab, `document.querySelectorAll('[data-row]').length == 2`)
	click(`[data-row] .rowlink`)
	eventually(t, tab, `location.pathname.startsWith('/groups/G-')`)
	click(`[value="resolve"][data-do]`)
	eventually(t, tab, `document.querySelector('.note.good').innerText.includes('Resolved G-')`)
	tab.Open(url + "/triage")
	click(`[data-pick]`)
	click(`.bulkbar [value="discard"]`)
	eventually(t, tab, `document.querySelector('h1').innerText.startsWith('Discard ')`)
	click(`[data-confirm-btn]`)
	eventually(t, tab, `location.pathname == '/operations/O-1'`)
	if js[int](tab, `[...document.querySelectorAll('[data-js]')].filter(x => !x.hidden).length`) != 0 {
		t.Error("something shows that needs JavaScript")
	}
	checkConsole(t, tab)
}

// TestGroupsAreMergedInABrowser merges two of three groups with the bar of Triage. The merged group
// must leave the list, and the undo must bring it back.
func TestGroupsAreMergedInABrowser(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	for _, queue := range []string{"a", "b", "c"} {
		h.receive(queue, 1, "x")
	}
	click := func(selector string) {
		t.Helper()
		tab.Act("document.querySelector(`" + selector + "`).click()")
	}
	tab.Open(url + "/triage")
	click(`[data-pick][value="G-1"]`)
	click(`[data-do="merge"]`)
	eventually(t, tab, `document.querySelector('.toast').innerText.startsWith('Select two or more groups')`)
	click(`[data-pick][value="G-2"]`)
	click(`[data-do="merge"]`)
	eventually(t, tab, `document.querySelectorAll('[data-row]').length == 2`)
	eventually(t, tab, `document.querySelector('.toast').innerText.startsWith('Merged G-2')`)
	if js[int](tab, `[...document.querySelectorAll('[data-row].is-leaving')].length`) != 0 {
		t.Error("the group that stays looks as if it leaves")
	}
	click(`.toast button`)
	eventually(t, tab, `document.querySelectorAll('[data-row]').length == 3`)
	checkConsole(t, tab)
}

// TestTheActionsOfTriageFitOneRow checks at 1440 pixels that all actions on a selected group are in
// one row, in the bar of the list and in the preview, and that values of the preview break only at
// words.
func TestTheActionsOfTriageFitOneRow(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("email", 321, `{"type_of_plan": "acme.shop.v1.CustomerRegistered", "media": "application/protobuf"}`)
	h.receive("sms", 2, "x")
	tab.Open(url + "/triage")
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	eventually(t, tab, `document.querySelector('[data-bulk-count]').innerText == '1 selected'`)
	for _, bar := range []string{".bulkbar", ".peek form"} {
		const middles = `[...document.querySelectorAll('%s > :is(.btn, .menu, .strong)')].filter(b => b.offsetParent)
			.map(b => b.getBoundingClientRect()).map(r => Math.round((r.top + r.bottom) / 20)).join(' ')`
		got := strings.Fields(js[string](tab, fmt.Sprintf(middles, bar)))
		if len(got) < 4 || len(slices.Compact(got)) > 1 {
			t.Errorf("the actions of %s are not in one row: %v", bar, got)
		}
	}
	// a word that breaks has more than one rectangle
	const broken = `[...document.querySelectorAll('.peek .shared td')].flatMap(td => {
		const words = document.createTreeWalker(td, NodeFilter.SHOW_TEXT), found = [], range = new Range();
		for (let text; (text = words.nextNode());) for (const word of text.data.matchAll(/[^\s./:_-]+/g)) {
			range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);
			if (range.getClientRects().length > 1) found.push(word[0]);
		}
		return found; }).join(' ')`
	if got := js[string](tab, broken); got != "" {
		t.Errorf("words of the preview are broken: %s", got)
	}
	checkConsole(t, tab)
}

// TestGroupsAreMergedByKeyboard checks the key m in the list and on the page of a group, and that
// the palette has the action too.
func TestGroupsAreMergedByKeyboard(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	for _, queue := range []string{"billing", "email", "sms"} {
		h.receive(queue, 1, "x")
	}
	tab.Open(url + "/triage")
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"), chromedp.KeyEvent("m"))
	eventually(t, tab, `document.querySelector('.toast')?.innerText.startsWith('Select two or more groups')`)
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	tab.Act(`document.querySelector('[data-open="dlg-jump"]').click()`)
	tab.Do(chromedp.KeyEvent("merge"))
	eventually(t, tab, `[...document.querySelectorAll('#jump-list .choice')].some(c => c.innerText.includes('Merge'))`)
	tab.Do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	eventually(t, tab, `!document.querySelector('dialog[open]')`)
	tab.Do(chromedp.KeyEvent("m"))
	eventually(
		t, tab,
		`document.querySelectorAll('[data-row]').length == 2 && document.querySelector('.toast').innerText.startsWith('Merged ')`,
	)
	tab.Open(url + "/groups/" + js[string](tab, `document.querySelector('[data-row] [data-pick]').value`))
	if width := js[float64](
		tab, `document.querySelector('[aria-labelledby="h-history"] li').firstElementChild.getBoundingClientRect().width`,
	); width < 200 {
		t.Errorf("the text of the history is %v pixels wide", width)
	}
	tab.Do(chromedp.KeyEvent("m"))
	eventually(t, tab, `document.activeElement.id == 'd-merge' && document.activeElement.offsetParent`)
	tab.Do(chromedp.KeyEvent(kb.Tab))
	tab.Act(`document.activeElement.blur()`)
	tab.Do(chromedp.KeyEvent("a"))
	eventually(t, tab, `document.activeElement.id == 'd-owner' && document.activeElement.offsetParent`)
	checkConsole(t, tab)
}
