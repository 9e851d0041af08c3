package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web"
)

// sample returns one exported line: a letter that died in the given queue.
func sample(number int, queue string) string {
	return fmt.Sprintf(`{"v":1,"id":"01a1f82e-3420-7%03d-8000-%012d","state":"dead","origin":{"broker":"main","vhost":"/","queue":%q,"exchange":"events","routing_key":"k"},"inbox":"dlo.letters","exchange":"dlo.dlx",`+
		`"routing_key":%q,"received_at":"2026-11-20T08:59:00Z","reason":"rejected","attempts":0,"type":"","error":"","why":"","properties":{"message_id":"m"},"headers":{"x-death":{"t":"array","v":[{"t":"table","v":`+
		`{"queue":{"t":"longstr","v":%[3]q},"reason":{"t":"longstr","v":"rejected"},"count":{"t":"int64","v":1}}}]}},"body":"eyJhIjogMX0="}`, number, number, queue, queue) + "\n"
}

// fakeDrains is the Drainer of the tests. It drains nothing, because there is no broker.
type fakeDrains struct{}

func (*fakeDrains) Start(
	_ context.Context, by deadletter.Principal, r deadletter.DrainRequest,
) (deadletter.Drain, error) {
	return deadletter.Drain{
		ID: "D-2", Broker: "main", VHost: "/", Queue: r.Queue, Origin: r.Origin, Asked: r.Count,
		State: deadletter.DrainRunning, By: by.Name, StartedAt: start,
	}, nil
}
func (*fakeDrains) Stop(context.Context, deadletter.Principal, string) error { return nil }
func (*fakeDrains) List() []deadletter.Drain {
	return []deadletter.Drain{
		{
			ID: "D-1", Broker: "main", VHost: "/", Queue: "old", State: deadletter.DrainStopped,
			Why: "stopped by local", By: "local", StartedAt: start, EndedAt: start,
		},
	}
}

// someFacts returns facts only for the queue "sms".
func someFacts(_ context.Context, o deadletter.Origin) deadletter.QueueFacts {
	f := deadletter.UnknownQueue
	if o.Queue == "sms" {
		f = deadletter.QueueFacts{Known: true, Exists: true, Ready: 7, Consumers: 0}
	}
	return f
}

// prepare creates what must exist before an example request of the API document can succeed, for
// example an operation or a binding.
func prepare(h *house, method, path string) {
	switch {
	case path == "/operations/{id}" && method == "GET": // the operation has letters that were skipped
		h.postJSON("/api/v1/operations", `{"action":"restore","q":"state:dead"}`).want(h.t, 202)
		h.advance()
	case strings.HasPrefix(path, "/operations/{id}"):
		h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:dead"}`).want(h.t, 202)
		if strings.HasSuffix(path, "/resume") {
			h.postJSON("/api/v1/operations/O-1/pause", "").want(h.t, 200)
		}
	case strings.HasPrefix(path, "/bindings") && method != "POST":
		h.postJSON("/api/v1/bindings", `{"queue":"sms","key":"k","type":"acme.notify.v1.SmsRequested"}`).want(h.t, 201)
	case path == "/letters/{id}": // the letter has an attempt
		h.postJSON(
			"/api/v1/operations", `{"action":"requeue","q":"state:dead queue:sms","hold":"0s","canary":0}`,
		).want(h.t, 202)
		h.advance()
		due, err := h.store.ClaimDue(h.t.Context(), "main", start, 10, deadletter.Allowance{
			Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
		})
		if err != nil || len(due) == 0 {
			h.t.Fatal(due, err)
		}
		for _, l := range due {
			if err := h.store.Mark(h.t.Context(), []deadletter.Mark{
				{
					Letter: l.Letter.ID, Token: l.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
					DueAt: start.Add(time.Hour),
				},
			}, deadletter.Noted{}); err != nil {
				h.t.Fatal(err)
			}
		}
	case path == "/operations" && method == "GET", path == "/audit":
		h.postJSON("/api/v1/operations", `{"action":"discard","q":"state:dead"}`).want(h.t, 202)
		h.advance()
	case path == "/rules/apply":
		h.wait("sms", 4)
		h.book.Replace(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}}})
	case strings.HasPrefix(path, "/views") && method != "POST":
		h.postJSON("/api/v1/views", `{"name":"all","query":""}`).want(h.t, 201)
	case strings.HasPrefix(path, "/users"):
		h.Users = identity.NewAccounts(h.store, nil)
		if path != "/users" || method != "POST" {
			h.postJSON("/api/v1/users", `{"name":"lena","role":"reader"}`).want(h.t, 201)
		}
	case strings.HasPrefix(path, "/tokens") && method != "POST":
		h.postJSON("/api/v1/tokens", `{"name":"ci","role":"reader"}`).want(h.t, 201)
	case path == "/trial" && method == "GET":
		h.Trials.(*staged).newest = &deadletter.Trial{
			Broker: "main", VHost: "/", State: deadletter.TrialDone, Letter: h.storeTrial(), StartedAt: start,
			RejectedAt: start, ArrivedAt: start, DecodedAt: start, RequeuedAt: start, AcceptedAt: start,
			SettledAt: start,
		}
	case strings.HasPrefix(path, "/brokers"):
		h.brokers[0].NextTry = start
	case strings.HasPrefix(path, "/topology"):
		h.Topology = looked{
			report(topology.Finding{
				Kind: topology.NoExchange, Severity: deadletter.SeverityNotify, Broker: "main", VHost: "/",
				Queue: "sms", Sure: topology.Certain, Since: start,
			}),
		}
		h.Adoption = &adopted{}
	case path == "/queues":
		h.postJSON("/api/v1/queues/pause", `{"queue":"sms","reason":"down"}`).want(h.t, 200)
		h.postJSON("/api/v1/groups/G-1/pause", `{"reason":"why"}`).want(h.t, 200)
	case path == "/queues/resume":
		h.postJSON("/api/v1/queues/pause", `{"queue":"sms"}`).want(h.t, 200)
	case path == "/groups/decisions" && method == "GET", path == "/groups/decisions/{id}/undo", path == "/groups" ||
		path == "/groups/{id}" && method == "GET":
		h.postJSON("/api/v1/deploys", `{"service":"s"}`).want(h.t, 201)
		h.patchJSON("/api/v1/groups/G-1", `{"owner":"ana","note":"n"}`).want(h.t, 200)
		h.postJSON("/api/v1/groups/G-2/merge", `{"groups":["G-1"]}`).want(h.t, 200)
		h.postJSON("/api/v1/groups/decisions/2/undo", ``).want(h.t, 200)
		h.postJSON("/api/v1/operations", `{"action":"discard","q":"group:G-1"}`).want(h.t, 202)
	case path == "/groups/{id}/split":
		h.postJSON("/api/v1/groups/G-2/merge", `{"groups":["G-1"]}`).want(h.t, 200)
	case path == "/deploys" && method == "GET":
		h.postJSON("/api/v1/deploys", `{"service":"s"}`).want(h.t, 201)
	case path == "/groups/{id}/resume":
		h.postJSON("/api/v1/groups/G-1/pause", `{}`).want(h.t, 200)
	case strings.HasPrefix(path, "/store/"):
		if err := h.store.Unproved(h.t.Context(), "main", "/", true); err != nil {
			h.t.Fatal(err)
		}
	case strings.HasPrefix(path, "/overrides") && method != "POST":
		h.postJSON("/api/v1/overrides", `{"queue":"sms","to":"sms2"}`).want(h.t, 201)
	}
}

// TestTheDocumentIsTrue sends every example of openapi.yaml to a server with letters. It checks
// requests and responses against their schemas in both directions. Everything that is described
// must be there, and everything that is there must be described.
func TestTheDocumentIsTrue(t *testing.T) {
	t.Parallel()
	d := readDocument(t, open(t))
	examples := 0
	for path, v := range d.root["paths"].(map[string]any) {
		for method, v := range v.(map[string]any) {
			operation, method := v.(map[string]any), strings.ToUpper(method)
			requests := 0
			if body, ok := d.resolve(operation["requestBody"]).(map[string]any); ok {
				for kind, v := range body["content"].(map[string]any) {
					for name, v := range d.valueAt(v, "examples").(map[string]any) {
						value, err := json.Marshal(d.valueAt(v, "value"))
						if err != nil {
							t.Fatal(err)
						}
						var plain any
						json.Unmarshal(value, &plain)
						if text, ok := plain.(string); ok && kind == "application/octet-stream" {
							value = []byte(text)
						}
						for _, wrong := range d.violations(
							d.valueAt(body, "content", kind, "schema"), plain, "request",
						) {
							t.Errorf("%s %s, example %s: %s", method, path, name, wrong)
						}
						d.example(t, method, path, name, operation, kind, value)
						requests++
					}
				}
			} else {
				d.example(t, method, path, "of parameters", operation, "", nil)
				d.example(t, method, path, "without parameters", withoutOptional(operation), "", nil)
				requests += 2
			}
			if requests == 0 {
				t.Errorf("%s %s has no example", method, path)
			}
			examples += requests
			d.refused(t, method, path, operation)
		}
	}
	for kind, v := range d.root["components"].(map[string]any) {
		for name := range v.(map[string]any) {
			if !d.used["#/components/"+kind+"/"+name] && kind != "securitySchemes" {
				t.Errorf("%s %s is described, and nothing was held to it", kind, name)
			}
		}
	}
	t.Logf("%d examples", examples)
}

// withoutOptional returns an operation of the document without its optional parameters.
func withoutOptional(operation map[string]any) map[string]any {
	copied := map[string]any{}
	for k, v := range operation {
		copied[k] = v
	}
	var needed []any
	for _, p := range list(operation["parameters"]) {
		if m, _ := p.(map[string]any); m["required"] == true || m["$ref"] != nil && !slices.Contains([]any{
			"#/components/parameters/q", "#/components/parameters/limit", "#/components/parameters/after",
		}, m["$ref"]) {
			needed = append(needed, p)
		}
	}
	copied["parameters"] = needed
	return copied
}

// example sends one request and checks its response against the document.
func (d *document) example(
	t *testing.T, method, path, name string, operation map[string]any, kind string, body []byte,
) {
	t.Helper()
	h := open(t, withRetries, withTypes, withLibrary, func(o *web.Options) {
		o.Hosts, o.Drains, o.Trials, o.Facts, o.Digests = nil, &fakeDrains{}, &staged{}, someFacts, digests{
			o.Store.(*store.Store),
		}
		o.Channels = &testedChannels{}
		if path == "/letters/{id}/reveal" {
			o.Header = payload.Masks{Headers: []string{"message-id"}}.Header
		}
	})
	h.importLines(sample(1, "sms")+sample(2, "sms")+sample(3, "email")).want(t, 200, `"imported":3`)
	h.receive("sms", 1, "x")
	prepare(h, method, path)
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Drain()
	values := url.Values{}
	where := path
	for _, p := range list(operation["parameters"]) {
		p := d.resolve(p).(map[string]any)
		example, ok := p["example"]
		switch {
		case p["in"] == "path":
			where = strings.ReplaceAll(where, "{"+p["name"].(string)+"}", url.PathEscape(fmt.Sprint(example)))
		case ok && p["in"] == "query":
			values.Set(p["name"].(string), fmt.Sprint(example))
		}
	}
	if len(values) > 0 {
		where += "?" + values.Encode()
	}
	r, err := http.NewRequest(method, server.URL+"/api/v1"+where, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		t.Errorf("%s %s, example %s: %d %s", method, where, name, answer.StatusCode, text)
		return
	}
	for _, wrong := range d.answer(operation, answer) {
		t.Errorf("%s %s, example %s: %s", method, where, name, wrong)
	}
}

// answer checks a response against the description that an operation gives for its status.
func (d *document) answer(operation map[string]any, answer *http.Response) []string {
	response, ok := d.valueAt(operation, "responses", fmt.Sprint(answer.StatusCode)).(map[string]any)
	if !ok {
		if response, ok = d.valueAt(
			operation, "responses", "default",
		).(map[string]any); !ok || answer.StatusCode < 400 {
			return []string{fmt.Sprintf("status %d is not described", answer.StatusCode)}
		}
	}
	content, ok := d.valueAt(response, "content").(map[string]any)
	if !ok {
		if rest, _ := io.ReadAll(answer.Body); len(rest) > 0 {
			return []string{"a body is answered, and none is described"}
		}
		return nil
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	described, ok := content[kind]
	if !ok {
		return []string{kind + " is not described"}
	}
	schema := d.valueAt(described, "schema")
	if ref, ok := described.(map[string]any)["schema"].(map[string]any); ok {
		schema = ref
	}
	var wrong []string
	switch kind {
	case "application/json", "application/problem+json":
		var v any
		if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
			return []string{err.Error()}
		}
		wrong = d.violations(schema, v, "answer")
	case "application/x-ndjson":
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			var v any
			if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
				return []string{err.Error()}
			}
			wrong = append(wrong, d.violations(schema, v, "line")...)
		}
	}
	return wrong
}

// refused sends an unknown parameter, or a body that no call accepts. The response must be an error
// in the form that openapi.yaml describes.
func (d *document) refused(t *testing.T, method, path string, operation map[string]any) {
	t.Helper()
	if slices.Contains([]string{
		"/openapi.yaml", "/events", "/letters/{id}/body",
	}, path) || method == "DELETE" || strings.HasSuffix(path, "/cancel") || strings.HasSuffix(path, "/pause") ||
		strings.HasSuffix(path, "/resume") || strings.HasSuffix(path, "/stop") {
		return // these operations ignore parameters
	}
	h := open(t, withRetries, func(o *web.Options) { o.Drains, o.Trials = &fakeDrains{}, &staged{} })
	rec := httptest.NewRecorder()
	r := request(method, "/api/v1"+strings.ReplaceAll(path, "{id}", "7")+"?nonsense=1", "nonsense")
	r.Host = "dlo.example"
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(rec, r)
	if rec.Code < 400 || rec.Code >= 500 {
		t.Errorf("%s %s with nonsense: %d", method, path, rec.Code)
		return
	}
	for _, wrong := range d.answer(operation, rec.Result()) {
		t.Errorf("%s %s with nonsense: %s", method, path, wrong)
	}
}
