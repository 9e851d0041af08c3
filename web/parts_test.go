package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAPageThatIsLiveFetchesItsParts checks that an open page receives only those of its parts that
// may have changed. If the page names a kind of change that does not exist, the response must not
// be the whole page.
func TestAPageThatIsLiveFetchesItsParts(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 20, "x")
	part := func(path, kinds string) string {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Dlo-Live", kinds)
		return h.do(r).want(t, 200).text
	}
	whole := h.get("/letters?q=state:dead").want(t, 200).text
	got := part("/letters?q=state:dead", "letters")
	if !strings.Contains(got, `id="nav"`) {
		t.Errorf("the counts beside the places are missing: %.300s", got)
	}
	for _, not := range []string{"<html", "<script", `id="env"`, "rowlink", "facet"} {
		if strings.Contains(got, not) {
			t.Errorf("%s is sent again", not)
		}
	}
	if n := strings.Count(got, "data-pick/>") + strings.Count(got, "data-pick>"); n != 20 || len(got) > len(whole)/3 {
		t.Errorf("%d rows in %d bytes of %d", n, len(got), len(whole))
	}
	if status := part(
		"/letters?q=state:dead", "status",
	); !strings.Contains(status, `id="env"`) || strings.Contains(status, `id="nav"`) {
		t.Error("other parts than those that changed")
	}
	if none := part(
		"/letters?q=state:dead", "nonsense",
	); strings.Contains(none, `id="nav"`) || strings.Contains(none, "<html") {
		t.Errorf("a kind that is not known: %.200q", none)
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
