package web_test

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

// receiveSilent stores and classifies a letter whose headers do not say what went wrong.
func (h *house) receiveSilent(messageID string) string {
	h.t.Helper()
	id := h.take(deadletter.Arrival{
		Exchange:   "dlo.dlx",
		RoutingKey: "sms",
		Body:       []byte("x"),
		Properties: deadletter.Properties{MessageID: messageID, Headers: deadletter.Table{
			"x-death": []any{
				deadletter.Table{
					"queue":        "sms",
					"exchange":     "events",
					"reason":       "rejected",
					"routing-keys": []any{"k"},
				},
			},
		}},
	})[0]
	if _, err := h.classifier.Step(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return string(id)
}

func TestALetterSaysWhoReportedIt(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`[0-9]{16}`)}}
	h := open(t, func(o *web.Options) { o.Header = masks.Header })
	const card = "4111111111111111"
	h.postJSON(
		"/api/v1/annotations",
		`{"message_id":"m","queue":"sms","error_type":"E","message":"card `+card+` refused","stack":"E: card `+card+
			`\n\tat pay <script>alert(1)</script>","service":"billing-worker","version":"2026.11.20-1"}`,
	).
		want(t, 200, `{"new":1,"again":0,"joined":0}`)
	id := h.receiveSilent("m")
	var l struct {
		Masked  bool              `json:"masked"`
		Failure map[string]string `json:"failure"`
	}
	h.get("/api/v1/letters/"+id).want(t, 200).json(t, &l)
	want := map[string]string{
		"by": "annotation", "type": "E", "message": "card •••• refused",
		"stack": "E: card ••••\n\tat pay <script>alert(1)</script>", "service": "billing-worker",
		"version": "2026.11.20-1",
	}
	if !l.Masked || fmt.Sprint(l.Failure) != fmt.Sprint(want) {
		t.Errorf("%+v", l)
	}
	page := h.get("/letters/"+id).want(
		t, 200, "reported by billing-worker 2026.11.20-1", `href="#failure"`, "at pay &lt;script&gt;",
	).text
	if strings.Contains(page, card) || strings.Contains(page, "<script>alert") {
		t.Error("the page shows what is masked, or does not escape")
	}
	h.get("/api/v1/letters/"+id+"?reveal=1").want(t, 200, card)
	h.get("/letters/"+id+"?tab=history").want(t, 200, "annotated")

	// The letter "n" arrives before its annotation. When its page is requested after the annotation
	// has arrived, the page must show the annotation.
	other := h.receiveSilent("n")
	if text := h.get("/api/v1/letters/"+other).want(t, 200).text; strings.Contains(text, `"failure"`) {
		t.Error(text)
	}
	h.postJSON(
		"/api/v1/annotations", `[{"message_id":"n","message":"no route"},{"message_id":"n","message":"no route"}]`,
	).want(t, 200, `{"new":1,"again":1,"joined":1}`)
	h.get("/letters/"+other).want(t, 200, "reported by its consumer, without a name", "no route")
}

func TestAnnotationsThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct {
		body   string
		status int
		texts  []string
	}{
		{`{"message":"x"}`, 400, []string{`"fields":[{"field":"message_id","why":"nothing says which message`}},
		{`{"message_id":"m"}`, 400, []string{`"field":"message"`}},
		{
			`[{"message_id":"m","message":"x"},{"message_id":7,"message":"x"}]`,
			400,
			[]string{`"field":"[1].message_id","why":"a text is wanted"`},
		},
		{`{"message_id":"m","message":"x","broker":"other"}`, 400, []string{`"field":"broker"`}},
		{`{"message_id":"m","message":"x","vhost":"other"}`, 400, []string{`"field":"vhost"`}},
		{`[]`, 400, []string{"an array has 1 to 1000 annotations"}},
		{`[` + strings.Repeat(`{},`, 1000) + `{}]`, 400, []string{"an array has 1 to 1000 annotations"}},
		{`[{"message_id":"m","message":"x"}`, 400, []string{"cannot be read"}},
		{`null`, 400, []string{"give a JSON object"}},
		{``, 400, []string{"request body is required"}},
		{`{"message_id":"m","message":"` + strings.Repeat("x", 10<<20) + `"}`, 400, []string{"at most 65536 bytes"}},
		{`{"message_id":"m","message":"` + strings.Repeat("x", 17<<20) + `"}`, 413, nil},
		{`{"message_id":"m","x":` + strings.Repeat("[", 20000), 400, []string{"cannot be read"}},
	} {
		h.postJSON("/api/v1/annotations", c.body).want(t, c.status, c.texts...)
	}
	h.postJSON("/api/v1/annotations?q=x", `{"message_id":"m","message":"x"}`).want(t, 400, "there is no parameter")
	r := httptest.NewRequest("POST", "/api/v1/annotations", strings.NewReader(`{"message_id":"m","message":"x"}`))
	r.Header.Set("Content-Type", "text/plain")
	h.do(r).want(t, 415)
	if id := h.receiveSilent("m"); strings.Contains(h.get("/api/v1/letters/"+id).text, `"failure"`) {
		t.Error("a request that was refused stored something")
	}
	h.Drain()
	h.postJSON("/api/v1/annotations", `{"message_id":"m","message":"x"}`).want(t, 503)
}
