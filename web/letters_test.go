package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestTheListIsWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/").want(t, 200, "Three steps to the first letter", "set_policy")
	h.get("/letters").redirectsTo(t, "/letters?q=")
	h.get("/letters?q=").want(
		t, 200, "Three steps to the first letter", "RabbitMQ 4.3.6", "set_policy", "dlo.dlx",
	)
	h.receive("sms", 1, "x")
	h.get("/letters").redirectsTo(t, "/letters?q=state%3Adead%2Cheld")
	h.get("/letters?q=state:dead,held").want(
		t, 200, "WebhookDelivery", "endpoint answered 410 Gone", "Newest 1 of 1", "Dead and held letters.",
		`href="/letters?q=">Show all states</a>`,
	)
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
		`href="/letters?q=queue%3Asms" aria-label="Remove state:dead"`, // the link to the query without this token
		`name="toggle" value="queue:sms" aria-pressed="true"`,
		`name="exclude" value="queue:email" aria-pressed="false"`,
		`value="queue:&#34;a b&#34;"`, // a name that must be in quotes
	)
	h.get("/letters?q=state:discarded").want(t, 200, "No letters match", "Clear filters")
	h.get("/letters?q=state:discarded+since:1h").want(t, 200, "Search all time", `href="/letters?q=state%3Adiscarded"`)
	h.get("/letters?q=").want(t, 200, "6 match", "State")
	h.get("/letters?q=-queue:sms").want(t, 200, "3 match", "Remove the exclusion queue:sms")
}

// TestNarrowing checks that each button leads to the query that it stands for.
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
		// the term does not have exactly one value, so nothing happens
		{"state:dead", "toggle=queue:a+b:c", "state:dead"},
		{"state:daed", "toggle=queue:sms", "state:daed"},
		{"state:dead", "add=queue:sms", "state:dead queue:sms"},
		{"state:dead since:7d", "range=1h", "state:dead since:1h"},
		{"state:dead since:7d before:1d age:>1h", "range=all", "state:dead"},
		{
			"state:dead", "from=2026-11-20T06:00&to=2026-11-20T07:30",
			"state:dead since:2026-11-20T06:00:00.000Z before:2026-11-20T07:30:00.000Z",
		},
		{"state:dead since:1h", "from=&to=", "state:dead"},
		{
			"since:1h", "between=2026-11-20T06:00:00Z/2026-11-20T07:00:00.5Z",
			"since:2026-11-20T06:00:00.000Z before:2026-11-20T07:00:00.500Z",
		},
	} {
		h.get(
			"/letters?q="+url.QueryEscape(c.q)+"&"+strings.NewReplacer(":", "%3A", "/", "%2F").Replace(c.press),
		).redirectsTo(t, "/letters?q="+url.QueryEscape(c.want))
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.receive("a b", 1, "x")
	for q, want := range map[string]string{
		"que":                     `[{"text":"queue:","label":"the queue it died in"}]`,
		"state:dead -que":         `[{"text":"state:dead -queue:","label":"the queue it died in"}]`,
		"queue:s":                 `[{"text":"queue:sms","label":"3 letters"}]`,
		"queue:x,a":               `[{"text":"queue:x,\"a b\"","label":"1 letter"}]`,
		`"a queue`:                `[]`,
		"severity:p":              `[{"text":"severity:page"}]`,
		"nonsense:x":              `[]`,
		"header":                  `[{"text":"header.","label":"a header by its name; * means that the letter has it"}]`,
		"header.x-e":              `[{"text":"header.x-error-message:","label":"e.g. endpoint answered 410 Gone"}]`,
		"header.x-error-message:": `[{"text":"header.x-error-message:\"endpoint answered 410 Gone\""}]`,
		"queue:sms header":        `[{"text":"queue:sms header.","label":"a header by its name; * means that the letter has it"}]`,
	} {
		if got := strings.TrimSpace(h.get("/letters/complete?q="+url.QueryEscape(q)).want(t, 200).text); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if got := h.get(
		"/letters/complete?q=que+state:dead&at=3",
	).want(t, 200).text; !strings.HasPrefix(got, `[{"text":"queue:"`) {
		t.Errorf("at the third byte: %s", got)
	}
}

func TestSavedViews(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.post("/views", url.Values{
		"q":    {"state:dead since:1d"},
		"name": {"Needs <b>me</b>"},
	}).redirectsTo(t, "/letters?q=state%3Adead+since%3A1d")
	h.get("/letters?q=state:held").want(
		t, 200, "Needs &lt;b&gt;me&lt;/b&gt;", `href="/letters?q=state%3Adead+since%3A1d"`,
	)
	h.post("/views", url.Values{"q": {"state:held"}, "name": {"Needs <b>me</b>"}}).want(t, 409)
	h.post("/views", url.Values{"q": {"state:daed"}, "name": {"x"}}).want(t, 400)
	h.post("/views", url.Values{"q": {"state:held"}}).redirectsTo(t, "/letters?q=state%3Aheld")
	h.get("/letters?q=").want(t, 200, "state:held")
	h.post("/views/1/remove", url.Values{"return": {"/letters?q=queue%3Asms"}}).redirectsTo(t, "/letters?q=queue%3Asms")
	h.post("/views/1/remove", nil).want(t, 404)
	h.post("/views/x/remove", nil).want(t, 404)
}

func TestAWrongQueryIsShownWithItsPlace(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.get("/letters?q=state:daed+queue:sms").want(
		t, 400, "error at character 7", "<mark>daed</mark>", `value="state:daed queue:sms"`,
	)
	h.get("/letters?q="+url.QueryEscape("state:dead' OR 1=1 --")).want(t, 400)
	h.get("/letters?q=state:dead&after=nonsense").want(t, 400)
	h.get("/letters?q="+strings.Repeat("x", 5000)).want(t, 400)
}

func TestJump(t *testing.T) {
	t.Parallel()
	h := open(t)
	for to, want := range map[string]string{
		"019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae": "/letters?q=019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae",
		"o-77":                                 "/operations/O-77",
		"G-418":                                "/groups/G-418",
		"queue:sms":                            "/letters?q=queue%3Asms",
		"//evil.example":                       "/letters?q=%2F%2Fevil.example",
	} {
		h.get("/jump?to="+url.QueryEscape(to)).redirectsTo(t, want)
	}
}

// TestAnIDJumps checks every box that accepts a query. The id of a letter, a group or an operation
// must lead to the page of that object. If two letters share a short id, it must lead to a list of
// both.
func TestAnIDJumps(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.receive("sms", 1, "x")[0]
	h.indexed()
	h.post("/operations", url.Values{
		"action": {"hold"},
		"id":     {string(id)},
		"key":    {"k"},
	}).redirectsTo(t, "/operations/O-1")
	for text, want := range map[string]string{
		string(id): "/letters/" + string(id), strings.ToUpper(string(id)): "/letters/" + string(id),
		id.Short(): "/letters/" + string(id), " " + id.Short() + " ": "/letters/" + string(id),
		"g-1": "/groups/G-1", "O-1": "/operations/O-1",
	} {
		h.get("/jump?to="+url.QueryEscape(text)).redirectsTo(t, want)
		h.get("/letters?q=state:dead&add="+url.QueryEscape(text)).redirectsTo(t, want)
	}
	for _, text := range []string{"G-9", "O-9"} {
		h.get("/letters?q=&add="+text).redirectsTo(t, "/letters?q="+text)
	}
	for text, words := range map[string]string{
		"deadbeef": "deadbeef", "0199aaaa-5b1e-7ac0-9d3f-44e2a6b18c20": "0199aaaa-5b1e-7ac0-9d3f-44e2a6b18c20",
		"1": "1", "x y": "x+y",
	} {
		h.get("/jump?to="+url.QueryEscape(text)).redirectsTo(t, "/letters?q="+words)
		h.get("/letters?q=state:dead&add="+url.QueryEscape(text)).redirectsTo(t, "/letters?q=state%3Adead+"+words)
	}
}

// TestAListHasAnOrder checks that "sort:" orders the list. The menu and the column headers must
// link to other orders. The links to the next and the previous page must keep the order.
func TestAListHasAnOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	small := h.receive("sms", 1, "x")[0]
	large := h.receive("sms", 1, strings.Repeat("x", 1000))[0]
	last := h.receive("sms", 1, "xx")[0]
	for q, want := range map[string][]deadletter.ID{
		"state:dead":               {last, large, small},
		"state:dead sort:received": {last, large, small},
		"state:dead sort:oldest":   {small, large, last},
		"state:dead sort:size":     {large, last, small},
		"state:dead sort:attempts": {last, large, small},
		"sort:died":                {last, large, small},
		"sort:due":                 {},
	} {
		page := h.get("/letters?q="+url.QueryEscape(q)).want(t, 200, "Newest first", "Largest first")
		at := 0
		for _, id := range want {
			i := strings.Index(page.text[at:], `name="id" value="`+string(id)+`"`)
			if i < 0 {
				t.Errorf("%s: %s is missing, or not in its place", q, id)
				break
			}
			at += i
		}
	}
	h.get("/letters?q=state:dead").want(
		t, 200, `aria-sort="descending"`, `href="/letters?q=state%3Adead+sort%3Aoldest"`,
		`href="/letters?q=state%3Adead+sort%3Asize"`,
	)
	h.get("/letters?q=state:dead+sort:size").want(
		t, 200, `<caption class="sr">Letters, largest first</caption>`, `href="/letters?q=state%3Adead"`,
	)
	h.get("/letters/"+string(large)+"?q=sort:size").want(t, 200, "/letters/"+string(last)+"?q=sort%3Asize")
	h.get("/api/v1/letters?order=size&limit=1").want(t, 200, string(large))
	h.get("/api/v1/letters?q=sort:oldest&limit=1").want(t, 200, string(small))
	h.get("/api/v1/letters?order=loudest").want(t, 400, "order: expected value to be one of")
	h.get("/triage?q=sort:size").want(t, 400)
}

// TestThePaletteOffersWhatHasTheText checks that the palette has a link for each kind of match. It
// must show only a few matches of each kind.
func TestThePaletteOffersWhatHasTheText(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.receive("sms", 1, "x")[0]
	h.indexed()
	h.post("/views", url.Values{"name": {"Gone letters"}, "q": {"error:*Gone*"}})
	for text, want := range map[string][]string{
		"": {
			`{"kind":"Page","text":"Overview","link":"/","key":"g h"}`, `{"kind":"View","text":"Gone letters"`,
		},
		id.Short(): {
			`[{"kind":"Open","text":"` + id.Short() + `","link":"/letters/` + string(id) + `"}`, `{"kind":"Search"`,
		},
		"gone": {
			`{"kind":"View","text":"Gone letters"`,
			`{"kind":"Group","text":"G-1 endpoint answered 410 Gone","label":"sms","link":"/groups/G-1"}`,
			`{"kind":"Search","text":"gone","label":"in all letters","link":"/letters?q=gone"}`,
		},
		"SM":      {`{"kind":"Queue","text":"sms","label":"1 letter","link":"/letters?q=queue%3Asms"}`},
		"webhook": {`{"kind":"Type","text":"acme.hooks.v1.WebhookDelivery"`},
		"O-1":     {`{"kind":"Search"`},
		"connect": {`{"kind":"Page","text":"Connection to the brokers","link":"/connection"}`},
	} {
		h.get("/palette?q="+url.QueryEscape(text)).want(t, 200, want...)
	}
}
