package web_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

// TestMaskedValuesAreNowhere searches every page and every API response for a masked card number
// and a masked header.
func TestMaskedValuesAreNowhere(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{
		Headers:  []string{"x-error-message", "correlation-id"},
		Patterns: []*regexp.Regexp{regexp.MustCompile(`\b[0-9]{16}\b`)},
	}
	h := open(t, func(o *web.Options) {
		decoder := &payload.Decoder{Mask: masks.Body()}
		o.Decoder, o.Header = func() *payload.Decoder { return decoder }, masks.Header
	})
	const card, gone = "4111111111111111", "410 Gone"
	id := string(h.receive("sms", 1, `{"card": "`+card+`", "amount": 12}`)[0])
	for _, path := range []string{
		"?tab=decoded", "?tab=json", "?tab=raw", "?tab=raw&layer=0", "?tab=headers", "?tab=timeline", "?tab=history",
	} {
		page := h.get("/letters/"+id+path).want(t, 200).text
		if strings.Contains(page, card) {
			t.Errorf("%s shows the card number", path)
		}
		if path == "?tab=headers" && strings.Contains(page, gone+"</td>") {
			t.Errorf("%s shows the masked header", path)
		}
	}
	h.get("/letters/"+id+"?tab=json").want(t, 200, payload.Masked, "amount")
	answer := h.get("/api/v1/letters/"+id).want(t, 200, `"masked":true`, `"body":null`).text
	if strings.Contains(answer, card) || strings.Contains(answer, `"v":"endpoint answered`) {
		t.Errorf("the API shows a masked value: %s", answer)
	}
	for q, why := range map[string]string{ // queries must not disclose masked values either
		"header.x-error-message:*":     "letters cannot be found by",
		"-header.X-Error-Message:410*": "letters cannot be found by", "correlation_id:c": "letters cannot be found by",
		"body.card:4*": "is not indexed",
	} {
		h.get("/api/v1/letters/count?q="+url.QueryEscape(q)).want(t, 400, `"position":`, why)
	}
	// the query is compared only with the masked value
	h.get("/api/v1/letters?q=body.card:4*").want(t, 200, `"letters":[]`)
	for _, path := range []string{"/letters/" + id + "/body", "/api/v1/letters/" + id + "/body"} {
		if body := h.get(path).want(t, 403).text; strings.Contains(body, card) {
			t.Errorf("%s gives out the card number", path)
		}
	}
}
