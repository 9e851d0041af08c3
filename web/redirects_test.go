package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

func TestRedirects(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Rules = rules.NewBook(&rules.Set{
			Default: rules.Rule{
				Name:     rules.DefaultName,
				Retry:    &rules.Retry{Delays: []time.Duration{10 * time.Second, 100 * time.Second}},
				Severity: deadletter.SeverityDigest,
			},
		})
	})
	h.get("/rules").want(
		t, 200, "No rules file: these are the defaults", "Delays: 10 s, 1 min 40 s, then dead: digest.", "No overrides",
		"no redirect is saved: every letter is retried as its rule says",
	)
	h.post("/rules/overrides", url.Values{
		"queue":  {"old"},
		"to":     {"amq.gen-x"},
		"reason": {"gone"},
	}).want(t, 400, `value="amq.gen-x"`, "belongs to the broker", `value="gone"`, `id="rule-to-wrong"`)
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"old"}}).want(t, 400, "the same queue")
	h.post("/rules/overrides", url.Values{
		"queue": {""},
		"to":    {strings.Repeat("x", 256)},
	}).want(t, 400, "Name a queue", "at most 255 bytes")
	h.post("/rules/overrides", url.Values{
		"queue":  {"old"},
		"to":     {"new"},
		"reason": {"renamed"},
	}).redirectsTo(t, "/rules")
	h.get("/rules").want(t, 200, "old", "new", "renamed", `action="/rules/overrides/1/remove"`)
	h.post(
		"/rules/overrides", url.Values{"queue": {"old"}, "to": {"other"}},
	).want(t, 409, "redirected already", `value="other"`)
	h.post("/rules/overrides/1/remove", nil).redirectsTo(t, "/rules")
	h.post("/rules/overrides/1/remove", nil).want(t, 404)
	h.brokers = append(h.brokers, deadletter.BrokerStatus{Name: "second", VHost: "shop", Connected: true})
	h.get("/rules").want(t, 200, "second, vhost shop")
	h.post("/rules/overrides", url.Values{"queue": {"old"}, "to": {"new"}}).want(t, 400, "say which")
	h.post("/rules/overrides", url.Values{
		"queue": {"old"},
		"to":    {"new"},
		"place": {"broker=second&vhost=shop"},
	}).redirectsTo(t, "/rules")
	h.get("/rules").want(t, 200, "second")
}
