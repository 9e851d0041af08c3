package web_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

func TestAPIViews(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/api/v1/views").want(t, 200, `{"views":[]}`)
	a := h.postJSON("/api/v1/views", `{"name":" overnight ","query":"state:dead since:12h"}`).want(
		t, 201, `"id":1,"name":"overnight","query":"state:dead since:12h","mine":false,"by":"local"`,
	)
	if a.Header.Get("Location") != "/api/v1/views/1" {
		t.Error(a.Header)
	}
	// the same view again
	h.postJSON("/api/v1/views", `{"name":"overnight","query":"state:dead since:12h"}`).want(t, 201, `"id":1`)
	h.postJSON("/api/v1/views", `{"name":"overnight","query":"state:held"}`).want(t, 409, "already")
	h.postJSON("/api/v1/views", `{"name":"","query":""}`).want(t, 400, "1 to 100 bytes")
	h.postJSON("/api/v1/views", `{"name":"`+strings.Repeat("x", 101)+`","query":""}`).want(t, 400)
	h.postJSON("/api/v1/views", `{"name":"x","query":"state:deaf"}`).want(t, 400, `"position":6`)
	h.get("/api/v1/views?q=x").want(t, 400, "there is no parameter")
	h.do(request("DELETE", "/api/v1/views/2", "")).want(t, 404)
	h.do(request("DELETE", "/api/v1/views/x", "")).want(t, 404)
	if a := h.do(request("DELETE", "/api/v1/views/1", "")).want(t, 204); a.text != "" {
		t.Error(a.text)
	}
	h.get("/api/v1/views").want(t, 200, `{"views":[]}`)
}

func TestAPIOverrides(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.postJSON("/api/v1/overrides", `{"queue":"sms","to":"sms2","reason":"renamed"}`).want(
		t, 201, `"broker":"main","vhost":"/","queue":"sms","to":"sms2","by":"local","reason":"renamed"`,
	)
	h.postJSON("/api/v1/overrides", `{"queue":"sms","to":"sms2","broker":"main","vhost":"/"}`).want(t, 201, `"id":1`)
	h.postJSON("/api/v1/overrides", `{"queue":"sms","to":"sms3"}`).want(t, 409, "redirected already")
	for _, c := range []struct{ name, body, detail string }{
		{"into an inbox", `{"queue":"email","to":"dlo.letters"}`, "dead-letter queue of dlo"},
		{"into the broker's own", `{"queue":"email","to":"amq.gen"}`, "belongs to the broker"},
		{"to itself", `{"queue":"email","to":"email"}`, "that is the same queue"},
		{"from nowhere", `{"to":"x"}`, "queue: name a queue"},
		{"to nowhere", `{"queue":"x"}`, "to: name a queue"},
		{"on no broker", `{"queue":"x","to":"y","broker":"other"}`, "no broker"},
		{"on another vhost", `{"queue":"x","to":"y","vhost":"other"}`, "is configured for vhost"},
		{"a queue that cannot be", `{"to":"x","queue":"` + strings.Repeat("q", 256) + `"}`, "at most 255 bytes"},
		{"a long reason", `{"to":"x","queue":"y","reason":"` + strings.Repeat("q", 501) + `"}`, "at most 500 bytes"},
	} {
		if a := h.postJSON("/api/v1/overrides", c.body); a.StatusCode != 400 || !strings.Contains(a.text, c.detail) {
			t.Errorf("%s: %d %s", c.name, a.StatusCode, a.text)
		}
	}
	h.get("/api/v1/overrides").want(t, 200, `"overrides":[{"id":1,`)
	h.do(request("DELETE", "/api/v1/overrides/9", "")).want(t, 404)
	h.do(request("DELETE", "/api/v1/overrides/1", "")).want(t, 204)
	h.get("/api/v1/audit").want(t, 200, `"kind":"redirect removed"`, `"kind":"redirect"`, `"actor":"local"`)
	h.brokers = append(h.brokers, deadletter.BrokerStatus{Name: "second", VHost: "/"})
	h.postJSON("/api/v1/overrides", `{"queue":"a","to":"b"}`).want(t, 400, "say which")
	h.postJSON("/api/v1/overrides", `{"queue":"a","to":"b","broker":"main"}`).want(t, 201, `"vhost":"/"`)
}

func TestAPIAudit(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 2, "x")
	for range 3 {
		h.postJSON("/api/v1/operations", `{"action":"hold","q":"state:dead,held","reason":"why"}`).want(t, 202)
		h.advance()
	}
	var page struct {
		Entries []map[string]any
		Next    string
	}
	seen := 0
	for after := ""; ; after = page.Next {
		h.get("/api/v1/audit?limit=2&after="+after).want(t, 200).json(t, &page)
		if seen += len(page.Entries); page.Next == "" {
			break
		}
	}
	if seen != 6 {
		t.Errorf("%d entries", seen)
	}
	h.get(
		"/api/v1/audit?operation=O-2&kind=hold&actor=local&through=api&since=2026-11-20T08:59:59Z&before=2026-11-20T09:00:01Z",
	).want(t, 200, `"operation":"O-2"`, `"total":2`, `"query":"state:dead,held"`, `"detail":"why"`, `"next":""`)
	h.get("/api/v1/audit?since=2026-11-20T09:00:01Z").want(t, 200, `"entries":[]`)
	h.get("/api/v1/audit?since=today").want(t, 400, "since must be a time")
	h.get("/api/v1/audit?operation=x").want(t, 400)
	h.get("/api/v1/audit?who=x").want(t, 400, "there is no parameter")
	h.get("/api/v1/audit?after=!").want(t, 400)
}

func TestAPIHistogramAndFacets(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.get("/api/v1/letters/histogram?q=queue:sms").want(
		t, 200, `"step":"15m0s"`, `"sampled":0`, `"waiting":0,"recovered":0,"dead":3,"discarded":0`,
		`"to":"2026-11-20T09:15:00Z"`,
	)
	h.get("/api/v1/letters/histogram?q=queue:nope").want(t, 200, `"bars":[]`)
	h.get(
		"/api/v1/letters/histogram?from=2026-11-20T09:00:00Z&to=2026-11-20T08:00:00Z",
	).want(t, 400, "from must be before to")
	h.get("/api/v1/letters/histogram?bars=501").want(t, 400, "bars: expected number <= 500")
	h.get("/api/v1/letters/histogram?q=state:deaf").want(t, 400, `"position":6`)
	h.get("/api/v1/letters/facets?q=key:k").want(t, 200, `"sampled":`)
	h.get("/api/v1/letters/count?exact=2").want(t, 400)
}

// TestNoCallAsksForWhatIsMasked checks that no action and no export can select letters by a value
// that is masked.
func TestNoCallAsksForWhatIsMasked(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{Headers: []string{"authorization"}}
	h := open(t, func(o *web.Options) { o.Header = masks.Header })
	h.receive("sms", 1, "x")
	for _, path := range []string{
		"/letters/export?q=", "/letters/histogram?q=", "/letters/count?q=", "/letters/facets?q=",
	} {
		h.get("/api/v1"+path+"header.authorization:x*").want(t, 400, "masked")
	}
	h.postJSON("/api/v1/operations", `{"action":"discard","q":"header.authorization:*"}`).want(t, 400, "masked")
	h.postJSON(
		"/api/v1/operations", `{"action":"discard","q":"header.authorization:*","dry_run":true}`,
	).want(t, 400, "masked")
	h.postJSON("/api/v1/views", `{"name":"x","query":"header.authorization:x"}`).want(t, 400, "masked")
}
