package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/deadletteroffice/dlo/internal/deadletter"
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

// TestAnswersAreAsDescribed holds the answers to GET calls of a server with letters to the OpenAPI
// document.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, withTypes, withLibrary, func(o *web.Options) {
		o.Facts = someFacts
	})
	h.importLines(sample(1, "sms")+sample(2, "sms")+sample(3, "email")).want(t, 200, `"imported":3`)
	id := string(h.receive("sms", 1, "x")[0])
	h.postJSON("/api/v1/operations", `{"action":"requeue","ids":["`+id+`"],"reason":"r"}`).want(t, 202)
	h.postJSON("/api/v1/deploys", `{"service":"sms"}`).want(t, 201)
	h.postJSON("/api/v1/views", `{"name":"n","query":"state:dead"}`).want(t, 201)
	h.postJSON("/api/v1/groups/decisions", `{"groups":["G-1"],"note":"n"}`).want(t, 200)
	doc := web.Document()
	answered := 0
	for path, item := range doc.Paths {
		if item.Get == nil || item.Get.Responses["200"] == nil {
			continue
		}
		kind := item.Get.Responses["200"].Content["application/json"]
		if kind == nil || path == "/letters/export" {
			continue
		}
		where := strings.NewReplacer(
			"/letters/{id}", "/letters/"+id, "/groups/{id}", "/groups/G-1", "/operations/{id}", "/operations/O-1",
			"/types/proto", "/types/proto?type=acme.notify.v1.EmailRequested",
		).Replace(path)
		a := h.get("/api/v1" + where)
		if a.StatusCode == http.StatusNotFound {
			t.Logf("%s: %s", where, a.text)
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(a.want(t, 200).text), &v); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		answered++
		found := &huma.ValidateResult{}
		huma.Validate(doc.Components.Schemas, kind.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, found)
		for _, wrong := range found.Errors {
			t.Errorf("%s: %v", where, wrong)
		}
	}
	if answered < 20 {
		t.Errorf("only %d calls were answered", answered)
	}
}
