package web_test

import (
	"net/url"
	"strings"
	"testing"
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
