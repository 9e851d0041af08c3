package web_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// cut finds what a page cuts off and has no tooltip with the whole.
const cut = `JSON.stringify([...document.querySelectorAll('main td, main td *, main li, main li *, main .clip, main .clamp')].filter(x => {
	const style = getComputedStyle(x);
	if (style.overflow !== 'hidden' || x.matches('.sr, svg, svg *') || !x.offsetParent || x.scrollWidth <= x.clientWidth + 1 && x.scrollHeight <= x.clientHeight + 1) return false;
	return !x.closest('[title]');
}).map(x => x.className + ': ' + x.textContent.trim().slice(0, 80)))`

const longQueue = "orders-eu-west-1.billing.invoices.renderer.high-priority.v2.consumer-group-17.work"

// TestWhatIsCutHasATooltip shows names and errors as real systems have them: nothing is cut off
// without a way to read it.
func TestWhatIsCutHasATooltip(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t, withDigests)
	h.failure = "com.example.very.long.package_name.of.a.company.mail.MailSendingException: " + strings.Repeat("the mail server of the customer did not answer in time; ", 9)
	ids := h.receive(longQueue, 3, `{"a":"`+strings.Repeat("long ", 60)+`"}`)
	h.failure = ""
	h.receive("sms", 2, "x")
	h.patchJSON("/api/v1/groups/G-1", `{"note":"`+strings.Repeat("a long note ", 30)+`","owner":"somebody.with.a.long.name@example.com"}`).want(t, 200)
	h.post("/operations", map[string][]string{"action": {"discard"}, "ids": {string(ids[0])}, "key": {"k"}}).want(t, 303)
	h.advance()
	for _, width := range []int64{1440, 390} {
		tab.Viewport(width, 1000)
		for _, path := range []string{"/", "/triage", "/triage?tab=digest", "/groups/G-1", "/letters", "/letters?q=", "/operations", "/operations/O-1", "/queues", "/schemas", "/rules", "/audit", "/letters/" + string(ids[1])} {
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
