package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/audit").want(t, 200, "Nothing has been done yet")
	h.get("/audit?q=who:x").want(t, 200, "No entries match")
	var ids []string
	for _, id := range h.receive("sms", 3, "x") {
		ids = append(ids, string(id))
	}
	h.post("/operations", url.Values{
		"action": {"discard"},
		"id":     ids,
		"reason": {`=cmd("x") <b>`},
		"key":    {"k"},
	}).redirectsTo(t, "/operations/O-1")
	h.advance()
	h.post("/triage", url.Values{"do": {"resolve"}, "groups": {"G-1"}})
	h.get("/audit?q=action:discard").want(
		t, 200, "=cmd(&#34;x&#34;) &lt;b&gt;", `href="/operations/O-1"`, `value="op:O-1/done"`, "asked 3, discarded 3",
		`href="/audit/export?q=action%3Adiscard"`, `value="action:discard"`, "1 entry",
	)
	h.get("/audit?q=G-1").want(
		t, 200, "resolved", `href="/groups/G-1"`, "endpoint answered 410 Gone", "page", "192.0.2.1",
	)
	h.get("/audit?q=who:lena").want(t, 200, "No entries match")
	h.get("/audit?q=action:resolve").want(t, 400, "did you mean resolved?", `value="action:resolve"`)
	export := h.get("/audit/export?q=action:discard").want(
		t, 200, `2026-11-20T09:00:00Z,discard,local,page,192.0.2.1,O-1,3,,"'=cmd(""x"") <b>","operation O-1",3,3`,
	)
	if !strings.HasPrefix(export.Header.Get("Content-Type"), "text/csv; charset=utf-8") ||
		!strings.HasPrefix(export.Header.Get("Content-Disposition"), "attachment") ||
		strings.Count(export.text, "\n") != 2 {
		t.Errorf("%v\n%s", export.Header, export.text)
	}
	h.get("/audit/export?q=since:tomorrow").want(t, 400)
}

// TestOldAddressesOfTheAudit checks that old URLs, which have one parameter for each of five
// filters, still select the same entries.
func TestOldAddressesOfTheAudit(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.post("/triage", url.Values{"do": {"resolve"}, "groups": {"G-1"}})
	h.post("/views", url.Values{"q": {"state:dead"}, "name": {"dead"}})
	h.get("/audit?actor=local&kind=resolved&through=page&since=2026-11-20T08:00&before=2026-11-20T10:00").want(
		t, 200, `href="/groups/G-1"`, "1 entry",
		`value="who:local action:resolved via:page since:2026-11-20T08:00 until:2026-11-20T10:00"`,
	)
	h.get("/audit?kind=view+saved&q=dead").want(t, 200, "1 entry", `value="action:view-saved dead"`)
	h.get("/audit?before=2026-11-20T08:00").want(t, 200, "No entries match")
	h.get("/audit?since=tomorrow&actor=lena").want(t, 400, "a time is written", `value="who:lena since:tomorrow"`)
	h.get("/audit/export?kind=resolved").want(t, 200, ",resolved,local,page,")
}

// TestTheAuditCompletes checks that the query box of the audit completes names of fields and
// existing values.
func TestTheAuditCompletes(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.post("/triage", url.Values{"do": {"assign"}, "groups": {"G-1"}, "owner": {"Lena Sato"}})
	for q, want := range map[string]string{
		"":                     `[{"text":"who:","label":"who did it; dlo for what it did automatically"}`,
		"ta":                   `[{"text":"target:"`,
		"who:":                 `[{"text":"who:\"Lena Sato\""},{"text":"who:local"},{"text":"who:dlo"}]`,
		"who:local,le":         `[{"text":"who:local,\"Lena Sato\""}]`,
		"via:cli action:view-": `[{"text":"via:cli action:view-saved"},{"text":"via:cli action:view-removed"}]`,
		"-via:p":               `[{"text":"-via:page"}]`,
		"target:g":             `[{"text":"target:G-1","label":"group"}]`,
		"until:24":             `[{"text":"until:24h"}]`,
		"queue:":               `[]`,
	} {
		if got := h.get(
			"/audit/complete?"+url.Values{"q": {q}}.Encode(),
		).want(t, 200).text; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.300s, want %s", q, got, want)
		}
	}
}

// TestTheWayOfAnAct checks how the audit says where an act comes from. The command line identifies
// itself. Other requests under /api come from the API, and all others from a page.
func TestTheWayOfAnAct(t *testing.T) {
	t.Parallel()
	h := open(t)
	view := func(name string, agent string) {
		t.Helper()
		r := httptest.NewRequest("POST", "/api/v1/views", strings.NewReader(`{"name":"`+name+`","query":""}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", agent)
		h.do(r).want(t, 201)
	}
	view("a", "dlo/1.0")
	view("b", "curl/8")
	h.post("/views", url.Values{"q": {""}, "name": {"c"}})
	for name, way := range map[string]string{"a": "cli", "b": "api", "c": "page"} {
		h.get("/api/v1/audit?q=target:"+name).want(
			t, 200, `"through":"`+way+`"`, `"targets":[{"kind":"view","name":"`+name+`"}]`,
		)
	}
}
