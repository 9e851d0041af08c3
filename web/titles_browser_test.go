package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// cut is a script that finds texts that a page cuts off. It finds only those without a tooltip that
// contains the full text.
const cut = `JSON.stringify([...document.querySelectorAll('main td, main td *, main li, main li *, main .clip, main .clamp')].filter(x => {
	const style = getComputedStyle(x);
	if (style.overflow !== 'hidden' || x.matches('.sr, svg, svg *') || !x.offsetParent || x.scrollWidth <= x.clientWidth + 1 && x.scrollHeight <= x.clientHeight + 1) return false;
	return !x.closest('[title]');
}).map(x => x.className + ': ' + x.textContent.trim().slice(0, 80)))`

const longQueue = "orders-eu-west-1.billing.invoices.renderer.high-priority.v2.consumer-group-17.work"

// TestWhatIsCutHasATooltip checks, with realistic names and errors, that every text that is cut off
// has a tooltip.
func TestWhatIsCutHasATooltip(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.failure = "com.example.very.long.package_name.of.a.company.mail.MailSendingException: " +
		strings.Repeat("the mail server of the customer did not answer in time; ", 9)
	ids := h.receive(longQueue, 3, `{"a":"`+strings.Repeat("long ", 60)+`"}`)
	h.failure = ""
	h.receive("sms", 2, "x")
	h.patchJSON(
		"/api/v1/groups/G-1",
		`{"note":"`+strings.Repeat("a long note ", 30)+`","owner":"somebody.with.a.long.name@example.com"}`,
	).want(t, 200)
	h.post("/operations", map[string][]string{
		"action": {"discard"},
		"ids":    {string(ids[0])},
		"key":    {"k"},
	}).want(t, 303)
	h.advance()
	for _, width := range []int64{1440, 390} {
		tab.Viewport(width, 1000)
		for _, path := range []string{
			"/", "/triage", "/triage?tab=digest", "/groups/G-1", "/letters", "/letters?q=", "/operations",
			"/operations/O-1", "/queues", "/schemas", "/rules", "/audit", "/letters/" + string(ids[1]),
		} {
			tab.Open(url + path)
			var list []string
			if err := json.Unmarshal([]byte(js[string](tab, cut)), &list); err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				t.Errorf("%s at %d px: %s", path, width, c)
			}
		}
	}
}

// TestThePhoneShowsNow checks the pages on a phone. The chart of Overview must be scrolled to the
// present, at its right end. A row of Triage must say when its group was last seen. Nothing may be
// wider than the screen, and names must break only where they may.
func TestThePhoneShowsNow(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	id := string(
		h.receive(longQueue, 3, `{"exchange_of_the_template":{"content-type":"a","tenant.template_name":"b"}}`)[0],
	)
	tab.Viewport(390, 900)
	tab.Open(url + "/")
	if !tab.Is(
		`(() => { const box = document.querySelector('.chart-wide').parentElement.getBoundingClientRect(), all = [...document.querySelectorAll('.chart-wide text')]; const now = all.find(x => x.textContent === 'now').getBoundingClientRect(); return now.right <= box.right + 1 && now.left >= box.left; })()`,
	) {
		t.Error("the end of the chart is off the screen")
	}
	tab.Open(url + "/triage")
	if !tab.Is(`document.querySelector('[data-row] .phone-only time').checkVisibility()`) {
		t.Error("a row of triage does not say when it was last seen")
	}
	for _, path := range []string{
		"/", "/triage", "/letters", "/letters/" + id, "/groups/G-1", "/audit", "/operations", "/queues", "/schemas",
		"/rules",
	} {
		tab.Open(url + path)
		if wide := js[float64](tab, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %.0f px wide", path, wide)
		}
	}
	tab.Open(url + "/letters/" + id)
	if !tab.Is(
		`[...document.querySelectorAll('.tree .key')].every(k => { const lines = new Set([...k.getClientRects()].map(r => r.top)).size; return lines === 1 || k.querySelector('wbr'); })`,
	) {
		t.Error("a field's name breaks in the middle of a word")
	}
}

// TestTimesAreInUTCOrLocal checks that one button changes the times of all pages between UTC and
// local time. This includes parts that are fetched later, and the next page must remember the
// choice. The clocks of server and browser are days apart. The clock of the server must decide
// which times are today.
func TestTimesAreInUTCOrLocal(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 1, "x")
	h.late.Add(int64(3 * 60 * 60 * 1e9))
	tab.TimeZone("Asia/Tokyo")
	for range 2 {
		tab.Open(url + "/letters")
		eventually(t, tab, `document.querySelector('[data-zone-word]').checkVisibility()`)
		utc := js[string](tab, `document.querySelector('[data-row] time').dateTime`)[11:16]
		if !tab.Is(`document.querySelector('[data-zone-word]').textContent == 'local time'`) {
			eventually(t, tab, `document.querySelector('[data-row] time').textContent.endsWith('`+utc+`')`)
			tab.Act(`document.querySelector('[data-zone="other"]').click()`)
		}
		eventually(
			t, tab,
			`document.querySelector('[data-row] time').textContent.endsWith(new Date(document.querySelector('[data-row] time').dateTime).toTimeString().slice(0, 5))`,
		)
		if tab.Is(`document.querySelector('[data-row] time').textContent.endsWith('` + utc + `')`) {
			t.Error("the local time is UTC")
		}
	}
	checkConsole(t, tab)
}

// TestAgesGrow checks that ages increase while a page is open, even if nothing else changes.
func TestAgesGrow(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 1, "x")
	tab.Open(url + "/queues")
	tab.Act(
		`document.querySelector('main').insertAdjacentHTML('beforeend', '<time id="a" datetime="2026-11-20T09:00:00Z">58 s ago</time>')`,
	)
	eventually(t, tab, `document.querySelector('#a').textContent == '1 min ago'`)
}

// TestAMenuIsInSightOnAPhone checks that the whole menu is visible, even if its button is at the
// edge of the screen.
func TestAMenuIsInSightOnAPhone(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 1, "x")
	tab.Viewport(390, 500)
	tab.Open(url + "/groups/G-1")
	tab.Act(`document.querySelector('main .menu > summary').click()`)
	eventually(
		t, tab,
		`(r => r.height > 100 && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('.menu[open] > .menu-list').getBoundingClientRect())`,
	)
	eventually(
		t, tab,
		`document.elementFromPoint(195, document.querySelector('.menu[open] > .menu-list').getBoundingClientRect().bottom - 10).closest('.menu-list')`,
	)
}
