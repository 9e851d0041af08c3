package web_test

import (
	"net/url"
	"strings"
	"testing"
)

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
