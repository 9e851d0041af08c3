package payload

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestNewFieldsOfTheOnlyTypeOfAQueue covers a queue whose earlier letters all have one type. A
// message of this type with new fields must be decoded as this type, raw and in base64. The new
// fields must be reported.
func TestNewFieldsOfTheOnlyTypeOfAQueue(t *testing.T) {
	t.Parallel()
	d := &Decoder{
		Types: registryOf(
			t,
			"Order string int64 string; Other int64 bool bytes; Pair string string; Wide string int64 string int64 bytes bytes bytes",
		),
	}
	text := func(n protowire.Number, s string) string {
		return string(payloadtest.LengthPrefixed(n, []byte(s)))
	}
	number := func(n protowire.Number, v uint64) string {
		return string(protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v))
	}
	order := text(1, "order-1234567890") + number(2, 300) + text(3, "two green apples, and a pear")
	only := Hints{Only: "a.Order"}
	for _, tt := range []struct {
		name string
		body string
		h    Hints
		note string // "" = the body does not get the type
	}{
		{
			"a text", order + text(17, "seventeen bytes.."), only,
			"fields that are not in the registered a.Order: 17 (length-delimited, looks like string). The producer",
		},
		{
			"a number before the others", number(9, 1) + order, only,
			"fields that are not in the registered a.Order: 9 (varint, looks like int64?). The producer",
		},
		{
			"two", order + number(4, 7) + text(5, "abc"), only,
			"fields that are not in the registered a.Order: 4 (varint, looks like int64?), 5 (length-delimited, looks like string). The",
		},
		{"another type knows all by chance", order + number(4, 7), only, "fields that are not in"},
		{"the queue has other types too", order + text(17, "seventeen bytes.."), Hints{}, ""},
		{"the queue has another type", order + text(17, "seventeen bytes.."), Hints{Only: "a.Other"}, ""},
		{"a type that is gone", order + text(17, "seventeen bytes.."), Hints{Only: "a.Gone"}, ""},
		{"more than three tenths are new", order + text(17, strings.Repeat("x", 30)), only, ""},
		{
			"a field of another wire type",
			text(1, "order-1234567890") + text(2, "2") + text(3, "two green apples, and a pear"), only, "",
		},
		{
			"a damaged text",
			text(1, "order\x00\x01\x02\x03\x04567890") + number(2, 300) + text(
				3, "two green apples,\x01\x02\x03\x04",
			) + number(9, 1),
			only, "",
		},
		{"too little of it", number(2, 300) + number(9, 1) + number(2, 5) + number(2, 5), only, ""},
		{"another type knows all", text(1, "order-1234567890") + text(2, "a text, where the order has none"), only, ""},
	} {
		for how, body := range map[string][]byte{"raw": []byte(tt.body), "base64": encodeStd([]byte(tt.body))} {
			doc := d.Decode(body, tt.h, nil)
			if tt.note == "" {
				if doc.Type == "a.Order" {
					t.Errorf("%s, %s: read as %s: %v", tt.name, how, doc.Type, doc.Notes)
				}
				continue
			}
			if doc.Type != "a.Order" || doc.Reading() != deadletter.ReadByMatch || doc.UnknownFields == 0 ||
				!strings.Contains(strings.Join(doc.Notes, "\n"), tt.note) {
				t.Errorf(
					"%s, %s: read as %q, %d unknown: %v; %s", tt.name, how, doc.Type, doc.UnknownFields, doc.Notes,
					stepsText(doc),
				)
			}
			if how == "base64" && len(doc.Layers) != 1 {
				t.Errorf("%s: base64 is not taken off", tt.name)
			}
		}
	}
}

// TestNewFieldsOfANamedType checks that a body keeps the type that the letter names, and that its
// new fields are reported.
func TestNewFieldsOfANamedType(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registryOf(t, "Order string int64 string; Other string int64")}
	body := []byte("\x0a\x05hello\x10\xac\x02\x1a\x05world\x48\x01")
	doc := d.Decode(body, Hints{Type: "a.Other", Only: "a.Order"}, nil)
	if want := "fields that are not in the registered a.Other: 3 (length-delimited, looks like string), 9 (varint, looks like int64?). The producer may be ahead of the schemas"; doc.Type != "a.Other" || len(
		doc.Added,
	) != 2 || doc.Notes[len(doc.Notes)-1] != want {
		t.Errorf("read as %q, new fields %v: %q", doc.Type, doc.Added, doc.Notes)
	}
}

// TestNewFieldsOfAMaskedBody checks that the guesses about new fields do not disclose masked
// values.
func TestNewFieldsOfAMaskedBody(t *testing.T) {
	t.Parallel()
	d := &Decoder{
		Types: registryOf(t, "Order string int64 string"),
		Mask:  Masks{Fields: []deadletter.MaskedField{{Type: "a.Order", Path: []string{"a"}}}}.Body(),
	}
	doc := d.Decode([]byte("\x0a\x05hello\x10\xac\x02\x1a\x05world\x22\x03abc"), Hints{Type: "a.Order"}, nil)
	if note := doc.Notes[len(doc.Notes)-1]; len(doc.Added) != 1 ||
		!strings.Contains(note, "a.Order: 4 (length-delimited). The") {
		t.Errorf("new fields %+v: %q", doc.Added, note)
	}
}
