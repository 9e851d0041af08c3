package web

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web/view"
)

func TestTheValueInTheErrorIsMarked(t *testing.T) {
	t.Parallel()
	d := &payload.Document{
		Kind:   payload.Protobuf,
		Type:   "acme.T",
		Chosen: "the type property",
		Body:   make([]byte, 40),
		Fields: []payload.Node{
			{Number: 1, Name: "id", Value: "4821", Kind: payload.Number, Ranges: []payload.Range{{From: 0, To: 3}}},
			{
				Number: 4,
				Name:   "template",
				Kind:   payload.Message,
				Ranges: []payload.Range{{From: 10, To: 30}},
				Children: []payload.Node{
					{Number: 1, Name: "name", Value: `"welcome_v3"`, Kind: payload.String},
					{Number: 2, Name: "again", Value: `"welcome_v3"`, Kind: payload.String, Masked: true},
				},
			},
		},
	}
	failed := deadletter.Row{Error: `template "welcome_v3" of tenant 48213 not found`}
	v := decodedView(d, &deadletter.Letter{Row: failed}, payload.Range{})
	if v.Bytes == nil || v.Bytes.Title != "template" || v.Bytes.Marked != (payload.Range{From: 10, To: 30}) ||
		v.From != "by the type property" {
		t.Errorf("%+v", v)
	}
}

func TestTypesThatFitAreListed(t *testing.T) {
	t.Parallel()
	d := &payload.Document{Kind: payload.Binary, Body: []byte{8, 1}, Ranking: payload.Ranking{
		Verdict: payload.Ambiguous, Why: "ambiguous: a.A, a.B", Types: 2, Tied: 2,
		Matches: []payload.Match{
			{Type: "a.A", Score: 0.98, Why: []string{"whole body used", "2 of 3 fields present"}},
			{Type: "a.B", Score: 0.97},
		},
	}}
	if all := candidates(d); len(all) != 2 {
		t.Errorf("%+v", all)
	}
	if v := decodedView(
		d, &deadletter.Letter{}, payload.Range{},
	); v.Title != "2 types fit equally well." || v.Note != "Ambiguous: a.A, a.B." {
		t.Errorf("%+v", v)
	}
	for title, r := range map[string]payload.Ranking{
		"A message, or a text.":        {Verdict: payload.Ambiguous, Why: "ambiguous: a.A, or text", Tied: 1},
		"Not compared with all types.": {Verdict: payload.Ambiguous, Why: "too large", Tied: 1, Left: 3},
	} {
		if v := decodedView(&payload.Document{
			Kind: payload.Binary, Ranking: r,
		}, &deadletter.Letter{}, payload.Range{}); v.Title != title {
			t.Errorf("%q for %+v", v.Title, r)
		}
	}
	d.Kind, d.Type, d.Ranking.Verdict, d.ShapeOnly = payload.Protobuf, "a.A", payload.Matched, true
	if v := decodedView(d, &deadletter.Letter{}, payload.Range{}); len(v.Notes) != 1 ||
		!strings.HasPrefix(v.Notes[0], "Matched by shape only: ") {
		t.Errorf("%+v", v)
	}
	if d.Ranking.Verdict = payload.Unknown; candidates(d) != nil {
		t.Error("types that do not fit are listed")
	}
}

func TestTheErrorSaysWhichHeaderItIsFrom(t *testing.T) {
	t.Parallel()
	l := &deadletter.Letter{
		Row: deadletter.Row{
			Error: `TemplateMissing: template "welcome_v3" not found`,
		},
		Arrived: deadletter.Properties{Headers: deadletter.Table{
			"x-error-class": "TemplateMissing", "x-error-message": `template "welcome_v3" not found`, "short": "v3",
			"other": "something else", "n": int32(3),
		}},
	}
	if from := errorFrom(l); len(from) != 2 || from[1] != (view.Span{Text: "x-error-message", Code: true}) {
		t.Errorf("%+v", from)
	}
	l.Arrived.Headers = nil
	if from := errorFrom(l); from != nil {
		t.Errorf("%+v", from)
	}
}

func TestEachLayerIsShownUnlessSomethingIsMasked(t *testing.T) {
	t.Parallel()
	// The body is the base64 of the base64 of JSON.
	l := &deadletter.Letter{
		Row: deadletter.Row{
			ID: "019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae",
		},
		Body: []byte(base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(`{"card": "4111"}`))))),
	}
	d := (&payload.Decoder{}).Letter(l)
	for layer, want := range map[string]string{
		"": `{"card": "4111"}`, "1": "eyJjYXJkIjogIjQx", "0": "ZXlKallYSmtJam9n", "2": `{"card": "4111"}`,
		"received": `{"card": "4111"}`,
	} {
		v := raw(d, l, "", layer, payload.Range{}, false)
		if len(v.Layers) != 3 || v.Hex.Rows[0].ASCII != want {
			t.Errorf("layer %q shows %s: %+v", layer, v.Hex.Rows[0].ASCII, v.Layers)
		}
	}
	if v := raw(d, l, "", "0", payload.Range{}, true); len(v.Layers)+len(v.Hex.Rows) > 0 {
		t.Errorf("%+v", v)
	}
	edited := *l
	edited.Revised = &deadletter.Revision{
		Number: 1, Body: []byte(base64.StdEncoding.EncodeToString([]byte(`{"card": "none"}`))),
	}
	d = (&payload.Decoder{}).Letter(&edited)
	if v := raw(
		d, &edited, "", "received", payload.Range{}, false,
	); len(v.Layers) != 3 || !v.Layers[2].On || v.Hex.Rows[0].ASCII != "ZXlKallYSmtJam9n" ||
		v.Layers[1].Name != "As sent, base64" {
		t.Errorf("%+v", v)
	}
}
