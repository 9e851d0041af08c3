package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
	"github.com/deadletteroffice/dlo/web/view"
)

func TestTheListIsWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/").want(t, 200, "First run", "set_policy")
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

func TestFiltersAreButtonsOfOneForm(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.receive("email", 2, "x")
	h.receive("a b", 1, "x")
	h.get("/letters?q=state:dead+queue:sms").want(t, 200, "3 match",
		`href="/letters?q=queue%3Asms" aria-label="Remove state:dead"`, // a token without its term
		`name="toggle" value="queue:sms" aria-pressed="true"`, `name="exclude" value="queue:email" aria-pressed="false"`,
		`value="queue:&#34;a b&#34;"`, // a name that needs quotes
	)
	h.get("/letters?q=state:discarded").want(t, 200, "No letter matches", "Clear filters")
	h.get("/letters?q=state:discarded+since:1h").want(t, 200, "Search all time", `href="/letters?q=state%3Adiscarded"`)
	h.get("/letters?q=").want(t, 200, "6 match", "State")
	h.get("/letters?q=-queue:sms").want(t, 200, "3 match", "Remove the exclusion queue:sms")
}

// A press of a button leads to the query that it asks for.
func TestNarrowing(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct{ q, press, want string }{
		{"state:dead", "toggle=queue:sms", "state:dead queue:sms"},
		{"state:dead queue:sms", "toggle=queue:email", "state:dead queue:sms,email"},
		{"queue:sms,email", "toggle=queue:sms", "queue:email"},
		{"queue:sms", "toggle=queue:sms", ""},
		{"-queue:sms", "toggle=queue:sms", "queue:sms"},
		{"state:dead", "exclude=queue:sms", "state:dead -queue:sms"},
		{"-queue:sms", "exclude=queue:email", "-queue:sms,email"},
		{"queue:sms,email", "exclude=queue:sms", "queue:email -queue:sms"},
		{"-queue:sms", "exclude=queue:sms", ""},
		{"timeout", "toggle=state:dead", "state:dead timeout"},
		{"queue:s*", "toggle=queue:sms", "queue:s*,sms"},
		{"state:dead", "toggle=queue:a+b:c", "state:dead"}, // no term of one value: nothing happens
		{"state:daed", "toggle=queue:sms", "state:daed"},
		{"state:dead", "add=queue:sms", "state:dead queue:sms"},
		{"state:dead since:7d", "range=1h", "state:dead since:1h"},
		{"state:dead since:7d before:1d age:>1h", "range=all", "state:dead"},
		{"state:dead", "from=2026-11-20T06:00&to=2026-11-20T07:30", "state:dead since:2026-11-20T06:00:00.000Z before:2026-11-20T07:30:00.000Z"},
		{"state:dead since:1h", "from=&to=", "state:dead"},
		{"since:1h", "between=2026-11-20T06:00:00Z/2026-11-20T07:00:00.5Z", "since:2026-11-20T06:00:00.000Z before:2026-11-20T07:00:00.500Z"},
	} {
		h.get("/letters?q="+url.QueryEscape(c.q)+"&"+strings.NewReplacer(":", "%3A", "/", "%2F").Replace(c.press)).to(t, "/letters?q="+url.QueryEscape(c.want))
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.receive("a b", 1, "x")
	for q, want := range map[string]string{
		"que":              `[{"text":"queue:","label":"the queue it died in"}]`,
		"state:dead -que":  `[{"text":"state:dead -queue:","label":"the queue it died in"}]`,
		"queue:s":          `[{"text":"queue:sms","label":"3 letters"}]`,
		"queue:x,a":        `[{"text":"queue:x,\"a b\"","label":"1 letter"}]`,
		`"a queue`:         `[]`,
		"severity:p":       `[{"text":"severity:page"}]`,
		"nonsense:x":       `[]`,
		"header":           `[{"text":"header.","label":"a header by its name; * asks that it is there"}]`,
		"queue:sms header": `[{"text":"queue:sms header.","label":"a header by its name; * asks that it is there"}]`,
	} {
		if got := strings.TrimSpace(h.get("/letters/complete?q="+url.QueryEscape(q)).want(t, 200).text); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if got := h.get("/letters/complete?q=que+state:dead&at=3").want(t, 200).text; !strings.HasPrefix(got, `[{"text":"queue:"`) {
		t.Errorf("at the third byte: %s", got)
	}
}

func TestSavedViews(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.post("/views", url.Values{"q": {"state:dead since:1d"}, "name": {"Needs <b>me</b>"}}).to(t, "/letters?q=state%3Adead+since%3A1d")
	h.get("/letters?q=state:held").want(t, 200, "Needs &lt;b&gt;me&lt;/b&gt;", `href="/letters?q=state%3Adead+since%3A1d"`)
	h.post("/views", url.Values{"q": {"state:held"}, "name": {"Needs <b>me</b>"}}).want(t, 409)
	h.post("/views", url.Values{"q": {"state:daed"}, "name": {"x"}}).want(t, 400)
	h.post("/views", url.Values{"q": {"state:held"}}).to(t, "/letters?q=state%3Aheld")
	h.get("/letters?q=").want(t, 200, "state:held")
	h.post("/views/1/remove", url.Values{"return": {"/letters?q=queue%3Asms"}}).to(t, "/letters?q=queue%3Asms")
	h.post("/views/1/remove", nil).want(t, 404)
	h.post("/views/x/remove", nil).want(t, 404)
}

// All that match is what was displayed: a letter that arrives after the page is not in it, nor one
// that was unticked.
func TestAllThatMatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 4, "x")
	page := h.get("/letters?q=state:dead").want(t, 200, `name="until" value="2026-11-20T09:01:00Z"`, `name="q" value="state:dead"`, "dlo letters requeue -q &#39;state:dead before:2026-11-20T09:01:00.000Z&#39;")
	if strings.Contains(page.text, `name="scope"`) {
		t.Error("all that match is offered where the page has them all")
	}
	form := url.Values{"action": {"discard"}, "scope": {"all"}, "q": {"state:dead"}, "until": {"2026-11-20T09:01:00Z"}, "except": {string(ids[0]) + " " + string(ids[1])}, "id": {string(ids[0])}}
	h.post("/letters/confirm", form).want(t, 200, "Discard 2 letters?", "2 letters matched at 09:01:00 UTC, 2 left out", `name="except" value="`+string(ids[0]))
	form.Set("key", "k")
	h.post("/operations", form).to(t, "/operations/O-1")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "2 discarded", "state:dead", "Except 2 letters", "Undo: restore 2", `value="op:O-1/done"`, "dlo letters discard -q &#39;state:dead before:2026-11-20T09:00:00.000Z&#39;", "it takes those that were left out as well")
	h.get("/letters?q=op:O-1/done").want(t, 200, "2 match")
	more := url.Values{"action": {"hold"}, "scope": {"all"}, "q": {"state:dead"}, "until": {"2026-11-20T09:01:00Z"}, "expect": {"1"}, "key": {"k2"}}
	again := h.post("/operations", more).want(t, 409, "2 letters match where 1 were shown", "Hold 2 letters", `name="expect" value="2"`)
	if strings.Contains(again.text, `value="k2"`) {
		t.Error("the refused key is used again")
	}
	for name, change := range map[string][2]string{"no instant": {"until", ""}, "an instant ahead": {"until", "2027-11-20T09:01:00Z"}, "a wrong query": {"q", "state:daed"}, "a wrong id": {"except", "x"}} {
		wrong := url.Values{"action": {"discard"}, "scope": {"all"}, "q": {"state:dead"}, "until": {"2026-11-20T09:01:00Z"}}
		wrong.Set(change[0], change[1])
		if a := h.post("/letters/confirm", wrong); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
}

// What is wrong in the form of a plan comes back in it, with everything else as it was typed.
func TestMistakesInAPlan(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 2, "x")[0])
	form := url.Values{
		"action": {"requeue"}, "id": {id}, "key": {"k"}, "canary": {"ten"}, "wait": {"2"}, "rate": {"0"}, "stop_at": {"101%"}, "first": {"-1"}, "max_depth": {"1,000"}, "to": {"other"}, "order": {"newest"}, "reason": {"because"},
	}
	h.post("/operations", form).want(t, 400, "Nothing was requeued", `value="ten" inputmode="numeric" autocomplete="off" aria-describedby="confirm-canary-wrong" aria-invalid="true"`, "A rate is a number of letters per second above 0",
		"A wait is written 30s", "from 0 to 100", "whole number of letters", `value="1,000"`, `value="other"`, `value="because"`, `<option value="newest" selected>`, `value="k"`)
	for name, value := range map[string]string{"canary": "10", "wait": "2m", "rate": "20", "stop_at": "5%", "first": "", "to": "amq.gen-x"} {
		form.Set(name, value)
	}
	h.post("/operations", form).want(t, 400, `id="confirm-to-wrong"`, "belongs to the broker", `value="amq.gen-x"`)
	form.Set("to", "")
	h.post("/operations", form).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "20/s", "watched for 2 min", "5% that came back", "1,000 ready", "newest first")

	h.post("/operations", url.Values{"action": {"requeue"}, "id": {string(h.receive("sms", 1, "x")[0])}, "try": {"1"}, "key": {"t"}}).to(t, "/operations/O-2")
	h.get("/operations/O-2").want(t, 200, "Requeue 1 letter", "<dd>none</dd>")
	h.post("/operations", url.Values{"action": {"purge"}, "id": {string(h.receive("sms", 1, "x")[0])}, "key": {"p"}}).want(t, 400, "Type 1 to purge 1 letter")
}

func TestControlOfAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 2, "x")[0])
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}, "key": {"k"}}).to(t, "/operations/O-1")
	h.post("/operations/O-1/pause", nil).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Paused", "Resume")
	h.post("/operations/O-1/rate", url.Values{"rate": {"fast"}}).want(t, 400, `value="fast" aria-invalid="true"`, "a rate is a number")
	h.post("/operations/O-1/rate", url.Values{"rate": {"0"}}).want(t, 400, "rate is above 0")
	h.post("/operations/O-1/rate", url.Values{"rate": {"7.5"}}).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "7.5/s")
	h.post("/operations/O-1/resume", nil).to(t, "/operations/O-1")
	h.post("/operations/O-1/resume", nil).want(t, 409)
	h.post("/operations/O-9/pause", nil).want(t, 404)
	h.get("/operations/O-1?result=pending").want(t, 200, `aria-current="page"`, "To go")
	h.get("/operations/O-1?result=twice").want(t, 200, "Perhaps sent twice", "None.")
	h.get("/operations/O-1?result=nonsense&after=!").want(t, 400)
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
		"G-418":                                "/groups/G-418",
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
	h.get(path+"?tab=nonsense&q=wrong:x").want(t, 200, "Decoded")

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
	h.get("/operations/O-1").want(t, 200, "Requeue 2 letters to the tail", "fixed", "Nothing is sent yet", "Undo", "0%")
	h.get("/operations").want(t, 200, "O-1", "1 not finished")

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
	h.post("/operations", form).want(t, 400, "Nothing was discarded: see the marked field", "Type 101 to discard 101 letters", "Type 101 to confirm", `value="k1"`)
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
		"unknown action": {"action": {"bury"}, "id": {id}},
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

func TestOverview(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Disk = func() string { return "18 GiB free" } })
	h.receive("sms", 3, "x")
	h.get("/").want(t, 200, "sms is failing", "Dead-lettered per 15 min", "+3 in the last 24 hours", "18 GiB free", "3 letters cannot be found by words yet", `aria-current="true">24 h`)
	h.get("/?range=7d").want(t, 200, "sms is failing", "Open group G-1", "endpoint answered 410 Gone", "24 h trend, peak 3 per hour", `aria-current="true">7 d`, "Recovered, 7 d", "state%3Adiscarded+since%3A7d")
	h.get("/?range=nonsense").want(t, 200, `aria-current="true">24 h`)
	for _, queue := range []string{"sms", "<b>", "c", "d"} {
		b := deadletter.Breaker{Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}, State: deadletter.GuardTripped, Since: start, Until: start.Add(time.Minute), Wait: time.Minute, Why: "50 of the last 50 came back"}
		if err := h.store.SetBreaker(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.get("/").want(t, 200, "Almost all retries came back: they are held back.", "Held back: sms, &lt;b&gt;, c, 1 more. Their letters wait")
	h.brokers[0] = deadletter.BrokerStatus{Name: "main", VHost: "/", Reason: "connection refused", Since: start}
	h.get("/").want(t, 200, "Broker main is not connected. What is stored here is complete.", "Look here")
}

func TestAudit(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/audit").want(t, 200, "Nothing was done yet")
	h.get("/audit?actor=x").want(t, 200, "No entry matches")
	var ids []string
	for _, id := range h.receive("sms", 3, "x") {
		ids = append(ids, string(id))
	}
	h.post("/operations", url.Values{"action": {"discard"}, "id": ids, "reason": {`=cmd("x") <b>`}, "key": {"k"}}).to(t, "/operations/O-1")
	h.get("/audit?actor=local&kind=discard&through=page&since=2026-11-20T08:00&before=2026-11-20T10:00").want(t, 200,
		"=cmd(&#34;x&#34;) &lt;b&gt;", `href="/operations/O-1"`, `value="op:O-1/done"`, `href="/audit/export?actor=local&amp;before=2026-11-20T10%3A00&amp;kind=discard`, `<option value="discard" selected>`)
	h.get("/audit?actor=lena").want(t, 200, "No entry matches")
	h.get("/audit?before=2026-11-20T08:00").want(t, 200, "No entry matches")
	export := h.get("/audit/export?kind=discard").want(t, 200, `2026-11-20T09:00:00Z,discard,local,page,O-1,3,,"'=cmd(""x"") <b>"`)
	if !strings.HasPrefix(export.Header.Get("Content-Type"), "text/csv; charset=utf-8") || !strings.HasPrefix(export.Header.Get("Content-Disposition"), "attachment") || strings.Count(export.text, "\n") != 2 {
		t.Errorf("%v\n%s", export.Header, export.text)
	}
	h.get("/audit/export?since=yesterday").want(t, 400)
	h.get("/audit?since=yesterday&actor=lena").want(t, 400, "A time is written", `value="yesterday"`, `value="lena"`)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Rules = rules.NewBook(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{Delays: []time.Duration{10 * time.Second, 100 * time.Second}}, Severity: deadletter.SeverityDigest}})
	})
	h.get("/rules").want(t, 200, "There is no file of rules: these are the defaults", "After 10 s and 1 min 50 s; then dead, severity digest.", "No redirect is saved")
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"amq.gen-x"}, "reason": {"gone"}}).want(t, 400, `value="amq.gen-x"`, "belongs to the broker", `value="gone"`, `id="rule-to-wrong"`)
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"old"}}).want(t, 400, "the same queue")
	h.post("/rules/overrides", url.Values{"queue": {""}, "to": {strings.Repeat("x", 256)}}).want(t, 400, "Name a queue", "at most 255 bytes")
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"new"}, "reason": {"renamed"}}).to(t, "/rules")
	h.get("/rules").want(t, 200, "old", "new", "renamed", `action="/rules/overrides/1/remove"`)
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"other"}}).want(t, 409, "redirected already", `value="other"`)
	h.post("/rules/overrides/1/remove", nil).to(t, "/rules")
	h.post("/rules/overrides/1/remove", nil).want(t, 404)
	h.brokers = append(h.brokers, deadletter.BrokerStatus{Name: "second", VHost: "shop", Connected: true})
	h.get("/rules").want(t, 200, "second, vhost shop")
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"new"}}).want(t, 400, "Choose the broker")
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"new"}, "place": {"second\r\nshop"}}).to(t, "/rules")
	h.get("/rules").want(t, 200, "second")
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
		o.Problems = func() []deadletter.Problem {
			return []deadletter.Problem{{Title: "The disk is nearly full.", Text: "200 MiB free."}}
		}
	})
	h.receive("sms", 1, "x")
	h.brokers = []deadletter.BrokerStatus{
		{Name: "main", VHost: "/", Reason: "connection refused", Since: start, NextTry: start.Add(68 * time.Second), Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}}},
		{Name: "second", Connected: true, Blocked: "memory alarm", Inboxes: []deadletter.InboxStatus{{Queue: "orders_error", Reason: "it has a delivery limit"}}},
	}
	h.get("/letters?q=").want(t, 200, "Connection to broker main lost 1 min ago.", "<code>dlo.letters</code>", "Next try in 8 s.", "1 of 2 brokers connected",
		"Broker second takes no messages now.", "memory alarm", "Inbox orders_error is not read.", "it has a delivery limit", "The disk is nearly full.", "1 match")
}

// TestEveryPlaceHasItsPage: what the navigation leads to is there, and its keys are different ones.
func TestEveryPlaceHasItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	keys := map[string]string{}
	for _, p := range view.Places {
		path := p.Path
		if p.Section == view.SectionLetters {
			path += "?q=" // without a query it leads to the dead ones
		}
		a := h.get(path)
		if a.StatusCode != 200 {
			t.Errorf("%s: no page; see placePages in routes.go", p.Name)
			continue
		}
		a.want(t, 200, `href="`+p.Path+`" data-key="`+p.Key+`" aria-current="page"`)
		if keys[p.Key] != "" || p.Key == "" {
			t.Errorf("%s and %s have the key %q", p.Name, keys[p.Key], p.Key)
		}
		keys[p.Key] = p.Name
	}
}

// TestOverviewSaysWhoIsToldOfProblems: the channels, or that there are none.
func TestOverviewSaysWhoIsToldOfProblems(t *testing.T) {
	t.Parallel()
	for want, channels := range map[string][]string{"problems of dlo go to oncall, team": {"oncall", "team"}, "nobody is told when dlo itself has a problem": nil} {
		h := open(t, func(o *web.Options) { o.Told = func() []string { return channels } })
		h.receive("sms", 1, "x")
		h.get("/").want(t, 200, want)
	}
}
