package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestALivePageOfLettersCountsNoFacets checks that an open page which asks for what has changed
// gets its rows and live parts without the facets, which are slow and not live.
func TestALivePageOfLettersCountsNoFacets(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 20, "x")
	const facet = `class="facet"`
	h.get("/letters?q=state:dead").want(t, 200, facet)
	r := httptest.NewRequest("GET", "/letters?q=state:dead", nil)
	r.Header.Set("Dlo-Live", "letters")
	got := h.do(r).want(t, 200, `id="nav"`).text
	if n := strings.Count(got, `class="rowlink`); n != 20 || strings.Contains(got, facet) {
		t.Errorf("%d rows: %.2000s", n, got)
	}
}

// TestALivePageAsksOnceASecondAtMost checks that a live page sends at most one request a second
// while many changes happen.
func TestALivePageAsksOnceASecondAtMost(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 1, "x")
	tab.OnEveryPage(
		`window.asked = []; const real = window.fetch; window.fetch = (to, options) => { if (options?.headers?.['Dlo-Live']) window.asked.push(Date.now()); return real(to, options); };`,
	)
	tab.Open(url + "/letters")
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live updates'`)
	for until := time.Now().Add(6 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		h.receive("sms", 1, "x")
	}
	eventually(t, tab, `window.asked.length >= 3 && !document.querySelector('[data-fresh]').hidden`)
	if !tab.Is(`window.asked.every((at, i, all) => i == 0 || at - all[i - 1] >= 1000)`) {
		t.Errorf("it asked at %s", js[string](tab, `JSON.stringify(window.asked)`))
	}
	checkConsole(t, tab)
}

// TestAClickOutlivesALiveUpdate holds the mouse button down over a link while the part of the page
// around it changes. The click must not be lost, and the part must be up to date after it.
func TestAClickOutlivesALiveUpdate(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("sms", 1, "x")
	tab.OnEveryPage( // as in Safari, a press does not move the focus
		`addEventListener('mousedown', ev => ev.preventDefault(), true);
		addEventListener('dlo:live', () => { window.updates = (window.updates ?? 0) + 1; }, true);`,
	)
	tab.Open(url + "/")
	eventually(t, tab, `document.querySelector('[data-live-word]').innerText == 'Live updates'`)
	at := js[[]float64](
		tab, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('#tiles a').getBoundingClientRect())`,
	)
	mouse := func(kind input.DispatchMouseEventType) {
		tab.Do(chromedp.MouseEvent(kind, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
	mouse(input.DispatchMouseEventTypeMousePressed)
	h.receive("sms", 1, "x")
	eventually(t, tab, `window.updates > 0`)
	if !tab.Is(`document.querySelector('#tiles .v').innerText == '1'`) {
		t.Error("the part was replaced below the mouse")
	}
	mouse(input.DispatchMouseEventTypeMouseReleased)
	eventually(t, tab, `location.pathname == '/letters'`)
	tab.Back()
	eventually(t, tab, `document.querySelector('#tiles .v')?.innerText == '2'`)
	checkConsole(t, tab)
}
