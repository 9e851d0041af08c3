package payload

import (
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

var digits16 = regexp.MustCompile(`[0-9]{16}`)

// pattern masks numbers of 16 digits anywhere, and the whole field to.address in types of
// acme.notify.
var pattern = Masks{
	Patterns: []*regexp.Regexp{digits16},
	Fields:   []deadletter.MaskedField{{Type: "acme.notify.*", Path: []string{"to", "address"}}},
}.Body()

// shownTexts returns all texts that a document shows.
func shownTexts(d *Document) string {
	all := []string{d.JSON, d.Text, Summary(d, ""), d.Problem, strings.Join(d.Notes, "\n"), stepsText(d)}
	var walk func([]Node)
	walk = func(nodes []Node) {
		for i := range nodes {
			n := &nodes[i]
			all = append(all, n.Name, n.Value, n.Note, n.Type, n.text)
			walk(n.Children)
		}
	}
	walk(d.Fields)
	h := d.Hexdump(1 << 20)
	var raw strings.Builder
	for _, r := range h.Rows {
		all = append(all, r.ASCII)
		raw.WriteString(strings.ReplaceAll(r.Hex, " ", ""))
	}
	b, _ := hex.DecodeString(raw.String())
	return strings.Join(append(all, string(b)), "\n")
}

func TestMaskedIsMaskedEverywhere(t *testing.T) {
	t.Parallel()
	const card = "4111111111111111"
	b64 := "NDExMTExMTExMTExMTExMQ==" // the base64 of card
	kinds := func(json string) []byte { return encode(t, "Kinds", json) }
	tests := []struct {
		name string
		body []byte
		h    Hints
	}{
		{"string", kinds(`{"tags": ["a", "` + card + `"]}`), Hints{Type: "Kinds"}},
		{"inside of a string", kinds(`{"email": "card ` + card + `!"}`), Hints{Type: "Kinds"}},
		{"number", kinds(`{"total": "` + card + `"}`), Hints{Type: "Kinds"}},
		{"signed number", kinds(`{"balance": "-` + card + `"}`), Hints{Type: "Kinds"}},
		{"fixed number", kinds(`{"offset": "` + card + `"}`), Hints{Type: "Kinds"}},
		{"bytes", encode(t, email, `{"idempotencyKey": "`+b64+`"}`), Hints{Type: email}},
		{"map value", encode(t, email, `{"variables": {"card": "`+card+`"}}`), Hints{Type: email}},
		{"map key", encode(t, email, `{"variables": {"`+card+`": "x"}}`), Hints{Type: email}},
		{"map of messages", kinds(`{"people": {"1": {"address": "` + card + `"}}}`), Hints{Type: "Kinds"}},
		{"struct", kinds(`{"extra": {"card": ["` + card + `"]}}`), Hints{Type: "Kinds"}},
		{"struct key", kinds(`{"extra": {"` + card + `": 1}}`), Hints{Type: "Kinds"}},
		{"value", kinds(`{"anyValue": "` + card + `"}`), Hints{Type: "Kinds"}},
		{"wrapper", kinds(`{"note": "` + card + `"}`), Hints{Type: "Kinds"}},
		{
			"any",
			kinds(`{"detail": {"@type": "x/acme.notify.v1.EmailAddress", "address": "` + card + `"}}`),
			Hints{Type: "Kinds"},
		},
		{
			"any of a well-known type",
			kinds(`{"detail": {"@type": "x/google.protobuf.StringValue", "value": "` + card + `"}}`),
			Hints{Type: "Kinds"},
		},
		{
			"unknown field",
			append(kinds(`{"count": 1}`), payloadtest.LengthPrefixed(999, []byte("x"+card))...),
			Hints{Type: "Kinds"},
		},
		{
			"unknown message",
			append(
				kinds(`{"count": 1}`),
				payloadtest.LengthPrefixed(
					999, payloadtest.LengthPrefixed(1, payloadtest.LengthPrefixed(2, []byte(card))),
				)...,
			),
			Hints{Type: "Kinds"},
		},
		{
			"overridden by a later one",
			append(payloadtest.LengthPrefixed(11, []byte(card)), payloadtest.LengthPrefixed(11, []byte("b"))...),
			Hints{Type: "Kinds"},
		},
		{
			"group",
			encode(t, "acme.odd.Order", `{"id": "1", "line": {"sku": "`+card+`"}}`),
			Hints{Type: "acme.odd.Order"},
		},
		{
			"extension",
			encode(t, "acme.odd.Order", `{"id": "1", "[acme.odd.remark]": "`+card+`"}`),
			Hints{Type: "acme.odd.Order"},
		},
		{
			"beyond the tree",
			kinds(`{"tags": [` + strings.Repeat(`"x",`, 3000) + `"` + card + `"]}`),
			Hints{Type: "Kinds"},
		},
		{"path", encode(t, email, `{"requestId": "r", "to": {"address": "`+card+`"}}`), Hints{Type: email}},
		{"JSON string", []byte(`{"a":{"b":["` + card + `"]}}`), Hints{}},
		{"JSON string with escapes", []byte(`{"a":"\u0034111111111111111"}`), Hints{}},
		{"JSON number", []byte(`{"a":` + card + `}`), Hints{}},
		{"JSON name", []byte(`{"` + card + `":1}`), Hints{}},
		{"text", []byte("card " + card + "\n"), Hints{}},
		{"bytes around text", []byte("\x00\x01card " + card + "\x00\xff"), Hints{}},
		{"text in a message that does not parse", []byte("\x0a\x05abc" + card), Hints{Type: email}},
		{"base64", encodeStd(kinds(`{"tags": ["a", "` + card + `"]}`)), Hints{Type: "Kinds"}},
		{"zstd", zstded(t, kinds(`{"tags": ["a", "`+card+`"]}`)), Hints{Type: "Kinds"}},
		{"Confluent", confluent(7, []byte{0}, kinds(`{"tags": ["a", "`+card+`"]}`)), Hints{Type: "Kinds"}},
		{"data of a CloudEvent", cloudEvent("", `"data": {"a": "`+card+`"}`), Hints{ContentType: ce}},
		{"text of a CloudEvent", cloudEvent("text/plain", `"data": "card `+card+`"`), Hints{ContentType: ce}},
		{
			"protobuf of a CloudEvent",
			cloudEvent(
				"application/protobuf; messageType=Kinds",
				`"data_base64": "`+string(encodeStd(kinds(`{"tags": ["`+card+`"]}`)))+`"`,
			),
			Hints{ContentType: ce},
		},
		{
			"beside the data of a CloudEvent",
			cloudEvent("", `"data": {"a": 1}, "subject": "`+card+`"`),
			Hints{ContentType: ce},
		},
		{
			"name beside the data of a CloudEvent",
			cloudEvent("", `"data": {"a": 1}, "`+card+`": 1`),
			Hints{ContentType: ce},
		},
		{
			"data schema of a CloudEvent",
			cloudEvent("application/protobuf", `"data_base64": "CAE=", "dataschema": "`+card+`"`),
			Hints{ContentType: ce},
		},
		{
			"content type of a CloudEvent",
			cloudEvent("application/protobuf; messageType="+card, `"data_base64": "CAE="`),
			Hints{ContentType: ce},
		},
		{
			"type of a CloudEvent",
			[]byte(`{"specversion":"1.0","type":"` + card + `","source":"s","id":"i","data":1}`),
			Hints{ContentType: ce},
		},
		{
			"around a CloudEvent in a CloudEvent",
			cloudEvent(ce, `"subject": "`+card+`", "data": `+string(cloudEvent("", `"data": 1`))),
			Hints{ContentType: ce},
		},
		{
			"MassTransit message",
			[]byte(`{"messageType":["urn:message:A:B"],"message":{"card":"` + card + `"}}`),
			Hints{ContentType: mt},
		},
		{
			"MassTransit type",
			[]byte(`{"messageType":["urn:message:A:` + card + `"],"message":{}}`),
			Hints{ContentType: mt},
		},
		{"EasyNetQ message", easyNetQOf(`{"card":"`+card+`"}`, "application/json", ""), Hints{Type: easyNetQType}},
		{"EasyNetQ type", easyNetQOf(`hello there`, "application/json", card), Hints{Type: easyNetQType}},
		{"EasyNetQ exception", []byte(strings.Replace(easyNetQBody, "no price", card, 1)), Hints{Type: easyNetQType}},
		{
			"EasyNetQ exception that is cut",
			[]byte(strings.Replace(easyNetQBody, "System.AggregateException", strings.Repeat("x", 290)+card, 1)),
			Hints{Type: easyNetQType},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plain := (&Decoder{Types: schemas()}).Decode(tt.body, tt.h, nil)
			if plain.Masked {
				t.Error("masked without a mask")
			}
			doc := (&Decoder{Types: schemas(), Mask: pattern}).Decode(tt.body, tt.h, nil)
			if !doc.Masked || doc.Kind != plain.Kind {
				t.Errorf("masked %v, kind %s, %s", doc.Masked, doc.Kind, doc.Problem)
			}
			all := shownTexts(doc)
			for _, secret := range []string{
				card, b64[:20], hex.EncodeToString([]byte(card)), strings.TrimSuffix(hexGroups([]byte(card)), " "),
			} {
				if strings.Contains(all, secret) {
					t.Errorf("%q is shown in %s", secret, all)
				}
			}
			if doc.JSON != "" && !json.Valid([]byte(doc.JSON)) {
				t.Errorf("JSON %s", doc.JSON)
			}
		})
	}
}

func TestMaskLeavesTheRest(t *testing.T) {
	t.Parallel()
	doc := (&Decoder{Types: schemas(), Mask: pattern}).Decode(sample(t), Hints{Type: email}, nil)
	if n := nodeAt(t, doc, "to", "address"); n.Value != "••••" || !n.Masked {
		t.Errorf("address %+v", n)
	}
	if n := nodeAt(t, doc, "to", "display_name"); n.Value != `"Dana Whitfield"` || n.Masked {
		t.Errorf("name %+v", n)
	}
	if rows := doc.Hexdump(4096).Rows; len(rows) > 0 {
		t.Errorf("rows %+v", rows)
	}
	if !strings.Contains(doc.JSON, `"address": "••••"`) || !strings.Contains(Summary(doc, ""), "to.address: ••••") {
		t.Errorf("JSON %s\nsummary %s", doc.JSON, Summary(doc, ""))
	}
	if got, ok := doc.field("to.address"); got != "••••" || !ok {
		t.Errorf("field %q", got)
	}
}

// TestMaskedEnvelopeShowsItsData checks an envelope with a masked value beside the data. The bytes
// must be hidden, but not the data.
func TestMaskedEnvelopeShowsItsData(t *testing.T) {
	t.Parallel()
	d := &Decoder{Mask: pattern}
	doc := d.Decode(cloudEvent("", `"data": {"a": 1}, "subject": "4111111111111111"`), Hints{ContentType: ce}, nil)
	if !doc.Masked || doc.JSON != "{\n  \"a\": 1\n}" || len(doc.Hexdump(16).Rows) > 0 {
		t.Errorf("masked %v, JSON %s", doc.Masked, doc.JSON)
	}
	if doc := d.Decode(cloudEvent("", `"data": {"a": 1}`), Hints{ContentType: ce}, nil); doc.Masked {
		t.Error("masked without a reason")
	}
}
