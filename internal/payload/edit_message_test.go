package payload

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// wire concatenates encoded fields.
func wire(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func varint(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func group(num protowire.Number, content []byte) []byte {
	b := append(protowire.AppendTag(nil, num, protowire.StartGroupType), content...)
	return protowire.AppendTag(b, num, protowire.EndGroupType)
}

// TestEditOfMessages checks that an edit changes what it touches, and nothing else in the message.
func TestEditOfMessages(t *testing.T) {
	t.Parallel()
	str := func(num protowire.Number, s string) []byte { return payloadtest.LengthPrefixed(num, []byte(s)) }
	unknown := str(900, "unseen")
	long := []byte{0x18, 0x87, 0x80, 0x00} // count: 7, in more bytes than necessary
	odd := wire(str(11, "a"), long, unknown, varint(7, 0))
	strange := str(1, "type.googleapis.com/x.Unknown")
	tests := []struct {
		name, typ  string
		body       []byte
		old, new   string
		want       []byte
		check, not string
	}{
		{
			"one field of an odd body", "Kinds", odd, `"email": "a"`, `"email": "bc"`,
			wire(str(11, "bc"), long, unknown, varint(7, 0)), "carried over", "loss",
		},
		{
			"a field that was long", "Kinds", odd, `"count": 7`, `"count": 8`,
			wire(str(11, "a"), varint(3, 8), unknown, varint(7, 0)), "", "loss",
		},
		{
			"a field that was there as its default", "Kinds", odd, `"count": 7`, `"count": 7, "urgent": true`,
			wire(str(11, "a"), long, unknown, varint(7, 1)), "", "loss",
		},
		{
			"a field that was there twice", "Kinds", wire(varint(3, 1), str(11, "a"), varint(3, 2)), `"count": 2`,
			`"count": 3`, wire(str(11, "a"), varint(3, 3)), "", "",
		},
		{
			"a field that is taken out", "Kinds", odd, `"count": 7,`, ``, wire(str(11, "a"), unknown, varint(7, 0)), "",
			"loss",
		},
		{
			"a field that becomes null", "Kinds", odd, `"count": 7`, `"count": null`,
			wire(str(11, "a"), unknown, varint(7, 0)), "", "loss",
		},
		{
			"a new field stands by its number", "Kinds", wire(varint(3, 1), str(10, "t")), `"count": 1`,
			`"count": 1, "urgent": true`, wire(varint(3, 1), varint(7, 1), str(10, "t")), "", "",
		},
		{
			"explicit presence", "Kinds", wire(varint(3, 1), str(13, "")), `"count": 1`, `"count": 2`,
			wire(varint(3, 2), str(13, "")), "", "",
		},
		{
			"explicit presence is made", "Kinds", varint(3, 1), `"count": 1`, `"count": 1, "nickname": ""`,
			wire(varint(3, 1), str(13, "")), "", "",
		},
		{
			"wrong wire type is unknown", "Kinds", wire(str(3, "x"), varint(3, 1)), `"count": 1`, `"count": 2`,
			wire(str(3, "x"), varint(3, 2)), "carried over", "loss",
		},
		{
			"unknown fields three levels down", "Kinds",
			payloadtest.LengthPrefixed(
				20,
				wire(
					payloadtest.LengthPrefixed(
						20, wire(payloadtest.LengthPrefixed(12, wire(str(1, "a"), unknown)), unknown),
					),
					unknown,
				),
			),
			`"address": "a"`, `"address": "b"`,
			payloadtest.LengthPrefixed(
				20,
				wire(
					payloadtest.LengthPrefixed(
						20, wire(payloadtest.LengthPrefixed(12, wire(str(1, "b"), unknown)), unknown),
					),
					unknown,
				),
			),
			"carried over", "loss",
		},
		{
			"a message in two pieces", "Kinds",
			wire(
				payloadtest.LengthPrefixed(20, wire(varint(3, 1), unknown)), varint(3, 5),
				payloadtest.LengthPrefixed(20, str(10, "t")),
			),
			`"tags": [
      "t"`, `"tags": [
      "u"`,
			wire(varint(3, 5), payloadtest.LengthPrefixed(20, wire(varint(3, 1), unknown, str(10, "u")))),
			"carried over", "loss",
		},
		{
			"an Any of an unknown type", "Kinds",
			wire(varint(3, 1), payloadtest.LengthPrefixed(14, wire(strange, str(2, "\x08\x01")))), `"count": 1`,
			`"count": 2`, wire(varint(3, 2), payloadtest.LengthPrefixed(14, wire(strange, str(2, "\x08\x01")))), "",
			"loss",
		},
		{
			"an Any of an unknown type is taken out", "Kinds",
			wire(varint(3, 1), payloadtest.LengthPrefixed(14, wire(strange, str(2, "\x08\x01")))), `"detail": {
    "@type": "type.googleapis.com/x.Unknown"
  }`, `"urgent": true`, wire(varint(3, 1), varint(7, 1)), "", "",
		},
		{
			"in an Any", "Kinds",
			payloadtest.LengthPrefixed(
				14,
				wire(
					str(2, string(wire(str(2, "n"), unknown, str(1, "a")))), str(1, "x/acme.notify.v1.EmailAddress"),
					unknown,
				),
			),
			`"address": "a"`, `"address": "b"`,
			payloadtest.LengthPrefixed(
				14,
				wire(
					str(1, "x/acme.notify.v1.EmailAddress"), str(2, string(wire(str(1, "b"), str(2, "n"), unknown))),
					unknown,
				),
			),
			"carried over", "loss",
		},
		{
			"beside an Any that is not canonical", "Kinds",
			wire(
				varint(3, 1),
				payloadtest.LengthPrefixed(
					14, wire(str(2, string(wire(str(2, "n"), str(1, "a")))), str(1, "x/acme.notify.v1.EmailAddress")),
				),
			),
			`"count": 1`, `"count": 2`,
			wire(
				varint(3, 2),
				payloadtest.LengthPrefixed(
					14, wire(str(2, string(wire(str(2, "n"), str(1, "a")))), str(1, "x/acme.notify.v1.EmailAddress")),
				),
			),
			"", "loss",
		},
		{
			"in a well-known type with an unknown field", "Kinds",
			payloadtest.LengthPrefixed(21, wire(varint(1, 1), unknown)), `1970-01-01T00:00:01Z`, `1970-01-01T00:00:02Z`,
			payloadtest.LengthPrefixed(21, wire(varint(1, 2), unknown)), "carried over", "loss",
		},
		{
			"in a Struct", "Kinds", encode(t, "Kinds", `{"extra": {"a": [1, null, {"b": "x"}], "c": true}}`),
			`"b": "x"`, `"b": "y"`, encode(t, "Kinds", `{"extra": {"a": [1, null, {"b": "y"}], "c": true}}`), "",
			"loss",
		},
		{
			"a member of a oneof is changed for another", "Kinds", wire(str(11, "a"), varint(3, 1)), `"email": "a"`,
			`"address": {"address": "b"}`, wire(varint(3, 1), payloadtest.LengthPrefixed(12, str(1, "b"))), "", "loss",
		},
		{
			"a member of a oneof hides another", "Kinds",
			wire(payloadtest.LengthPrefixed(12, str(1, "old")), varint(3, 1), str(11, "a")), `"email": "a"`,
			`"urgent": true`, wire(varint(7, 1), varint(3, 1)), "", "loss",
		},
		{
			"a message in a oneof that was overridden", "Kinds",
			wire(
				payloadtest.LengthPrefixed(12, str(2, "old")), str(11, "a"),
				payloadtest.LengthPrefixed(12, str(1, "x")),
			),
			`"address": "x"`, `"address": "y"`, payloadtest.LengthPrefixed(12, str(1, "y")), "", "loss",
		},
		{
			"a map", "Kinds",
			wire(
				payloadtest.LengthPrefixed(
					19, wire(varint(1, 7), payloadtest.LengthPrefixed(2, wire(str(1, "a"), unknown))),
				),
				payloadtest.LengthPrefixed(19, wire(payloadtest.LengthPrefixed(2, str(1, "b")), varint(1, 3))),
			),
			`"address": "a"`, `"address": "c"`,
			wire(
				payloadtest.LengthPrefixed(
					19, wire(varint(1, 7), payloadtest.LengthPrefixed(2, wire(str(1, "c"), unknown))),
				),
				payloadtest.LengthPrefixed(19, wire(payloadtest.LengthPrefixed(2, str(1, "b")), varint(1, 3))),
			),
			"carried over", "loss",
		},
		{
			"an entry that is taken out", "Kinds",
			wire(
				payloadtest.LengthPrefixed(26, wire(varint(1, 1), protowire.AppendFixed64([]byte{0x11}, 1))),
				payloadtest.LengthPrefixed(26, protowire.AppendFixed64([]byte{0x11}, 2)), varint(3, 1),
			),
			`"false": 1e-323,`, ``,
			wire(
				payloadtest.LengthPrefixed(26, wire(varint(1, 1), protowire.AppendFixed64([]byte{0x11}, 1))),
				varint(3, 1),
			),
			"", "loss",
		},
		{
			"an entry that was there twice", email,
			wire(
				payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, "a"))),
				payloadtest.LengthPrefixed(5, wire(str(1, "l"), str(2, "x"))),
				payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, "b"), unknown)),
			),
			`"k": "b"`, `"k": "c"`,
			wire(
				payloadtest.LengthPrefixed(5, wire(str(1, "l"), str(2, "x"))),
				payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, "c"))),
			),
			"warn loss: ", "",
		},
		{
			"an entry gets its default", email, payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, "a"))),
			`"k": "a"`, `"k": ""`, payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, ""))), "", "",
		},
		{
			"a new entry", email, wire(payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, "a"))), varint(6, 1)),
			`"k": "a"`, `"k": "a", "b": ""`,
			wire(
				payloadtest.LengthPrefixed(5, wire(str(1, "k"), str(2, "a"))),
				payloadtest.LengthPrefixed(5, wire(str(1, "b"), str(2, ""))), varint(6, 1),
			),
			"", "",
		},
		{
			"an element", "Kinds",
			wire(
				payloadtest.LengthPrefixed(23, wire(varint(3, 1), unknown)), varint(7, 1),
				payloadtest.LengthPrefixed(23, wire(varint(3, 2), unknown)),
			),
			`"count": 2`, `"count": 4`,
			wire(
				payloadtest.LengthPrefixed(23, wire(varint(3, 1), unknown)), varint(7, 1),
				payloadtest.LengthPrefixed(23, wire(varint(3, 4), unknown)),
			),
			"carried over", "loss",
		},
		{
			"an element more", "Kinds", wire(payloadtest.LengthPrefixed(23, wire(varint(3, 1), unknown)), varint(7, 1)),
			`"children": [`, `"children": [{},`,
			wire(
				payloadtest.LengthPrefixed(23, nil), payloadtest.LengthPrefixed(23, wire(varint(3, 1), unknown)),
				varint(7, 1),
			),
			"carried over", "loss",
		},
		{
			"an element less", "Kinds",
			wire(
				payloadtest.LengthPrefixed(23, wire(varint(3, 1), str(900, "x"))),
				payloadtest.LengthPrefixed(23, wire(varint(3, 2), str(900, "y"))),
			),
			"    {\n      \"count\": 1\n    },", ``, payloadtest.LengthPrefixed(23, wire(varint(3, 2), str(900, "y"))),
			"warn loss: ", "",
		},
		{
			"elements change places, and their unknown fields do not", "Kinds",
			wire(
				payloadtest.LengthPrefixed(23, wire(varint(3, 1), str(900, "x"))),
				payloadtest.LengthPrefixed(23, wire(varint(3, 2), str(900, "y"))),
			),
			"{\n      \"count\": 1\n    },\n    {\n      \"count\": 2\n    }", `{"count": 2}, {"count": 1}`,
			wire(
				payloadtest.LengthPrefixed(23, wire(varint(3, 2), str(900, "x"))),
				payloadtest.LengthPrefixed(23, wire(varint(3, 1), str(900, "y"))),
			),
			"", "loss",
		},
		{
			"an element, and one more", "Kinds",
			wire(
				payloadtest.LengthPrefixed(23, varint(3, 1)),
				payloadtest.LengthPrefixed(23, wire(varint(3, 2), unknown)),
				payloadtest.LengthPrefixed(23, varint(3, 3)),
			),
			"\"count\": 2\n    },\n    {\n      \"count\": 3\n    }", `"count": 4}, {"count": 3}, {}`,
			wire(
				payloadtest.LengthPrefixed(23, varint(3, 1)), payloadtest.LengthPrefixed(23, varint(3, 4)),
				payloadtest.LengthPrefixed(23, varint(3, 3)), payloadtest.LengthPrefixed(23, nil),
			),
			"warn loss: ", "",
		},
		{
			"an element that has no clear place", "Kinds", payloadtest.LengthPrefixed(23, wire(varint(3, 2), unknown)),
			`"count": 2`, `"count": 4}, {"count": 3`,
			wire(payloadtest.LengthPrefixed(23, varint(3, 4)), payloadtest.LengthPrefixed(23, varint(3, 3))),
			"warn loss: ", "",
		},
		{
			"packed stays packed", "Kinds", wire(payloadtest.LengthPrefixed(9, []byte{1, 2}), varint(7, 1)), "1,", "3,",
			wire(payloadtest.LengthPrefixed(9, []byte{3, 2}), varint(7, 1)), "", "",
		},
		{
			"unpacked where packed is usual", "Kinds", wire(varint(9, 1), varint(7, 1), varint(9, 2)), "1,", "3,",
			wire(varint(9, 3), varint(9, 2), varint(7, 1)), "", "",
		},
		{
			"packed where unpacked is usual", "acme.odd.Order",
			wire(str(1, "i"), payloadtest.LengthPrefixed(8, []byte{1, 2})), "1,", "3,",
			wire(str(1, "i"), payloadtest.LengthPrefixed(8, []byte{3, 2})), "", "",
		},
		{
			"unpacked of proto2 is made", "acme.odd.Order", str(1, "i"), `"id": "i"`, `"id": "i", "unpacked": [1, 2]`,
			wire(str(1, "i"), varint(8, 1), varint(8, 2)), "", "",
		},
		{
			"a group", "acme.odd.Order", wire(str(1, "i"), group(3, wire(str(4, "s"), unknown))), `"sku": "s"`,
			`"sku": "t"`, wire(str(1, "i"), group(3, wire(str(4, "t"), unknown))), "carried over", "loss",
		},
		{
			"a group in a list", "acme.odd.Order",
			wire(str(1, "i"), group(6, wire(varint(7, 1), unknown)), group(6, varint(7, 2))), `"n": 1`, `"n": 3`,
			wire(str(1, "i"), group(6, wire(varint(7, 3), unknown)), group(6, varint(7, 2))), "", "loss",
		},
		{
			"an extension", "acme.odd.Order", wire(str(1, "i"), str(100, "r"), varint(101, 5)),
			`"[acme.odd.remark]": "r"`, `"[acme.odd.remark]": "s"`, wire(str(1, "i"), str(100, "s"), varint(101, 5)),
			"", "loss",
		},
		{
			"beside an extension", "acme.odd.Order", wire(str(1, "i"), str(100, "r"), varint(150, 5)), `"id": "i"`,
			`"id": "j"`, wire(str(1, "j"), str(100, "r"), varint(150, 5)), "carried over", "loss",
		},
		{
			"an unknown group", "acme.odd.Order", wire(str(1, "i"), group(900, unknown)), `"id": "i"`, `"id": "j"`,
			wire(str(1, "j"), group(900, unknown)), "carried over", "loss",
		},
		{
			"a required field that was missing stays missing", "acme.odd.Order", varint(2, 5), `"amount": 5`,
			`"amount": 6`, varint(2, 6), "", "loss",
		},
		{
			"a delimited message of an edition", "Cart",
			wire(str(1, "c"), group(3, wire(str(1, "o"), unknown)), varint(4, 9)), `"name": "o"`, `"name": "p"`,
			wire(str(1, "c"), group(3, wire(str(1, "p"), unknown)), varint(4, 9)), "carried over", "loss",
		},
		{
			"an enum value without a name", "Kinds", wire(varint(22, 77), varint(3, 1)), `"count": 1`, `"count": 2`,
			wire(varint(22, 77), varint(3, 2)), "", "",
		},
		{
			"beside an entry without a value", "Kinds",
			wire(payloadtest.LengthPrefixed(19, varint(1, 8)), varint(3, 1)), `"count": 1`, `"count": 2`,
			wire(payloadtest.LengthPrefixed(19, varint(1, 8)), varint(3, 2)), "", "",
		},
		{
			"an entry without a value gets one", "Kinds", payloadtest.LengthPrefixed(19, varint(1, 8)), `"8": {}`,
			`"8": {"address": "a"}`,
			payloadtest.LengthPrefixed(19, wire(varint(1, 8), payloadtest.LengthPrefixed(2, str(1, "a")))), "", "",
		},
		{
			"not a number", "Kinds", wire(protowire.AppendFixed64([]byte{0x09}, 0x7ff8000000000099), varint(3, 1)),
			`"count": 1`, `"count": 2`, wire(protowire.AppendFixed64([]byte{0x09}, 0x7ff8000000000099), varint(3, 2)),
			"", "",
		},
		{
			"the sign of zero", "Kinds", wire(protowire.AppendFixed64([]byte{0x09}, 1<<63), varint(3, 1)), `-0`, `0`,
			varint(3, 1), "", "",
		},
		{
			"all that is known is taken out", "Kinds", wire(varint(3, 1), unknown), `"count": 1`, ``, unknown,
			"carried over", "loss",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := Hints{Type: tt.typ}
			e := change(t, editor(), tt.body, h, tt.old, tt.new)
			sameMessage(t, tt.typ, e.Body, tt.want)
			if got := checksText(e); !strings.Contains(got, tt.check) || tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("checks\n%s", got)
			}
			same, err := editor().Edit(tt.body, h, editText(t, editor(), tt.body, h), nil)
			if err != nil || !bytes.Equal(same.Body, tt.body) || same.Changed != nil || same.Diff != nil ||
				!strings.Contains(checksText(same), nothingChanged) {
				t.Errorf("unchanged: got %x, %v, %+v", same.Body, err, same)
			}
		})
	}
}

func TestEditManyUnknownFields(t *testing.T) {
	t.Parallel()
	body := varint(3, 1)
	for n := range 5 {
		body = append(body, varint(protowire.Number(900+n), 300)...)
	}
	e := change(t, editor(), body, Hints{Type: "Kinds"}, `"count": 1`, `"count": 2`)
	if got := checksText(e); !strings.Contains(got, "ok 5 fields that the JSON does not show, 20 B, carried over\n") {
		t.Errorf("checks\n%s", got)
	}
}

// removeValuesWithoutJSON removes from a random message all fields whose values may have no JSON
// form.
func removeValuesWithoutJSON(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() != nil && slices.Contains(
			[]string{"FieldMask", "Struct", "Value"}, string(fd.Message().Name()),
		):
			m.Clear(fd)
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				removeValuesWithoutJSON(v.List().Get(i).Message())
			}
		case fd.Message() != nil && !fd.IsMap():
			removeValuesWithoutJSON(v.Message())
		}
		return true
	})
}

// roughen gives a message features that canonical encodings do not have: unknown fields at all
// levels, another order of fields, and tags that are longer than necessary.
func roughen(types *descriptor.Resolver, b []byte, md protoreflect.MessageDescriptor, r *rand.Rand) []byte {
	var out [][]byte
	byField := make(map[protowire.Number]int)
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		raw := bytes.Clone(b[:n])
		b = b[n:]
		_, _, tag := protowire.ConsumeTag(raw)
		if fd := types.Field(
			md, num,
		); fd != nil && fd.Kind() == protoreflect.MessageKind && typ == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(raw[tag:])
			raw = payloadtest.LengthPrefixed(num, roughen(types, content, fd.Message(), r))
		} else if num < 16 && typ != protowire.StartGroupType && r.IntN(5) == 0 {
			raw = append([]byte{raw[0] | 0x80, 0}, raw[1:]...)
		}
		if i, ok := byField[num]; ok { // the elements of a list keep their order
			out[i] = append(out[i], raw...)
			continue
		}
		byField[num] = len(out)
		out = append(out, raw)
	}
	if r.IntN(3) == 0 && !md.IsMapEntry() && md.FullName() != "google.protobuf.Any" {
		out = append(out, payloadtest.LengthPrefixed(protowire.Number(900+r.IntN(5)), []byte(fmt.Sprint(r.Uint32()))))
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return bytes.Join(out, nil)
}

func TestEditRandomMessages(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	edited := 0
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]string{"Kinds", email, "acme.odd.Order", "Cart"}).Draw(t, "type")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		defs, _ := schemas().Lookup(typ)
		def := defs[0]
		some := func() []byte {
			m := payloadtest.Instance(def.Desc, r)
			removeValuesWithoutJSON(m)
			if id := def.Desc.Fields().ByName("id"); id != nil { // one of the types requires this field
				m.Set(id, protoreflect.ValueOfString("i"))
			}
			out, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m.Interface())
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		body, other := some(), some()
		if rapid.Bool().Draw(t, "rough") {
			body = roughen(def.Types, body, def.Desc, r)
		}
		h := Hints{Picked: typ}
		d := editor()
		a, err := d.Editable(body, h, nil)
		if err != nil {
			return // it is empty
		}
		same, err := d.Edit(body, h, a.Text, nil)
		if err != nil || !bytes.Equal(same.Body, body) {
			t.Fatalf("unchanged: %v\nof  %x\ngot %x", err, body, same.Body)
		}
		b, err := d.Editable(other, h, nil)
		if err != nil {
			return
		}
		edited++
		// The edit replaces the whole message by another one.
		e, err := d.Edit(body, h, b.Text, nil)
		if err != nil {
			t.Fatalf("edit to %s: %v", b.Text, err)
		}
		if e.JSON != b.Text {
			t.Fatalf("edited to %s\ngot %s", b.Text, e.JSON)
		}
		// This part replaces only one field of the message a. The new value is the one that this
		// field has in the message b.
		x, errX := parseJSON(a.Text, budget.NewBudget())
		y, errY := parseJSON(b.Text, budget.NewBudget())
		if errX != nil || errY != nil || len(x.names) == 0 {
			t.Fatal(errX, errY)
		}
		k := rapid.IntRange(0, len(x.names)-1).Draw(t, "field")
		j := y.find(x.names[k].text)
		if j < 0 {
			return
		}
		x.items[k] = y.items[j]
		var w strings.Builder
		x.write(&w, true, 0)
		if e, err = d.Edit(body, h, w.String(), nil); err != nil || e.JSON != w.String() {
			t.Fatalf("edit to %s: %v, got %+v", w.String(), err, e)
		}
		num := def.Desc.Fields().ByJSONName(x.names[k].text).Number()
		rest := func(b []byte) []byte {
			m := dynamicpb.NewMessage(def.Desc)
			if err := unmarshal(b, m, def.Types); err != nil {
				t.Fatal(err)
			}
			m.Clear(def.Desc.Fields().ByNumber(num))
			out, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if !bytes.Equal(rest(body), rest(e.Body)) {
			t.Fatalf("field %d was edited\nof  %x\ngot %x", num, body, e.Body)
		}
	})
	if edited < 20 {
		t.Errorf("only %d messages were edited", edited)
	}
}
