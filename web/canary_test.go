package web_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"html"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf16"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// canary is a text that every masked value contains.
const canary = "kanarie-4111"

// maskedHouse returns a dlo for tests. For each kind of masking rule, it has a letter in which this
// rule masks a value. The letters are classified and indexed as in production.
func maskedHouse(
	t *testing.T, actor ...deadletter.Principal,
) (h *house, letters map[string]string, metrics *prometheus.Registry) {
	t.Helper()
	types := descriptor.NewRegistry()
	var files fs.FS = fstest.MapFS{"shop.proto": {Data: []byte(`syntax = "proto3"; package shop;
		message Order { string id = 1; Customer customer = 2; string pin = 3 [debug_redact = true]; } message Customer { string email = 1; string name = 2; } message Plain { string id = 1; bytes client = 2; string pin = 3; }`)}}
	if _, err := types.AddSource("shop", files); err != nil {
		t.Fatal(err)
	}
	masks := payload.Masks{
		Headers:  []string{"authorization", "message-id"},
		Patterns: []*regexp.Regexp{regexp.MustCompile(canary + "-pattern")},
		Fields:   []deadletter.MaskedField{{Type: "shop.*", Path: deadletter.FieldPath{"customer", "email"}}},
		JSON:     []deadletter.FieldPath{{"card", "number"}},
	}
	decoder := &payload.Decoder{Types: types, Mask: masks.Body()}
	now := func() *payload.Decoder { return decoder }
	metrics = prometheus.NewRegistry()
	h = open(t, withRetries, func(o *web.Options) {
		o.Decoder, o.Header, o.Masked, o.Fields = now, masks.Header, masks.Field, []string{
			"id", "customer.email", "card.number", "customer.name",
		}
		o.Users = identity.NewAccounts(o.Store, nil)
		o.Metrics = promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})
		if len(actor) > 0 {
			o.Actor = func(*http.Request) (deadletter.Principal, error) { return actor[0], nil }
		}
	})
	log := slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, []string{"dlo.letters"})
	h.classifier = classify.New(h.store, classify.Options{
		Decoder: now, Mask: masks.Header, Rules: h.book, Targets: targets, Now: func() time.Time { return start },
		Log: log, Metrics: classify.NewMetrics(metrics),
	})
	h.RuleFacts = h.classifier.Facts
	set := *h.Rules.Set()
	set.Rules = []rules.Rule{
		{
			Name: "secret",
			Match: rules.Match{
				Field: []rules.Named{
					{Name: "customer.email", Want: rules.Patterns{"*"}},
					{Name: "card.number", Want: rules.Patterns{"*"}},
				},
			},
		},
	}
	h.Rules.Replace(&set)

	order := func(fields ...string) []byte { // the fields are tags and contents in turn
		var b []byte
		for i := 0; i+1 < len(fields); i += 2 {
			b = append(append(append(b, fields[i]...), byte(len(fields[i+1]))), fields[i+1]...)
		}
		return b
	}
	arrival := func(typ string, body []byte) deadletter.Arrival {
		return deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: "orders",
			Body:       body,
			Properties: deadletter.Properties{Type: typ, Headers: deadletter.Table{
				"x-death": []any{
					deadletter.Table{
						"queue":        "orders",
						"exchange":     "shop",
						"reason":       "rejected",
						"count":        int64(1),
						"routing-keys": []any{"k"},
						"time":         start,
					},
				},
			}},
		}
	}
	all := []deadletter.Arrival{
		arrival("shop.Order", order("\x0a", "o1", "\x12", string(order("\x0a", canary+"@x", "\x12", "Ann")))),
		arrival("shop.Order", order("\x0a", "o2", "\x1a", canary+"-pin")),
		arrival("", []byte(`{"card": {"number": "`+canary+`", "holder": "Bob"}}`)),
		arrival("", []byte(`{"note": "it is `+canary+`-pattern indeed"}`)),
		arrival("", []byte("plain")),
		arrival("shop.Gone", order("\x0a", "o3", "\x22", "\x00"+canary)),
		arrival(canary+"-pattern", order("\x0a", "o4")),
		arrival("", order("\x0a", "o5")),
		arrival("", []byte("{\"card\": {\"number\": \""+canary+"\", \"holder\": \"J\xfcrgen\"}}")), // windows-1252
		arrival("", []byte("f\xfcr "+canary+"-pattern, geschlo\xdfen")),                            // ISO-8859-1
		arrival("", utf16Text(`{"card": {"number": "`+canary+`"}}`)),
	}
	all[9].Properties.ContentType = "text/plain; charset=ISO-8859-1"
	all[6].Properties.ContentEncoding = canary + "-pattern"
	all[7].Properties.ContentType = "application/x-protobuf; messageType=" + canary + "-pattern"
	all[4].Properties.Headers["authorization"] = "Bearer " + canary
	all[4].Properties.Headers["table"] = deadletter.Table{"in": []any{canary + "-pattern"}}
	all[4].Properties.Headers["deep"] = deadletter.Unread{
		Field: []byte("F\x00\x00\x00\x20\x0dauthorizationS\x00\x00\x00\x0a" + canary), Why: "nested deeper than 64",
	}
	all[4].Properties.Headers["deeper"] = deadletter.Unread{
		Field: []byte("A\x00\x00\x00\x20S\x00\x00\x00\x10" + canary + "-pattern"), Why: "nested deeper than 64",
	}
	all[4].Properties.MessageID = canary
	all[4].Properties.Headers["x-error-message"] = "failed on " + canary + "-pattern"
	ids := h.take(all...)
	letters = map[string]string{}
	for i, name := range []string{
		"field", "redacted", "json", "pattern", "header", "unread", "type", "content type", "guessed charset", "charset", "UTF-16",
	} {
		letters[name] = string(ids[i])
	}
	if n, err := h.classifier.Step(t.Context()); n != len(ids) || err != nil {
		t.Fatal(n, err)
	}
	indexer := classify.NewIndexer(h.store, classify.IndexerOptions{
		Decoder: now,
		Mask:    masks.Header,
		Hide:    masks.Text,
		Masks:   masks.Names(),
		Text:    true,
		Fields:  []string{"id", "customer.email", "pin"},
		Log:     log,
	})
	for n := 1; n > 0; {
		var err error
		if n, err = indexer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return h, letters, metrics
}

// utf16Text returns a text in UTF-16 with a byte order mark.
func utf16Text(text string) []byte {
	b := []byte("\xff\xfe")
	for _, c := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// betrayed reports whether a text contains the canary, a text in every masked value. It also
// recognises the canary in hexadecimal and in base64.
func betrayed(text string) bool {
	for _, form := range []string{
		canary, hex.EncodeToString([]byte(canary)), strings.TrimSpace(strings.ReplaceAll(hexPairs(canary), "  ", " ")),
		"kanarie",
	} {
		if strings.Contains(text, form) {
			return true
		}
	}
	if strings.Contains(text, string(utf16Text(canary))[2:]) {
		return true
	}
	for shift := range 3 { // base64 at any offset
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		if strings.Contains(text, encoded[4:12]) {
			return true
		}
	}
	return false
}

func hexPairs(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString(hex.EncodeToString([]byte{c}) + " ")
	}
	return b.String()
}

// TestNobodySeesACanary requests every page and every API route that shows letters. No response may
// contain the canary, which is a text in every masked value.
func TestNobodySeesACanary(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	clean := func(what string, a answer) {
		t.Helper()
		if betrayed(a.text) {
			i := strings.Index(a.text, "kanarie")
			t.Errorf("%s shows a masked value: %.300s", what, a.text[max(0, i-100):])
		}
	}
	seen := map[string]bool{}
	paths := []string{
		"/jump?q=Ann", "/palette?q=Ann", "/letters/complete?q=body.customer.email:&at=20",
		"/letters/complete?q=header.a", "/letters?q=state:dead", "/letters/complete?q=type:&at=5", "/letters/export?q=",
		"/letters/export?q=&format=csv", "/operations/O-1", "/audit?q=Ann",
		"/audit/complete?q=target:&at=7", "/audit/complete?q=who:&at=4",
		"/schemas?type=shop.Order&find=pin", "/api/v1/letters/export?format=csv", "/api/v1/operations/O-1",
		"/triage?tab=digest", "/triage?tab=resolved", "/groups/G-1", "/groups/G-2", "/groups/G-3", "/groups/G-4",
		"/groups/G-5", "/api/v1/groups/G-1", "/api/v1/groups/G-3", "/api/v1/groups/G-5", "/api/v1/audit?format=csv",
		"/queues/one?broker=main&vhost=%2F&queue=orders", "/api/v1/types/proto?type=shop.Order",
	}
	eachGet := func(do func(route string)) {
		chi.Walk(h.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			// this dlo has no drains, and the editor shows what is masked
			if method == "GET" && !strings.HasPrefix(route, "/static") && !strings.HasSuffix(route, "/events") &&
				route != "/api/v1/queues/drains" && route != "/letters/{id}/edit" {
				do(route)
			}
			return nil
		})
	}
	eachGet(func(route string) {
		if !strings.Contains(route, "{") {
			paths = append(paths, route)
		}
	})
	for _, id := range letters {
		for _, query := range []string{
			"", "?tab=json", "?tab=raw", "?tab=raw&layer=0", "?tab=headers", "?tab=timeline", "?tab=history",
			"?at=0-40", "?tab=raw&at=0-40",
		} {
			paths = append(paths, "/letters/"+id+query)
		}
		paths = append(
			paths, "/letters/"+id+"/body", "/letters/"+id+"/copy", "/letters/"+id+"/copy?as=curl",
			"/letters/"+id+"/copy?as=rabbitmqadmin", "/api/v1/letters/"+id, "/api/v1/letters/"+id+"/body",
		)
	}
	clean("the confirm page", h.post("/letters/confirm", url.Values{
		"id":     {letters["field"], letters["json"]},
		"action": {"discard"},
	}))
	clean("the start of an operation", h.postJSON("/api/v1/operations", `{"action":"hold","q":"","dry_run":true}`))
	clean("an operation", h.postJSON("/api/v1/operations", `{"action":"hold","q":"type:shop.Order"}`))
	for what, id := range letters {
		page := h.get("/letters/" + id + "/edit").text
		if m := regexp.MustCompile(`(?s)<textarea[^>]*>(.*?)</textarea>`).FindStringSubmatch(page); m != nil {
			text := strings.NewReplacer("Ann", "Eve", "Bob", "Eve").Replace(html.UnescapeString(m[1]))
			a := h.post("/letters/"+id+"/edit", url.Values{
				"from":   {"0"},
				"newest": {"0"},
				"text":   {text},
				"do":     {"group"},
			})
			// otherwise, the editor shows a mistake, and with it what is masked
			if !strings.Contains(a.text, "Payload as ") {
				clean("the same edit for others of "+what, a)
			}
		}
	}
	h.advance()
	var edit struct{ ID string }
	h.postJSON(
		"/api/v1/operations",
		`{"action":"edit","q":"Bob","reason":"r","patch":[{"op":"replace","path":"/card/number","value":"`+canary+
			`2"}]}`,
	).want(t, 202).json(t, &edit)
	for _, path := range []string{"/operations/", "/api/v1/operations/"} {
		clean("an edit of what is masked", h.get(path+edit.ID).want(t, 200))
	}
	clean("the rules", h.postJSON("/api/v1/rules/test", `{"q":"state:dead"}`))
	clean("the rules on their page", h.post("/rules/try", url.Values{"q": {"state:dead"}}))
	for _, path := range paths {
		a := h.get(path)
		clean(path, a)
		if a.StatusCode >= 500 && !strings.HasPrefix(path, "/api/v1/types") { // this dlo has no schema library
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		ctx := chi.NewRouteContext()
		bare, _, _ := strings.Cut(path, "?")
		h.Routes().Match(ctx, "GET", bare)
		seen[ctx.RoutePattern()] = true
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream := httptest.NewRequest("GET", "/events", nil).WithContext(ctx)
	stream.Host = "dlo.example"
	cancel()
	clean("/events", h.do(stream))
	if betrayed(h.log.String()) {
		t.Errorf("the log has a masked value: %s", h.log.String())
	}
	eachGet(func(route string) {
		if !seen[route] {
			t.Errorf("GET %s was not asked: add it to paths", route)
		}
	})
	for q, want := range map[string]int{
		"kanarie": 0, canary: 0, "Ann": 1, "Bob": 1, "indeed": 1, "Jürgen": 1, "geschloßen": 1, `"` + canary + `@x"`: 0, "error:*kanarie*": 0,
		"body.id:o1": 1,
	} {
		var out struct{ Count int }
		h.get("/api/v1/letters/count?q="+url.QueryEscape(q)).want(t, 200).json(t, &out)
		if out.Count != want {
			t.Errorf("%s finds %d letters, want %d", q, out.Count, want)
		}
	}
	for _, q := range []string{
		"body.customer.email:x*", "-body.card.number:*", "header.authorization:B*", "message_id:c*",
	} {
		h.get("/api/v1/letters/count?q="+url.QueryEscape(q)).want(t, 400, "is masked")
		h.get("/api/v1/letters/facets?q="+url.QueryEscape(q)).want(t, 400, "is masked")
		h.get("/api/v1/letters/export?q="+url.QueryEscape(q)).want(t, 400, "is masked")
	}
	h.get("/api/v1/letters/count?q=body.customer.name:Ann").want(t, 200)
}

// TestRevealIsARight checks that a masked value is shown to those who may see it. The audit must
// record this without the value.
func TestRevealIsARight(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	for _, c := range []struct{ letter, ask, want string }{
		{"field", `{"field":"customer.email"}`, canary + "@x"},
		{"redacted", `{"field":"pin"}`, canary + "-pin"},
		{"json", `{"field":"card.number"}`, canary},
		{"pattern", `{"field":"note"}`, "it is " + canary + "-pattern indeed"},
		{"header", `{"header":"Authorization"}`, "Bearer " + canary},
		{"header", `{"header":"message-id"}`, canary},
		{
			"header", `{"header":"table"}`,
			`{"t":"table","v":{"in":{"t":"array","v":[{"t":"longstr","v":"` + canary + `-pattern"}]}}}`,
		},
		{"unread", `{"field":"4"}`, "00" + hex.EncodeToString([]byte(canary))},
	} {
		var out struct{ Value string }
		h.postJSON("/api/v1/letters/"+letters[c.letter]+"/reveal", c.ask).want(t, 200).json(t, &out)
		if out.Value != c.want {
			t.Errorf("%s %s: %q", c.letter, c.ask, out.Value)
		}
	}
	h.get("/api/v1/audit?kind=revealed").want(
		t, 200, `"detail":"field customer.email","targets":[{"kind":"letter","name":"`+letters["field"]+`"}]`,
		"header authorization", `"actor":"local"`,
	)
	h.get("/api/v1/letters/"+letters["field"]).want(
		t, 200, `"kind":"revealed","actor":"local","detail":"field customer.email"`,
	)
	for _, wrong := range []string{
		`{"field":"id"}`, `{"field":"customer"}`, `{"field":"nothing"}`, `{"header":"x-death"}`, `{}`,
		`{"field":"customer.email","header":"x"}`,
	} {
		h.postJSON("/api/v1/letters/"+letters["field"]+"/reveal", wrong).want(t, 400)
	}
	page := h.post("/letters/"+letters["field"]+"/reveal", url.Values{
		"node": {"1.0"},
		"tab":  {"decoded"},
		"q":    {"state:dead"},
	}).want(t, 200, canary+"@x", "revealed", "Hide")
	if page.Header.Get("Cache-Control") != "no-store" {
		t.Error("the page may be kept")
	}
	h.post("/letters/"+letters["header"]+"/reveal", url.Values{
		"header": {"authorization"},
		"tab":    {"headers"},
	}).want(t, 200, "Bearer "+canary)

	for _, base := range []string{"/letters/", "/api/v1/letters/"} {
		h.get(base+letters["field"]+"/body").want(t, 403)
		h.get(base+letters["field"]+"/body?reveal=1").want(t, 200, canary)
		h.get(base+letters["header"]+"/body").want(t, 200, "plain")
	}
	h.get("/api/v1/letters/"+letters["field"]+"/body?reveal=2").want(t, 400)
	h.get("/api/v1/letters/"+letters["header"]+"?reveal=1").want(t, 200, "Bearer "+canary, `"masked":true`)
	h.get("/api/v1/letters/"+letters["json"]+"?reveal=1").want(t, 200, `"number":"`+canary, `"body":"eyJj`)
	export := h.get("/api/v1/letters/export?reveal=1&q=").want(t, 200, "Bearer "+canary)
	for _, line := range strings.Split(strings.TrimSpace(export.text), "\n") {
		var out struct {
			Masked bool
			Body   *string
		}
		if err := json.Unmarshal([]byte(line), &out); err != nil || out.Masked || out.Body == nil {
			t.Errorf("%s", line)
		}
	}
	h.get("/api/v1/letters/export?reveal=1&format=csv").want(t, 400, "ndjson")
	audit := h.get("/api/v1/audit?kind=revealed&limit=500").want(
		t, 200, "export of 11 letters, query", "the whole body", "the whole letter",
	)
	if betrayed(audit.text) || betrayed(h.log.String()) {
		t.Errorf("the audit or the log has a revealed value: %s", audit.text)
	}
	foreign := httptest.NewRequest("GET", "/api/v1/letters/"+letters["field"]+"/body?reveal=1", nil)
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	h.do(foreign).want(t, 403)

	stranger, letters, _ := maskedHouse(t, deadletter.Principal{
		Name:   "ann",
		Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"other"}}}},
	})
	for _, path := range []string{"/body?reveal=1", "?reveal=1"} {
		stranger.get("/api/v1/letters/"+letters["field"]+path).want(t, 404)
	}
	// dlo refuses a request that needs the right to reveal before it reads the letter
	stranger.postJSON("/api/v1/letters/"+letters["field"]+"/reveal", `{"field":"customer.email"}`).want(t, 403)
	stranger.get("/api/v1/letters/export?reveal=1").want(t, 403)
}

// TestAnEditIsAReveal checks that the editor of a letter with masked values, its edit through the
// API and its bytes are for people who may reveal, show the values, and are audited.
func TestAnEditIsAReveal(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	id := letters["field"]
	audited := func(detail string, want int) {
		t.Helper()
		audit := h.get("/api/v1/audit?kind=revealed&limit=500").want(t, 200).text
		if n := strings.Count(audit, `"detail":"`+detail+`"`); n != want || betrayed(audit) {
			t.Errorf("%s: %d times in %s", detail, n, audit)
		}
	}
	page := h.get("/letters/"+id+"/edit").want(t, 200, canary+"@x", "this shows masked values").text
	audited("the editor", 1)
	m := regexp.MustCompile(`(?s)<textarea[^>]*>(.*?)</textarea>`).FindStringSubmatch(page)
	text := strings.Replace(html.UnescapeString(m[1]), canary+"@x", "eve@x", 1)
	form := url.Values{
		"from":   {"0"},
		"newest": {"0"},
		"key":    {field(t, page, "key")},
		"text":   {text},
		"reason": {"r"},
		"do":     {"check"},
	}
	h.post("/letters/"+id+"/edit", form).want(t, 200, "eve", canary)
	audited("an edit", 1)
	h.postJSON(
		"/api/v1/letters/"+id+"/revisions",
		`{"dry_run":true,"patch":[{"op":"replace","path":"/customer/email","value":"eve@x"}]}`,
	).want(t, 200, `"changed":["customer.email"]`, canary)
	audited("an edit", 2)
	h.postJSON(
		"/api/v1/letters/"+id+"/revisions", `{"dry_run":true,"json":`+maskedJSON(t, h, id)+`}`,
	).want(t, 400, "stands for a value that is masked")
	h.get("/letters/"+id+"?tab=raw").want(t, 200, "Reveal").wantNot(
		t, hex.EncodeToString([]byte(canary))[:2]+" "+hex.EncodeToString([]byte(canary))[2:4],
	)
	h.post("/letters/"+id+"/reveal", url.Values{"bytes": {"1"}, "tab": {"raw"}}).want(t, 200, canary[:8])
	audited("the whole body", 1)

	blind, letters, _ := maskedHouse(t, deadletter.Principal{
		Name:   "ann",
		Grants: []deadletter.Grant{{Role: deadletter.RoleEditor}},
	})
	id = letters["field"]
	blind.get("/letters/"+id+"/edit").want(t, 403).wantNot(t, canary)
	for _, edit := range []string{
		`"patch":[{"op":"add","path":"/note","value":"x"}]`, `"body":"eA=="`, `"headers":{"authorization":"y"}`,
	} {
		blind.postJSON("/api/v1/letters/"+id+"/revisions", `{"dry_run":true,`+edit+`}`).want(t, 403).wantNot(t, canary)
	}
	blind.post("/letters/"+id+"/reveal", url.Values{"bytes": {"1"}, "tab": {"raw"}}).want(t, 403)
	for _, patch := range []string{
		`[{"op":"test","path":"/customer/email","value":"` + canary + `@x"},{"op":"add","path":"/name","value":"x"}]`,
		`[{"op":"test","path":"/customer/email","value":"wrong"},{"op":"add","path":"/name","value":"x"}]`,
	} { // no answer tells whether the value is right
		blind.post("/letters/confirm", url.Values{
			"action": {"edit"}, "scope": {"some"}, "id": {id}, "patch": {patch}, "reason": {"r"},
		}).want(t, 200, "may not see masked data").wantNot(t, "another one in this letter")
	}
}

// maskedJSON returns the JSON of a letter's body as the API shows it.
func maskedJSON(t *testing.T, h *house, id string) string {
	t.Helper()
	var letter struct {
		Decoded struct{ JSON json.RawMessage }
	}
	h.get("/api/v1/letters/"+id).want(t, 200).json(t, &letter)
	return string(letter.Decoded.JSON)
}
