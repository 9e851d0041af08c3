package web_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// orderHouse returns a dlo for tests whose letters all have the order id A-1. The letters "message"
// and "JSON of the type" are of a registered type, so their field has the names order_id and
// orderId. The other letters are JSON without a type, and have exactly the name that they are
// called by.
func orderHouse(t *testing.T, fields []string, masks payload.Masks) (h *house, letters map[string]deadletter.ID) {
	t.Helper()
	types := descriptor.NewRegistry()
	const shop = `syntax = "proto3"; package shop; message Buyer { string full_name = 1; }
		message Order { string order_id = 1; Buyer buyer = 2; string batch = 3 [json_name = "lot"]; }`
	if _, err := types.AddSource("shop", fstest.MapFS{"shop.proto": {Data: []byte(shop)}}); err != nil {
		t.Fatal(err)
	}
	decoder := &payload.Decoder{Types: types, Mask: masks.Body()}
	now := func() *payload.Decoder { return decoder }
	h = open(t, withRetries, func(o *web.Options) { o.Decoder, o.Masked, o.Fields = now, masks.Field, fields })
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, nil)
	log := slog.New(slog.DiscardHandler)
	clock := func() time.Time { return start }
	h.classifier = classify.New(h.store, classify.Options{
		Decoder: now, Rules: h.book, Targets: targets, Now: clock, Log: log,
	})
	death := deadletter.Table{
		"queue":        "orders",
		"exchange":     "shop",
		"reason":       "rejected",
		"count":        int64(1),
		"routing-keys": []any{"k"},
		"time":         start,
	}
	arrival := func(typ, media, body string) deadletter.Arrival {
		p := deadletter.Properties{Type: typ, ContentType: media, Headers: deadletter.Table{"x-death": []any{death}}}
		return deadletter.Arrival{Exchange: "dlo.dlx", RoutingKey: "orders", Body: []byte(body), Properties: p}
	}
	ids := h.take(
		arrival("shop.Order", "", "\x0a\x03A-1\x12\x05\x0a\x03Ann\x1a\x02b7"),
		arrival("shop.Order", "application/json", `{"orderId": "A-1", "buyer": {"full_name": "Ann"}, "lot": "b7"}`),
		arrival("", "", `{"order_id": "A-1", "buyer": {"full_name": "Ann"}, "batch": "b7"}`),
		arrival("", "", `{"orderId": "A-1", "buyer": {"fullName": "Ann"}, "lot": "b7"}`),
	)
	letters = map[string]deadletter.ID{
		"message": ids[0], "JSON of the type": ids[1], "order_id": ids[2], "orderId": ids[3],
	}
	if n, err := h.classifier.Step(t.Context()); n != len(ids) || err != nil {
		t.Fatal(n, err)
	}
	o := classify.IndexerOptions{
		Decoder: now, Hide: masks.Text, Masks: masks.Names(), Text: true, Fields: fields, Log: log,
	}
	if n, err := classify.NewIndexer(h.store, o).Step(t.Context()); n != len(ids) || err != nil {
		t.Fatal(n, err)
	}
	return h, letters
}

// TestBothNamesOfAFieldAreRight checks that everything that takes a path of a body takes the names
// of the schema and the JSON names alike. In JSON without a type, they are different fields.
func TestBothNamesOfAFieldAreRight(t *testing.T) {
	t.Parallel()
	plain := func(asked string) string { // the letter without a type that has the name
		if slices.Contains([]string{"order_id", "buyer.full_name", "batch"}, asked) {
			return "order_id"
		}
		return "orderId"
	}
	names := []string{"order_id", "orderId", "buyer.full_name", "buyer.fullName"}
	value := func(asked string) string {
		return map[bool]string{true: "Ann", false: "A-1"}[strings.HasPrefix(asked, "buyer")]
	}
	found := func(t *testing.T, h *house, letters map[string]deadletter.ID, q, asked string) {
		t.Helper()
		var out api.Letters
		h.get("/api/v1/letters?q="+url.QueryEscape(q)).want(t, 200).json(t, &out)
		var got []string
		for name, id := range letters {
			if slices.ContainsFunc(out.Letters, func(l deadletter.Row) bool { return l.ID == id }) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if want := fmt.Sprint([]string{"JSON of the type", "message", plain(asked)}); fmt.Sprint(got) != want {
			t.Errorf("%s: found %v, want %s", q, got, want)
		}
	}
	t.Run("looked for", func(t *testing.T) {
		h, letters := orderHouse(t, nil, payload.Masks{})
		for _, asked := range append(names, "batch", "lot") {
			found(t, h, letters, "body."+asked+":*", asked)
		}
	})
	for _, fields := range [][]string{{"order_id", "buyer.full_name"}, {"orderId", "buyer.fullName"}} {
		t.Run("indexed as "+fields[0], func(t *testing.T) {
			h, letters := orderHouse(t, fields, payload.Masks{})
			for _, asked := range names {
				q := "body." + asked + ":" + value(asked)
				found(t, h, letters, q, asked)
				h.get("/letters?q="+url.QueryEscape(q)).want(
					t, 200, "3 match", `name="toggle" value="`+q+`" aria-pressed="true"`,
				)
				h.get("/api/v1/letters/count?q="+url.QueryEscape(q)).want(t, 200, `"count":3`)
				facet := fmt.Sprintf(`"body.%s":[{"value":"%s","count":3}]`, asked, value(asked))
				h.get("/api/v1/letters/facets?q="+url.QueryEscape(q)).want(t, 200, facet)
				h.get("/letters/complete?q="+url.QueryEscape("body."+asked+":")+"&at=99").want(t, 200, `"`+q+`"`)
				begun := "body." + asked[:len(asked)-1]
				h.get("/letters/complete?q="+begun+"&at=99").want(
					t, 200, `"body.`+names[slices.Index(names, asked)/2*2]+`:"`,
				)
				h.postJSON(
					"/api/v1/operations", `{"action":"discard","dry_run":true,"q":"`+q+`"}`,
				).want(t, 200, `"eligible":3`)
			}
		})
	}
	t.Run("rules and patches", func(t *testing.T) {
		h, letters := orderHouse(t, nil, payload.Masks{})
		for _, asked := range names {
			for name, id := range letters {
				l, err := h.store.Letter(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				has := len(name) > len("order_id") || name == "message" || name == plain(asked)
				values, ok := h.classifier.Facts(&l).Field(asked)
				if ok != has || has && !slices.Equal(values, []string{value(asked)}) {
					t.Errorf("rules: %s of %s is %v", asked, name, values)
				}
				pointer := "/" + strings.ReplaceAll(asked, ".", "/")
				patch := `[{"op":"test","path":"` + pointer + `","value":"` + value(asked) +
					`"},{"op":"replace","path":"` + pointer + `","value":"x"}]`
				a := h.postJSON("/api/v1/letters/"+string(id)+"/revisions", `{"dry_run":true,"patch":`+patch+`}`)
				if has != (a.StatusCode == 200) || !has && !strings.Contains(a.text, "there is no such value") {
					t.Errorf("patch: %s of %s: %d %s", asked, name, a.StatusCode, a.text)
				}
			}
		}
	})
	for _, masked := range []string{"order_id", "orderId"} {
		t.Run("masked as "+masked, func(t *testing.T) {
			path := deadletter.FieldPath{masked}
			masks := payload.Masks{
				Fields: []deadletter.MaskedField{{Type: "shop.*", Path: path}},
				JSON:   []deadletter.FieldPath{path},
			}
			h, letters := orderHouse(t, []string{"buyer.full_name"}, masks)
			for _, asked := range names[:2] {
				for _, address := range []string{
					"/letters", "/api/v1/letters", "/api/v1/letters/count", "/api/v1/letters/facets",
				} {
					h.get(address+"?q=body."+asked+":A-1").want(
						t, 400, "body."+asked+" is masked: letters cannot be found by it",
					)
				}
				for _, name := range []string{"message", "JSON of the type", asked} {
					h.postJSON(
						"/api/v1/letters/"+string(letters[name])+"/reveal", `{"field":"`+asked+`"}`,
					).want(t, 200, "A-1")
				}
			}
			for name, id := range letters {
				if a := h.get("/api/v1/letters/"+string(id)).want(t, 200); strings.Contains(a.text, "A-1") {
					t.Errorf("%s is not hidden: %s", name, a.text)
				}
			}
			h.get("/api/v1/letters?q=A-1").want(t, 200, `"letters":[]`)
		})
	}
}
