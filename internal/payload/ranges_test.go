package payload

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/encoding/protowire"
)

// checkRanges checks that the bytes of nodes are inside those of their parents, and that texts
// agree with their bytes.
func checkRanges(t *testing.T, d *Document, texts bool) {
	t.Helper()
	var walk func(nodes []Node, in []Range, path string)
	walk = func(nodes []Node, in []Range, path string) {
		for i := range nodes {
			n := &nodes[i]
			for _, r := range n.Ranges {
				inside := len(in) == 0
				for _, outer := range in {
					inside = inside || outer.From <= r.From && r.To <= outer.To
				}
				if r.From < 0 || r.From >= r.To || r.To > len(d.Body) || !inside {
					t.Errorf("%s.%s: %v is not in %v", path, n.Name, r, in)
				}
			}
			if k := len(n.Ranges); k > 0 && n.Kind == String && !n.Masked && n.text != "" &&
				!bytes.Contains(d.Body[n.Ranges[k-1].From:n.Ranges[k-1].To], []byte(n.text)) && texts {
				t.Errorf("%s.%s: %q is not in %x", path, n.Name, n.text, d.Body[n.Ranges[k-1].From:n.Ranges[k-1].To])
			}
			below := n.Ranges
			if len(below) == 0 {
				below = in
			}
			walk(n.Children, below, path+"."+n.Name)
		}
	}
	walk(d.Fields, nil, "")
}

func TestEveryNodeHasItsBytes(t *testing.T) {
	t.Parallel()
	for seed := range 500 {
		registry := secrets()[0]
		defs, _ := registry.Lookup("acme.secret.Person")
		f := &forger{
			Rand: rand.New(rand.NewPCG(uint64(seed), 9)), types: defs[0].Types, left: 40, held: "acme.secret.Person",
		}
		body := f.message(defs[0].Desc, nil, false, 0)
		checkRanges(t, (&Decoder{Types: registry}).Decode(body, Hints{Type: "acme.secret.Person"}, nil), false)
		checkRanges(t, new(Decoder).Decode(append([]byte{0xa8, 0x06, 0x81, 0x01}, body...), Hints{}, nil), true)
	}
	doc := (&Decoder{Types: schemas()}).Decode(sample(t), Hints{Type: email}, nil)
	checkRanges(t, doc, true)
	for path, want := range map[string]string{
		"to.address": "\x0a\x10dana@example.com", "template.locale": "\x12\x05en-GB",
		"variables.plan": "\x2a\x0c\x0a\x04plan\x12\x04team", "tenant_id": "\x10\xd5\xf8\x02",
	} {
		n := doc.scalarAt(path)
		if n == nil || len(n.Ranges) != 1 || string(doc.Body[n.Ranges[0].From:n.Ranges[0].To]) != want {
			t.Errorf("%s: %+v", path, n)
		}
	}
	doc = new(Decoder).Decode([]byte(`{"a": {"b": [1, "x"]}}`), Hints{}, nil)
	if n := doc.scalarAt("a.b.[1]"); n == nil || string(doc.Body[n.Ranges[0].From:n.Ranges[0].To]) != `"x"` {
		t.Errorf("%+v", n)
	}
	if n := doc.scalarAt("a.b.[0]"); n == nil || string(doc.Body[n.Ranges[0].From:n.Ranges[0].To]) != "1" {
		t.Errorf("%+v", n)
	}
}

// TestTheWireIsShown checks that a body of unknown type is shown with its field numbers, and that
// guesses are marked as guesses.
func TestTheWireIsShown(t *testing.T) {
	t.Parallel()
	body := payloadtest.LengthPrefixed(1, []byte("hello"))
	body = append(
		body,
		payloadtest.LengthPrefixed(
			2, append([]byte{0x08, 0x07}, payloadtest.LengthPrefixed(3, []byte{0xff, 0x00})...),
		)...,
	)
	body = protowire.AppendFixed64(protowire.AppendTag(body, 4, protowire.Fixed64Type), 0x3ff8000000000000)
	body = append(body, 0x2b, 0x30, 0x01, 0x2c, 0x3a, 0x00)
	doc := new(Decoder).Decode(body, Hints{}, nil)
	var lines []string
	var walk func(nodes []Node, indent string)
	walk = func(nodes []Node, indent string) {
		for _, n := range nodes {
			lines = append(lines, fmt.Sprintf("%s%s %s (%s) %s %v", indent, n.Name, n.Value, n.Note, n.Type, n.Ranges))
			walk(n.Children, indent+"  ")
		}
	}
	walk(doc.Fields, "")
	want := strings.TrimSpace(`
field 1 "hello" (a guess: text) length-delimited [{0 7}]
field 2  (a guess: message) length-delimited [{7 15}]
  field 1 7 (a guess) varint [{9 11}]
  field 3 ff00 (2 B) length-delimited [{11 15}]
field 4 4609434218613702656 (or 1.5, a guess) fixed64 [{15 24}]
field 5  () group [{24 28}]
  field 6 1 (a guess) varint [{25 27}]
field 7  (empty) length-delimited [{28 30}]`)
	if got := strings.Join(lines, "\n"); doc.Kind != Binary || got != want {
		t.Errorf("%s\n%s", doc.Kind, got)
	}
	if _, ok := doc.field("field 1"); ok || Words(doc) != "" {
		t.Error("a guess is found")
	}
	mask := Masks{Fields: []deadletter.MaskedField{{Type: "acme.*", Path: []string{"a"}}}}.Body()
	hidden := (&Decoder{Mask: mask}).Decode(body, Hints{}, nil)
	if len(hidden.Fields) != 5 || hidden.Fields[1].Children != nil || hidden.Fields[0].Value != Masked ||
		!hidden.Masked || strings.Contains(
		everyText(hidden), "hello",
	) {
		t.Errorf("%+v", hidden.Fields)
	}
	if plain := (&Decoder{Mask: mask}).Revealed().Decode(
		body, Hints{}, nil,
	); plain.Fields[0].Text() != "hello" || plain.Masked {
		t.Errorf("%+v", plain.Fields)
	}
}

// TestDeviationsAreSaid checks fields that are not encoded as a protobuf library would encode them.
// An example is a list that should be packed but is not. The document must report each of these
// fields.
func TestDeviationsAreSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ  string
		body []byte
		name string
		want string
	}{
		{"Kinds", []byte{0x48, 1, 0x48, 2}, "numbers", "not packed on the wire, which its type is, 2 items"},
		{"Kinds", payloadtest.LengthPrefixed(9, []byte{1, 2}), "numbers", "2 items"},
		{
			"acme.odd.Order",
			append(payloadtest.LengthPrefixed(1, []byte("x")), payloadtest.LengthPrefixed(8, []byte{1, 2})...),
			"unpacked", "packed on the wire, which its type is not, 2 items",
		},
		{"Kinds", []byte{0x18, 1, 0x18, 2}, "count", "2 times on the wire, the last counts"},
		{
			"Kinds",
			append(
				payloadtest.LengthPrefixed(12, payloadtest.LengthPrefixed(1, []byte("a"))),
				payloadtest.LengthPrefixed(12, payloadtest.LengthPrefixed(2, []byte("b")))...,
			),
			"address", "oneof contact, in 2 parts on the wire, merged",
		},
		{"acme.odd.Order", []byte{0x10, 1}, "id", "required, missing on the wire"},
		{"Kinds", []byte{0x18, 1}, "urgent", "default, not on the wire"},
		{"Kinds", payloadtest.LengthPrefixed(11, []byte("e@x")), "email", "oneof contact"},
	} {
		doc := (&Decoder{Types: schemas()}).Decode(tt.body, Hints{Type: tt.typ}, nil)
		if n := nodeAt(t, doc, tt.name); n.Note != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, n.Note, tt.want)
		}
	}
	order := (&Decoder{Types: schemas()}).Decode([]byte{0x10, 1}, Hints{Type: "acme.odd.Order"}, nil)
	if v, ok := order.field("id"); ok {
		t.Errorf("a field that is not there is found: %q", v)
	}
}
