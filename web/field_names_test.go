package web_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// TestCompletionsKnowTheTypes checks that completions stop offering a value as soon as a new
// version of its type, or another binding, hides it.
func TestCompletionsKnowTheTypes(t *testing.T) {
	t.Parallel()
	types := descriptor.NewRegistry()
	add := func(option string) {
		t.Helper()
		source := `syntax = "proto3"; package shop; message Order { string note = 1` + option + `; string batch = 2; }
			message Bound { string batch = 2 [debug_redact = true]; }`
		if _, err := types.AddSource("shop", fstest.MapFS{"shop.proto": {Data: []byte(source)}}); err != nil {
			t.Fatal(err)
		}
	}
	add("")
	decoder := &payload.Decoder{Types: types}
	now := func() *payload.Decoder { return decoder }
	h := open(t, withRetries, func(o *web.Options) { o.Decoder = now })
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, nil)
	h.classifier = classify.New(h.store, classify.Options{
		Decoder: now, Rules: h.book, Targets: targets, Now: func() time.Time { return start },
		Log: slog.New(slog.DiscardHandler),
	})
	for typ, body := range map[string]string{"shop.Order": `{"note": "canary-note"}`, "": `{"batch": "canary-batch"}`} {
		h.take(deadletter.Arrival{
			Exchange: "dlo.dlx", RoutingKey: "orders", Body: []byte(body),
			Properties: deadletter.Properties{Type: typ, ContentType: "application/json"},
		})
	}
	if n, err := h.classifier.Step(t.Context()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	shown := func() string {
		t.Helper()
		text := ""
		for _, q := range []string{"body.note:&at=10", "body.batch:&at=11", "body.&at=5"} {
			text += h.get("/letters/complete?q="+q).want(t, 200).text
		}
		return text
	}
	if text := shown(); strings.Count(text, "canary-note") != 2 || strings.Count(text, "canary-batch") != 2 {
		t.Fatal(text)
	}
	add(" [debug_redact = true]")
	if text := shown(); strings.Contains(text, "canary-note") || strings.Count(text, "canary-batch") != 2 {
		t.Errorf("with another version of the type: %s", text)
	}
	decoder = &payload.Decoder{Types: types, Bindings: []deadletter.Binding{{Queue: "*", Type: "shop.Bound"}}}
	if text := shown(); strings.Contains(text, "canary") {
		t.Errorf("with another binding: %s", text)
	}
}
