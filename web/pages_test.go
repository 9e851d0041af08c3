package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

func TestTheFirstPageIsWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/").to(t, "/letters?q=state%3Adead")
	h.get("/letters").to(t, "/letters?q=state%3Adead")
	h.get("/letters?q=state:dead").want(t, 200, "First run", "RabbitMQ 4.3.6", "set_policy", "dlo.dlx")
	h.receive("sms", 1, "x")
	h.get("/letters?q=state:dead").want(t, 200, "WebhookDelivery", "endpoint answered 410 Gone", "Newest 1 of 1")
}

func TestTheListPagesBothWays(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 120, "x")
	seen := map[string]bool{}
	links := func(page, rel string) string {
		_, rest, found := strings.Cut(page, `rel="`+rel+`"`)
		if !found {
			return ""
		}
		before := page[:len(page)-len(rest)]
		href := before[strings.LastIndex(before, `href="`)+len(`href="`):]
		return strings.ReplaceAll(href[:strings.IndexByte(href, '"')], "&amp;", "&")
	}
	path, pages := "/letters?q=state%3Adead", 0
	last := ""
	for path != "" {
		page := h.get(path).want(t, 200).text
		for _, part := range strings.Split(page, `name="id" value="`)[1:] {
			id := part[:36]
			if seen[id] {
				t.Fatalf("letter %s is on two pages", id)
			}
			seen[id] = true
		}
		last, path = page, links(page, "next")
		if pages++; pages > 5 {
			t.Fatal("the list does not end")
		}
	}
	if len(seen) != 120 || pages != 3 {
		t.Errorf("%d letters on %d pages", len(seen), pages)
	}
	back := h.get(links(last, "prev")).want(t, 200, "of 120").text
	if strings.Count(back, `name="id"`) != 50 {
		t.Errorf("the page before the last has %d letters", strings.Count(back, `name="id"`))
	}
}

func TestFiltersAreLinks(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.receive("email", 2, "x")
	h.receive("a b", 1, "x")
	h.get("/letters?q=state:dead+queue:sms").want(t, 200, "3 match",
		`href="/letters?q=queue%3Asms" aria-label="Remove state:dead"`, // a token without its term
		`href="/letters?q=state%3Adead+queue%3Asms%2Cemail"`,           // one more queue
		`href="/letters?q=state%3Adead" aria-current="true"`,           // the chosen queue, switched off
		`href="/letters?q=state%3Adead+queue%3Asms%2C%22a+b%22"`,       // a name that needs quotes
	)
	h.get("/letters?q=state:dead&add=queue:email").to(t, "/letters?q=state%3Adead+queue%3Aemail")
	h.get("/letters?q=state:discarded").want(t, 200, "No letter matches", "Clear filters")
	h.get("/letters?q=").want(t, 200, "6 match", "State")
}

func TestAWrongQueryIsShownWithItsPlace(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.get("/letters?q=state:daed+queue:sms").want(t, 400, "mistake at character 7", "<mark>daed</mark>", `value="state:daed queue:sms"`)
	h.get("/letters?q="+url.QueryEscape("state:dead' OR 1=1 --")).want(t, 400)
	h.get("/letters?q=state:dead&after=nonsense").want(t, 400)
	h.get("/letters?q="+strings.Repeat("x", 5000)).want(t, 400)
}

func TestJump(t *testing.T) {
	t.Parallel()
	h := open(t)
	for to, want := range map[string]string{
		"019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae": "/letters/019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae",
		"o-77":                                 "/operations/O-77",
		"G-418":                                "/letters?q=group%3AG-418",
		"queue:sms":                            "/letters?q=queue%3Asms",
		"//evil.example":                       "/letters?q=%2F%2Fevil.example",
	} {
		h.get("/jump?to="+url.QueryEscape(to)).to(t, want)
	}
}

func TestTheLetterPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 3, `{"to": "+44 7700", "answer": "410 Gone"}`)
	path := "/letters/" + string(ids[1])
	page := h.get(path+"?q=state:dead").want(t, 200, ids[1].Short(), "endpoint answered 410 Gone", "x-error-message", "Facts", `rel="next"`, `rel="prev"`, "in the error text", "410 Gone")
	if page.Header.Get("Cache-Control") != "no-store" {
		t.Error("a page with a body may be cached")
	}
	h.get(path+"?tab=json").want(t, 200, "&#34;answer&#34;")
	h.get(path+"?tab=raw").want(t, 200, "How it was read", "7b 22 74 6f")
	h.get(path+"?tab=headers").want(t, 200, "tries", "int32", "header, set by the broker", "app-id")
	h.get(path+"?tab=timeline").want(t, 200, "Rejected by a consumer of sms", "Received")
	h.get(path+"?tab=history").want(t, 200, "History")
	h.get(path+"?tab=nonsense&q=wrong").want(t, 200, "Decoded")

	for _, id := range []string{"-1", "9223372036854775808", "..%2f..%2fetc", "019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae", "%00", strings.ToUpper(string(ids[1]))[:35]} {
		h.get("/letters/"+id).want(t, 404, "Nothing here")
	}
}

func TestTheBodyIsAFileThatNoBrowserShows(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := "<script>alert(1)</script>"
	id := h.receive("sms", 1, body)[0]
	for _, path := range []string{"/letters/", "/api/v1/letters/"} {
		a := h.get(path+string(id)+"/body").want(t, 200)
		if a.text != body {
			t.Errorf("body %q", a.text)
		}
		for header, want := range map[string]string{
			"Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="letter-` + id.Short() + `.bin"`, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s: %q", header, got)
			}
		}
		if !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Error("no sandbox")
		}
	}
}

func TestFromAChoiceToAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.facts = deadletter.QueueFacts{Known: true, Exists: true, Consumers: 0, Ready: 7}
	ids := h.receive("sms", 3, "x")
	form := url.Values{"action": {"requeue"}, "id": {string(ids[0]), string(ids[1]), string(ids[0])}, "return": {"/letters?q=state%3Adead"}}
	page := h.post("/letters/confirm", form).want(t, 200, "Requeue 2 letters to the tail", "7 ready", "nobody consumes it", `href="/letters?q=state%3Adead"`, "autofocus")
	if n, _ := h.store.Operations(t.Context(), 0, 10); len(n) != 0 {
		t.Fatal("the confirm page started an operation")
	}
	_, rest, _ := strings.Cut(page.text, `name="key" value="`)
	key, _, _ := strings.Cut(rest, `"`)
	if len(key) < 20 {
		t.Fatalf("key %q", key)
	}
	go2 := url.Values{"action": {"requeue"}, "ids": {string(ids[0]) + " " + string(ids[1])}, "key": {key}, "reason": {"fixed"}}
	h.post("/operations", go2).to(t, "/operations/O-1")
	h.post("/operations", go2).to(t, "/operations/O-1") // pressed twice
	h.get("/operations/O-1").want(t, 200, "Requeue 2 letters to the tail", "fixed", "Cancel the rest", "0%")
	h.get("/operations").want(t, 200, "O-1", "1 running")

	h.advance()
	h.get("/operations/O-1").want(t, 200, "2 of them on their way")
	h.post("/operations/O-1/cancel", nil).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Cancelled", "2 cancelled, left as they were")
	h.post("/operations/O-1/cancel", nil).want(t, 409, "Not in this state")
	h.get("/operations/O-99").want(t, 404)
	h.get("/operations/zzz").want(t, 404)
	h.post("/operations/O-99/cancel", nil).want(t, 404)
}

func TestDiscardAndRestore(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 101, "x")
	var all []string
	for _, id := range ids {
		all = append(all, string(id))
	}
	form := url.Values{"action": {"discard"}, "ids": {strings.Join(all, " ")}, "key": {"k1"}}
	h.post("/letters/confirm", form).want(t, 200, "Discard 101 letters?", "Type 101 to confirm", "restored for 7 d")
	h.post("/operations", form).want(t, 400, "Nothing was discarded: type 101", "Type 101 to confirm", `value="k1"`)
	form.Set("count", "99")
	h.post("/operations", form).want(t, 400, `value="99"`)
	form.Set("count", "101")
	h.post("/operations", form).to(t, "/operations/O-1")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "101 discarded", "can be restored")
	h.post("/letters/confirm", form).want(t, 200, "None of the chosen letters can be acted on", "it is discarded")
	h.get("/letters?q=state:discarded").want(t, 200, "101 match", `value="restore"`)
	h.post("/operations", url.Values{"action": {"restore"}, "id": all[:1], "key": {"k2"}}).to(t, "/operations/O-2")
	h.advance()
	h.get("/letters?q=state:dead").want(t, 200, "1 matches")
}

func TestWrongForms(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 1, "x")[0])
	for name, form := range map[string]url.Values{
		"no letters":     {"action": {"requeue"}},
		"no action":      {"id": {id}},
		"unknown action": {"action": {"purge"}, "id": {id}},
		"no id":          {"action": {"requeue"}, "id": {"x"}},
		"long reason":    {"action": {"requeue"}, "id": {id}, "reason": {strings.Repeat("x", 501)}},
	} {
		if a := h.post("/operations", form); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	h.post("/letters/confirm", url.Values{"action": {"requeue"}, "id": {"019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae"}}).want(t, 404)
	h.post("/letters/confirm", url.Values{"action": {"requeue"}, "ids": {strings.Repeat(id+" ", 40_000)}}).want(t, 413)
	if n, _ := h.store.Operations(t.Context(), 0, 10); len(n) != 0 {
		t.Errorf("%d operations were started", len(n))
	}
}

func TestTheme(t *testing.T) {
	t.Parallel()
	h := open(t)
	a := h.post("/theme", url.Values{"theme": {"dark"}, "return": {"/operations"}})
	a.to(t, "/operations")
	cookie := a.Cookies()[0]
	if cookie.Name != "theme" || cookie.Value != "dark" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("%+v", cookie)
	}
	r := httptest.NewRequest("GET", "/operations", nil)
	r.AddCookie(cookie)
	h.do(r).want(t, 200, `<html lang="en" data-theme="dark">`)
	r = httptest.NewRequest("GET", "/operations", nil)
	r.AddCookie(&http.Cookie{Name: "theme", Value: `x" onload="y`})
	if h.do(r).want(t, 200, `<html lang="en">`); t.Failed() {
		t.Error("a foreign value of the cookie reached the page")
	}
	if a := h.post("/theme", url.Values{"theme": {"nonsense"}}); a.Cookies()[0].MaxAge >= 0 {
		t.Error("an unknown theme was kept")
	}
}

func TestNobodyIsSentAway(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, to := range []string{"//evil.example", `/\evil.example`, "https://evil.example/", "https:evil", "javascript:alert(1)", "evil", "", "/\t/evil.example", "\\\\evil"} {
		if got := h.post("/theme", url.Values{"return": {to}}).Header.Get("Location"); got != "/" {
			t.Errorf("return=%q leads to %q", to, got)
		}
		id := h.receive("sms", 1, "x")[0]
		page := h.post("/letters/confirm", url.Values{"action": {"requeue"}, "id": {string(id)}, "return": {to}}).want(t, 200).text
		if strings.Contains(page, "evil") || strings.Contains(page, "javascript:") {
			t.Errorf("return=%q is on the confirm page", to)
		}
	}
	h.post("/theme", url.Values{"return": {"/letters?q=state%3Adead"}}).to(t, "/letters?q=state%3Adead")
}

func TestABrokerThatIsDownIsABanner(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Problems = func() []web.Problem { return []web.Problem{{Title: "The disk is nearly full.", Text: "200 MiB free."}} }
	})
	h.receive("sms", 1, "x")
	h.brokers = []deadletter.BrokerStatus{
		{Name: "main", VHost: "/", Reason: "connection refused", Since: start, NextTry: start.Add(68 * time.Second), Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}}},
		{Name: "second", Connected: true, Blocked: "memory alarm", Inboxes: []deadletter.InboxStatus{{Queue: "orders_error", Reason: "it has a delivery limit"}}},
	}
	h.get("/letters?q=").want(t, 200, "Connection to broker main lost 1 min ago.", "<code>dlo.letters</code>", "Next try in 8 s.", "1 of 2 brokers connected",
		"Broker second takes no messages now.", "memory alarm", "Inbox orders_error is not read.", "it has a delivery limit", "The disk is nearly full.", "1 match")
}
