package system

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// reader is a person who uses the pages in a browser. Its methods press buttons, wait for texts,
// and check whether a page has faults.
type reader struct {
	t            *testing.T
	tab          *testenv.Tab
	script       bool
	console, csp int // number of messages that are already checked
	phone        bool
	checked      map[string]bool
}

// waitIn waits until a JavaScript expression is true. In the expression, `here` stands for the open
// dialog, or for the page if no dialog is open.
func (r *reader) waitIn(expression string) {
	r.t.Helper()
	waitUntil(
		r.t, r.tab,
		"document.readyState == 'complete' && (here => "+expression+
			")(document.querySelector('dialog[open]') ?? document.querySelector('main'))",
	)
}

// waitForUpdate waits until a JavaScript expression is true on a page that updates itself. If
// scripts are disabled, it reloads the page repeatedly, as a person would.
func (r *reader) waitForUpdate(expression string) {
	r.t.Helper()
	if r.script {
		within(r.t, 2*time.Minute, expression, func() bool { return r.isTrue(expression) })
		return
	}
	within(r.t, 2*time.Minute, expression, func() bool {
		if r.isTrue(expression) {
			return true
		}
		time.Sleep(time.Second / 2) // waits at least as long as a person would
		r.tab.Open(testenv.Run(r.tab, chromedp.Evaluate[string](`location.href`)))
		return false
	})
}

func (r *reader) isTrue(expression string) bool {
	r.t.Helper()
	return r.tab.Is("document.readyState == 'complete' && (" + expression + ")")
}

// waitForTexts waits until the page shows each of the given texts.
func (r *reader) waitForTexts(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.waitIn(fmt.Sprintf(`here.innerText.replace(/\s+/g, ' ').includes(%q)`, text))
	}
}

// press clicks an element that a person could click. The element or its label must be visible, and
// nothing may be in front of it.
func (r *reader) press(selector string) {
	r.t.Helper()
	r.waitIn(fmt.Sprintf(`(x => {
		if (!x || x.disabled) return false;
		x.scrollIntoView({block: 'center', behavior: 'instant'});
		const at = x.getBoundingClientRect(), hit = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
		return hit && (x.contains(hit) || x.closest('label')?.contains(hit));
	})(document.querySelector(%q))`, selector))
	r.tab.Act(fmt.Sprintf(`document.querySelector(%q).click()`, selector))
}

func (r *reader) fill(selector, text string) {
	r.t.Helper()
	r.waitIn(fmt.Sprintf(`document.querySelector(%q)`, selector))
	r.tab.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(x => { x.value = %q; x.dispatchEvent(new Event('input', {bubbles: true})) })(document.querySelector(%q))`, text, selector)))
}

// checkPage checks the current page for faults. The console must contain no message, the content
// security policy must have blocked nothing, and the page may not be wider than the screen. At the
// first call for each name, axe must find no faults in light mode and no contrast faults in dark
// mode.
func (r *reader) checkPage(name string) {
	r.t.Helper()
	if !r.isTrue(`document.documentElement.scrollWidth <= innerWidth`) {
		r.t.Errorf("%s is wider than the screen", name)
	}
	for _, m := range r.tab.Console()[r.console:] {
		if !strings.Contains(m, "status of 400") { // except for the status of a form that came back with an error
			r.t.Errorf("%s, console: %s", name, m)
		}
	}
	for _, m := range r.tab.CSPReports()[r.csp:] {
		r.t.Errorf("%s, content security policy: %s", name, m)
	}
	if !r.checked[name] {
		r.checked[name] = true
		r.tab.JavaScript(true) // axe-core uses promises, which need JavaScript; the scripts of the page were not loaded
		for _, dark := range []bool{true, false} {
			r.tab.DarkScheme(dark)
			r.waitIn(`document.getAnimations().length == 0`) // waits until the change of colours has ended
			var rules []string
			if dark { // only the colours differ between light and dark
				rules = []string{"color-contrast"}
			}
			for _, fault := range r.tab.Axe(rules...) {
				r.t.Errorf("%s, dark %v: %s", name, dark, fault)
			}
		}
		r.tab.JavaScript(r.script)
	}
	// axe-core sets styles that the content security policy blocks. The messages about these styles
	// are skipped.
	r.console, r.csp = len(r.tab.Console()), len(r.tab.CSPReports())
}

// picture takes a screenshot for the documentation if DLO_TEST_SHOTS names a folder.
func (r *reader) picture(name string) {
	if shots := os.Getenv("DLO_TEST_SHOTS"); shots != "" && r.script && !r.phone {
		r.tab.Screenshot(filepath.Join(shots, name+".png"))
	}
}

// TestTheStory does in a browser what a person does after a fix: a query, a requeue, and a look at
// the verdict. It also discards letters and undoes the discard. It runs with scripts on a wide
// screen and on a phone, and without scripts.
func TestTheStory(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	for _, c := range []struct {
		name   string
		script bool
		width  int64
	}{{"wide", true, 1440}, {"without JavaScript", false, 1440}, {"phone", true, 390}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			story(t, c.script, c.width)
		})
	}
}

func story(t *testing.T, script bool, width int64) {
	node := testenv.Broker(t)
	r := &reader{t: t, tab: testenv.Browser(t), script: script, phone: width < 1000, checked: map[string]bool{}}
	_, amqpURL := testenv.VHost(t)
	management := node.ManagementURLOf("guest:guest")
	p := newChild(
		t, amqpURL,
		fmt.Sprintf(
			"brokers: [{url: %%AMQP%%, management: %q}]\ndefault: {retry: {delays: []}}\nrequeue: {watch: 3s}\n",
			management,
		),
	)
	p.Start("")
	p.Draining()

	// The queue "email" has 125 letters, and the queue "sms" has 120. Of the letters in "email",
	// 115 concern the template. Even after the fix, two of these 115 letters still fail. They are
	// among the newest.
	var fixed atomic.Bool
	email, sms := newAudit(t, amqpURL, "email", nil), newAudit(t, amqpURL, "sms", nil)
	fresh := func(d *amqp.Delivery) bool { return d.Headers["dlo-attempt"] == nil }
	email.refuse = func(d *amqp.Delivery) bool {
		return fresh(d) || strings.Contains(string(d.Body), "beyond") && !fixed.Load()
	}
	email.work()
	sms.work()
	email.publish(125, func(i int) (string, string) {
		switch {
		case i < 10:
			return fmt.Sprintf(`{"invoice": "number %d"}`, i), fmt.Sprint(i)
		case i >= 122 && i < 124: // not the newest letter, because the selection excludes that one
			return fmt.Sprintf(`{"template": "welcome", "to": "beyond %d"}`, i), fmt.Sprint(i)
		}
		return fmt.Sprintf(`{"template": "welcome", "to": "person %d"}`, i), fmt.Sprint(i)
	})
	sms.publish(120, func(i int) (string, string) { return fmt.Sprintf(`{"text": "welcome %d"}`, i), fmt.Sprint(i) })
	eventually(t, "all letters dead and found by their words", func() bool {
		return p.letters("dead") == 245 && p.count("unindexed", "") == 0
	})

	r.tab.JavaScript(script)
	r.tab.Viewport(width, 1000)
	r.tab.Open(p.url + "/")
	r.waitForTexts("Overview", "245")
	r.picture("overview")
	r.checkPage("overview")

	// The query selects those dead letters of one queue that contain a certain word.
	r.press(`.tiles a`) // the tile with the number of dead letters
	r.waitForTexts("245 match")
	r.checkPage("letters")
	r.fill(`[name="add"]`, "welcome")
	r.press(`.query .btn-primary`)
	r.waitForTexts("235 match")
	if r.phone {
		r.press(`[data-filters]`)
		r.checkPage("filters")
	}
	r.press(`[name="toggle"][value="queue:email"]`)
	r.waitForTexts("115 match")
	query := testenv.Run(r.tab, chromedp.Evaluate[string](`new URLSearchParams(location.search).get('q')`))
	if query != "state:dead queue:email welcome" {
		t.Errorf("the query is %q", query)
	}

	// The person selects the letters on the page, then all letters that match, and then excludes
	// the newest. Without scripts, there is only a box for all letters that match.
	letters, choose := 114, func(verb string, all int) {
		t.Helper()
		if !script {
			r.press(`[name="scope"]`)
		} else {
			r.press(`[data-pick-all]`)
			r.waitIn(`document.querySelector('[data-bulk-count]').innerText == '50 selected'`)
			r.waitForTexts("Select all " + fmt.Sprint(all) + " that match")
			r.press(`[data-scope-all]`)
			r.waitIn(fmt.Sprintf(`document.querySelector('[data-bulk-count]').innerText == 'All %d matching'`, all))
			if verb == "requeue" {
				r.press(`[data-row] [data-pick]`)
				r.waitIn(fmt.Sprintf(`document.querySelector('[data-bulk-count]').innerText == 'All %d matching, except 1'`, all))
			}
		}
		r.checkPage("selection")
		r.press(`.bulkbar [value="` + verb + `"]`)
	}
	if !script {
		letters = 115
	}
	pace := func(canary, wait, rate string) {
		r.fill(`#confirm-canary`, canary)
		r.fill(`#confirm-wait`, wait)
		r.fill(`#confirm-rate`, rate)
	}
	// the API is some seconds late
	eventually(t, "the management API shows the consumer and the empty queue", func() bool {
		_, plan := p.post("/api/v1/operations", map[string]any{"action": "requeue", "q": query, "dry_run": true})
		return strings.Contains(plan, `"consumers":1,"ready":0`)
	})
	choose("requeue", 115)
	r.waitForTexts(
		fmt.Sprintf("Requeue %d letters to the tail", letters), "Sent letters cannot be recalled",
		"It starts 10 s after you confirm", fmt.Sprintf("email %d 1 0 ready none", letters),
	)
	r.checkPage("plan")

	// A mistake must be shown at its field, and nothing may start.
	pace("0", "1s", "fast")
	r.press(`[data-confirm-btn]`)
	r.waitForTexts("Nothing was requeued", "A rate is a number of letters per second above 0")
	r.waitIn(`document.activeElement.id == 'confirm-rate'`)
	r.checkPage("plan with a mistake")
	pace("0", "1s", "2")
	r.press(`[data-confirm-btn]`)
	r.waitIn(`location.pathname == '/operations/O-1'`)
	r.waitForTexts(fmt.Sprintf("Requeue %d letters to the tail", letters), "Nothing is sent yet. It begins in")
	r.press(`form[action$="/cancel"] button`)
	r.waitForUpdate(`document.querySelector('main').innerText.includes('Cancelled')`)
	r.waitForTexts(fmt.Sprintf("%d left as they were", letters))
	r.checkPage("operation, undone")
	if n := email.acceptedLetters(); n != 0 {
		t.Errorf("%d letters left although it was undone", n)
	}

	// The operation runs again, slowly and with a canary. The person pauses it, changes its rate
	// and resumes it.
	r.tab.Open(p.url + "/letters?q=" + url.QueryEscape(query))
	r.waitForTexts("115 match")
	choose("requeue", 115)
	pace("3", "1s", "2")
	r.fill(`#confirm-reason`, "the template is back")
	r.press(`[data-confirm-btn]`)
	r.waitIn(`location.pathname == '/operations/O-2'`)
	r.waitForUpdate(`document.querySelector('#progress').innerText.includes('sending at 2/s')`)
	r.press(`form[action$="/pause"] button`)
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Paused')`)
	var op answered
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("O-2 when it was paused: %v, %d letters of it arrived", op.Counts, email.acceptedLetters())
		}
	})
	// The pause also stops a letter that was released before the pause but was not yet claimed.
	stays := func() int { return op.Counts["pending"] + op.Counts["released"] }
	eventually(t, "what was on its way has arrived", func() bool {
		op = p.operation("O-2")
		return p.letters("publishing") == 0 && email.acceptedLetters() == letters-stays()
	})
	r.fill(`#rate`, "500")
	r.press(`form[action$="/rate"] button`)
	r.waitForUpdate(`document.querySelector('#pace').innerText.includes('500/s')`)
	r.waitForTexts("Paused", fmt.Sprintf("%d to go", stays()), "the template is back", "3 letters, watched for 1 s")
	r.checkPage("operation, paused")
	if n := email.acceptedLetters(); n != letters-stays() || op.Counts["pending"] == 0 {
		t.Errorf("%d letters arrived, %d to go: something left while it was paused", n, stays())
	}
	r.press(`form[action$="/resume"] button`)

	// The page shows the verdict and the letters that came back.
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Done')`)
	back := 2
	r.waitIn(fmt.Sprintf(`/^%d (quiet for 3 s|did not come back, unverified), %d came back\.$/.test(document.querySelector('.verdict .strong').innerText)`, letters-back, back))
	r.waitForTexts("Retry these 2", "2 of them came back and are here again.", "cannot be recalled")
	r.picture("operation")
	r.checkPage("verdict")
	fixed.Store(true)
	r.press(`#results form button`)
	r.waitForTexts(
		"Requeue 2 letters to the tail", "2 of them came back after people requeued them, the last time in O-",
	)
	pace("0", "1s", "100")
	r.press(`[data-confirm-btn]`)
	r.waitIn(`location.pathname == '/operations/O-3'`)
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Done')`)
	r.waitForTexts("none came back")
	if n := email.acceptedLetters(); n != letters {
		t.Errorf("%d letters arrived in the end, want %d", n, letters)
	}
	if n := sms.acceptedLetters(); n != 0 {
		t.Errorf("sms got %d letters", n)
	}

	// A discard of more than 100 letters requires the person to type the number of letters. After
	// that, the discard is undone.
	r.tab.Open(p.url + "/letters?q=" + url.QueryEscape("state:dead queue:sms"))
	r.waitForTexts("120 match")
	choose("discard", 120)
	r.waitForTexts("Discard 120 letters?", "They can be restored for 7 d", "Type 120 to confirm")
	r.fill(`#confirm-count`, "119")
	r.checkPage("discard")
	if script {
		r.waitIn(`document.querySelector('[data-confirm-btn]').disabled`)
	} else {
		r.press(`[data-confirm-btn]`)
		r.waitForTexts("Nothing was discarded", "Type 120 to discard 120 letters")
	}
	r.fill(`#confirm-count`, "120")
	r.press(`[data-confirm-btn]`)
	r.waitIn(`location.pathname == '/operations/O-4'`)
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Done')`)
	r.waitForTexts("120 discarded", "Undo: restore 120")
	r.checkPage("discarded")
	if n := p.letters("discarded"); n != 120 {
		t.Errorf("%d letters discarded", n)
	}
	r.press(`#undo form button`)
	r.waitForTexts("Restore 120 letters")
	r.press(`[data-confirm-btn]`)
	r.waitIn(`location.pathname == '/operations/O-5'`)
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Done')`)
	r.waitForTexts("Restored: 120")
	if n := p.letters("dead"); n != 245-letters {
		t.Errorf("%d letters dead in the end", n)
	}
	r.tab.Open(p.url + "/operations")
	r.waitForTexts("O-5", "O-1")
	r.checkPage("operations")
	r.tab.Open(p.url + "/audit")
	r.waitForTexts("discard", "requeue")
	r.checkPage("audit")
}
