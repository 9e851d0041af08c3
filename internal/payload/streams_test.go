package payload

import (
	"bytes"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"google.golang.org/protobuf/encoding/protowire"
)

// TestStreams reads bodies that hold several messages in frames. None may be read as one message,
// and nothing that a mask hides in the type may show, in known or in unknown fields.
func TestStreams(t *testing.T) {
	t.Parallel()
	const cards = `syntax = "proto2"; package pay;
message Card { optional string name = 1; optional string number = 2 [debug_redact = true]; optional int64 cents = 3; }`
	const secret = "4111222233334444"
	kafka := func(b []byte) []byte { return confluent(42, []byte{0}, b) }
	card, short := pair("the owner of it", secret), pair("", secret)
	// whose length, read as a tag, is that of a field
	name := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "41112222")
	d := &Decoder{
		Types:    registry(t, "pay", cards),
		Bindings: []deadletter.Binding{{Queue: "cards", Type: "pay.Card"}},
	}
	number := deadletter.MaskedField{Type: "pay.Card", Path: deadletter.FieldPath{"number"}}
	for what, c := range map[string]struct {
		body []byte
		says string
	}{
		"delimited":                     {wire(delimited(card), delimited(card)), "2 length-delimited messages one after another"},
		"delimited, of other lengths":   {wire(delimited(card), delimited(short), delimited(card)), "3 length-delimited messages"},
		"delimited, an empty one":       {wire(delimited(card), delimited(nil)), "2 length-delimited messages"},
		"delimited, an empty one first": {wire(delimited(nil), delimited(card)), "2 length-delimited messages"},
		"delimited, as one message":     {wire(delimited(name), delimited(name)), "2 length-delimited messages"},
		"gRPC":                          {wire(grpc(card), grpc(short)), "2 gRPC messages"},
		"Confluent":                     {wire(kafka(card), kafka(short)), "2 Confluent messages"},
		"gRPC in base64":                {encodeStd(wire(grpc(card), grpc(short))), "2 gRPC messages"},
		"delimited and garbage":         {append(delimited(card), 0x0a, 0x03, 'a', 'b', 'c'), ""},
		"delimited and bad garbage":     {append(delimited(card), 0xff, 0xff), ""},
		"gRPC and garbage":              {append(grpc(card), "abc"...), ""},
		"an unknown field":              {append(pair("name", ""), wire([]byte{0x7a, 16}, []byte(secret))...), ""},
		"an unknown field, a message":   {append(pair("name", ""), wire([]byte{0x7a, 18, 0x12, 16}, []byte(secret))...), ""},
		"a field of another wire type":  {append(pair("name", ""), wire([]byte{0x1a, 16}, []byte(secret))...), ""},
	} {
		for _, mask := range []*Mask{nil, {Fields: []deadletter.MaskedField{number}}} {
			masked := *d
			masked.Mask = mask
			for _, h := range []Hints{{Queue: "cards"}, {}} {
				if h.Queue == "" && (strings.Contains(what, " field") || strings.Contains(what, "base64")) {
					continue
				}
				doc := masked.Decode(c.body, h, nil)
				shown := shownTexts(doc) + Words(doc) + strings.Join(doc.Notes, "") + Summary(doc, "") + stepsText(doc)
				if strings.Contains(shown, "11122") || !masked.BytesMasked(doc) {
					t.Errorf("%s, %+v: shown: %s", what, h, shown)
				}
				if c.says != "" && h.Queue != "" && (doc.Kind != Binary || !strings.Contains(doc.Problem, c.says)) {
					t.Errorf("%s, %+v: %s, problem %q\n%s", what, h, doc.Kind, doc.Problem, stepsText(doc))
				}
				if _, err := masked.Editable(c.body, h, nil); c.says != "" && h.Queue != "" && err == nil {
					t.Errorf("%s can be edited", what)
				}
			}
		}
		plain := d.Revealed().Decode(c.body, Hints{Queue: "cards"}, nil)
		if plain.Masked || !bytes.Contains(plain.Body, []byte("11122")) {
			t.Errorf("%s: revealed, masked %v", what, plain.Masked)
		}
	}
	// without a mask, a queue of two types, and a message that is a stream only by chance
	open := &Decoder{Types: registry(t, "shop", parcels)}
	for what, body := range map[string][]byte{
		"matched":   wire(delimited(parcel("left at the gateway")), delimited(parcel("left"))),
		"ambiguous": wire(delimited(pair("first text", "second text")), delimited(pair("a third text", "a fourth"))),
	} {
		doc := open.Decode(body, Hints{}, nil)
		if !strings.Contains(doc.Problem, "2 length-delimited messages") || doc.Masked || len(doc.Fields) > 0 {
			t.Errorf("%s: %q\n%s", what, doc.Problem, stepsText(doc))
		}
	}
	if doc := open.Decode(parcel("left at the gateway"), Hints{Type: parcelType}, nil); doc.Type != parcelType {
		t.Errorf("one message: %s\n%s", doc.Kind, stepsText(doc))
	}
	declared := Hints{ContentType: `application/x-protobuf; type="pay.Card"`}
	if doc := d.Decode([]byte{0}, declared, nil); doc.Kind != Empty || layerNames(doc) != "length-delimited" {
		t.Errorf("an empty message: %s in %q\n%s", doc.Kind, layerNames(doc), stepsText(doc))
	}
}
