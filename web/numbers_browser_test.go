package web_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// numbered is a script that checks those links on a page that show a number of letters or groups.
// It follows each link. It returns the links that lead to a list with a different number. The
// number of a link is the first one in its text, or the one in its element [data-n].
const numbered = `(async () => {
	const number = text => { const m = text.replace(/[A-Z]-\d+/g, '').match(/(?<![\w.:-])\d[\d,]*(?![\w.:-]*\d)/); return m ? Number(m[0].replaceAll(',', '')) : NaN; };
	const listed = async href => {
		const doc = new DOMParser().parseFromString(await (await fetch(href)).text(), 'text/html');
		if (new URL(href, location).pathname === '/letters') return number(doc.querySelector('#found').textContent);
		return doc.querySelectorAll('[data-row]').length;
	};
	const out = [];
	for (const a of document.querySelectorAll('main a[href^="/letters?"], main a[href^="/triage?"]')) {
		if (a.closest('.pager, .tabs, datalist, .query, .facets') || a.matches('[rel]')) continue;
		const bar = a.querySelector('title')?.textContent.match(/([\d,]+) letters?/);
		const said = bar ? Number(bar[1].replaceAll(',', '')) : number((a.querySelector('.v, [data-n]') ?? a).textContent);
		if (Number.isNaN(said)) continue;
		const there = await listed(a.getAttribute('href'));
		out.push({text: a.textContent.replace(/\s+/g, ' '), href: a.getAttribute('href'), said, there});
	}
	window.numbers = JSON.stringify(out);
})().catch(e => { window.numbers = JSON.stringify([{text: String(e), said: -1}]); })`

// TestEveryNumberLeadsToThatMany follows each number that is a link, on each page. The link must
// lead to exactly this number of letters or groups.
func TestEveryNumberLeadsToThatMany(t *testing.T) {
	t.Parallel()
	h, tab, url := visit(t)
	h.receive("old", 4, "x")
	h.late.Add(int64(2 * time.Hour))
	h.receive("sms", 3, `{"a":1}`)
	h.receive("email", 2, "x")
	ids := h.receive("billing", 5, "x")
	h.post("/operations", map[string][]string{
		"action": {"discard"},
		"ids":    {string(ids[0]) + " " + string(ids[1])},
		"key":    {"k"},
	}).want(t, 303)
	h.advance()
	h.post("/operations", map[string][]string{"action": {"hold"}, "ids": {string(ids[2])}, "key": {"l"}}).want(t, 303)
	h.advance()
	h.patchJSON("/api/v1/groups/G-1", `{"snooze":{"for":"4h"}}`).want(t, 200)
	if err := h.store.SetBreaker(t.Context(), deadletter.Breaker{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		State:  deadletter.GuardTripped,
		Since:  start,
		Until:  start.Add(time.Minute),
		Wait:   time.Minute,
		Why:    "w",
	}, nil); err != nil {
		t.Fatal(err)
	}
	followed := 0
	for _, path := range []string{
		"/", "/?range=1h", "/?range=30d", "/triage", "/triage?tab=digest", "/triage?tab=snoozed", "/groups/G-2",
		"/groups/G-4", "/letters", "/letters?q=", "/operations", "/operations/O-1", "/operations/O-2", "/queues",
		"/schemas", "/rules", "/audit", "/letters/" + string(ids[3]),
	} {
		tab.Open(url + path)
		tab.Act(numbered)
		for until := time.Now().Add(2 * time.Minute); !tab.Is(
			"window.numbers !== undefined",
		); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: the numbers are not followed in time", path)
			}
		}
		var links []struct {
			Text, Href  string
			Said, There float64
		}
		if err := json.Unmarshal([]byte(js[string](tab, "window.numbers")), &links); err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			followed++
			if l.Said != l.There {
				t.Errorf("%s: %q leads to %s, which has %v", path, l.Text, l.Href, l.There)
			}
		}
	}
	if followed < 20 {
		t.Errorf("only %d numbers were followed", followed)
	}
	checkConsole(t, tab)
}
