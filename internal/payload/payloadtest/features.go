package payloadtest

import (
	"bytes"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// WireFeature is a body that uses a feature of the wire format that encoders may use but rarely do.
// Its type is registered (internal/payload/testdata/schemas).
type WireFeature struct {
	Name, Type string
	Body       []byte
}

// EditedField names a field for each message type that WireFeatures uses. Tests of edits change
// this field, which is always a varint.
var EditedField = map[string]struct {
	Number protowire.Number
	Name   string
}{kinds: {3, "count"}, order: {2, "amount"}, cart: {2, "items"}}

// With returns the body with one field added: the edited field, with the value v.
func (f WireFeature) With(v uint64) []byte {
	return wire(f.Body, varint(EditedField[f.Type].Number, v))
}

const kinds, order, cart = "acme.notify.v1.Kinds", "acme.odd.Order", "acme.shop.v1.Cart"

func wire(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func varint(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func group(num protowire.Number, content []byte) []byte {
	b := append(protowire.AppendTag(nil, num, protowire.StartGroupType), content...)
	return protowire.AppendTag(b, num, protowire.EndGroupType)
}

// WireFeatures returns bodies for all features of the wire format.
func WireFeatures() []WireFeature {
	str := func(num protowire.Number, s string) []byte { return LengthPrefixed(num, []byte(s)) }
	msg := func(num protowire.Number, parts ...[]byte) []byte {
		return LengthPrefixed(num, wire(parts...))
	}
	f64 := func(num protowire.Number, bits uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), bits)
	}
	f32 := func(num protowire.Number, bits uint32) []byte {
		return protowire.AppendFixed32(protowire.AppendTag(nil, num, protowire.Fixed32Type), bits)
	}
	minus := func(i int64) uint64 { return uint64(i) }
	number := func(f float64) []byte { return f64(2, math.Float64bits(f)) } // for google.protobuf.Value
	member := func(key string, value ...[]byte) []byte { return msg(1, str(1, key), msg(2, value...)) }
	any := func(name string, content ...[]byte) []byte {
		return msg(14, str(1, "type.googleapis.com/"+name), msg(2, content...))
	}
	unknown := str(900, "unseen")
	deep := func(levels int) []byte {
		b := str(10, "t")
		for range levels {
			b = msg(20, b)
		}
		return b
	}
	const mail = "acme.notify.v1.EmailAddress"
	id := str(1, "i")
	return []WireFeature{
		{"packed", kinds, msg(9, []byte{1, 2, 3})},
		{"unpacked", kinds, wire(varint(9, 1), varint(9, 2))},
		{"mixed chunks", kinds, wire(msg(9, []byte{1, 2}), varint(9, 3), msg(9, []byte{4}))},
		{"a list in pieces", kinds, wire(str(10, "a"), varint(7, 1), str(10, "b"))},
		{"out of order", kinds, wire(str(10, "a"), varint(7, 1), varint(4, 2))},
		{"a scalar twice", kinds, wire(varint(4, 2), varint(4, 4))},
		{"a split message", kinds, wire(msg(20, varint(4, 2)), varint(7, 1), msg(20, str(10, "t")))},
		{"explicit defaults", kinds, wire(varint(7, 0), varint(8, 0), f64(1, 0))},
		{"explicit presence", kinds, str(13, "")},
		{"over-long varint", kinds, []byte{0x40, 0x87, 0x80, 0x00}},
		{"over-long tag", kinds, []byte{0xb8, 0x80, 0x00, 0x01}},
		{"over-long length", kinds, []byte{0x52, 0x81, 0x00, 'a'}},
		{"unknown enum", kinds, varint(22, 77)},
		{"unknown enum in a list", kinds, msg(24, []byte{1, 77})},
		{"bool of 2", kinds, varint(7, 2)},
		{"int32 of 5 bytes", kinds, msg(9, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})},
		{"negative int32", kinds, msg(9, protowire.AppendVarint(nil, minus(-1)))},
		{"NaN with payload", kinds, f64(1, 0x7ff8000000000099)},
		{"NaN of a float", kinds, f32(2, 0x7fc00001)},
		{"infinity", kinds, f64(1, math.Float64bits(math.Inf(-1)))},
		{"-0.0", kinds, f64(1, 1<<63)},
		{"-0.0 of a float", kinds, f32(2, 1<<31)},
		{"-0.0 in a map", kinds, msg(26, varint(1, 1), f64(2, 1<<63))},
		{"-0.0 in a Struct", kinds, msg(17, member("k", number(math.Copysign(0, -1))))},
		{"int64 extremes", kinds, wire(varint(4, math.MaxUint64), varint(8, math.MaxUint64), f64(6, 1<<63))},
		{"U+0000 and emoji", kinds, str(10, "a\x00\U0001f600\u202e")},
		{"unknown field", kinds, unknown},
		{"unknown group", kinds, group(900, unknown)},
		{"unknown in a list element", kinds, wire(msg(23, varint(4, 2), unknown), msg(23, unknown))},
		{"unknown in a map value", kinds, msg(19, varint(1, 7), msg(2, str(1, "a"), unknown))},
		{"unknown in a wrapper", kinds, msg(18, str(1, "a"), unknown)},
		{"unknown in a Timestamp", kinds, msg(21, varint(1, 5), unknown)},
		{"unknown in an Any", kinds, msg(14, str(1, "x/"+mail), msg(2, str(1, "a"), unknown), unknown)},
		{"wrong wire type", kinds, str(4, "x")},
		{"a map out of order", kinds, wire(msg(19, varint(1, 9), msg(2)), msg(19, varint(1, 7), msg(2)))},
		{"a map entry without a key", kinds, msg(19, msg(2, str(1, "a")))},
		{"a map entry with value before key", kinds, msg(19, msg(2, str(1, "a")), varint(1, 3))},
		{"a map key twice", kinds, wire(msg(19, varint(1, 9), msg(2)), msg(19, varint(1, 9), msg(2, str(1, "a"))))},
		{"a map entry without a value", kinds, msg(19, varint(1, 8))},
		{"a map entry without a scalar value", kinds, msg(26, varint(1, 1))},
		{"an empty map entry", kinds, msg(26)},
		{"a oneof twice", kinds, wire(msg(12, str(1, "a")), str(11, "b"))},
		{"a oneof twice, the message last", kinds, wire(str(11, "b"), msg(12, str(1, "a")))},
		{"Any", kinds, any(mail, str(1, "a"))},
		{"Any in Any", kinds, any("google.protobuf.Any", str(1, "x/"+mail), msg(2, str(1, "a")))},
		{"Any with a well-known type", kinds, any("google.protobuf.Duration", varint(1, 4))},
		{"Any not registered", kinds, any("x.Unknown", []byte{8, 1})},
		{"Any with value before URL", kinds, msg(14, msg(2, str(1, "a")), str(1, "x/"+mail))},
		{"Any that is empty", kinds, msg(14)},
		{"Any with a value only", kinds, msg(14, msg(2, []byte{8, 1}))},
		{"Any with an odd URL", kinds, msg(14, str(1, "not a name!"), msg(2, []byte{8, 1}))},
		{"Any with a value that does not parse", kinds, any(mail, []byte{0x0a, 9})},
		{"Any with a value without a JSON form", kinds, any("google.protobuf.Timestamp", varint(1, 1<<60))},
		{
			"Any that holds one three levels down", kinds,
			any("acme.notify.v1.Kinds", msg(20, msg(21, varint(1, 1<<60))), unknown),
		},
		{"Any with NaN in a Struct", kinds, any("google.protobuf.Struct", member("k", number(math.NaN())))},
		{"Struct with NaN", kinds, msg(17, member("k", f64(2, 0x7ff8000000000099)), member("l", number(1)))},
		{
			"Struct with infinity in a list", kinds,
			msg(17, member("k", msg(6, msg(1, number(math.Inf(1))), msg(1, number(1))))),
		},
		{"Value", kinds, msg(25, str(3, "x"))},
		{"Value of NaN", kinds, msg(25, number(math.NaN()))},
		{"Value without a kind", kinds, msg(25)},
		{"wrapper", kinds, msg(18, str(1, ""))},
		{"Duration", kinds, msg(15, varint(1, minus(-3)), varint(2, minus(-500_000_000)))},
		{"Duration too long", kinds, msg(15, varint(1, 1<<60))},
		{"Duration with two signs", kinds, msg(15, varint(1, 1), varint(2, minus(-1)))},
		{"Timestamp", kinds, msg(21, varint(1, 1700000000), varint(2, 5))},
		{"Timestamp in milliseconds", kinds, msg(21, varint(1, 1700000000000))},
		{"Timestamp with negative nanos", kinds, msg(21, varint(1, 1), varint(2, minus(-5)))},
		{"Timestamp out of range with an unknown field", kinds, msg(21, unknown, varint(1, 1700000000000))},
		{
			"several Timestamps out of range", kinds,
			wire(
				msg(23, msg(21, varint(1, 1<<60))), msg(23, msg(21, varint(1, 1))),
				msg(20, msg(21, varint(2, minus(-1)))),
			),
		},
		{"FieldMask", kinds, msg(16, str(1, "a_b"), str(1, "c.d"))},
		{"FieldMask with fooBar", kinds, msg(16, str(1, "fooBar"), str(1, "a"))},
		{"group", order, wire(id, group(3, wire(str(4, "s"), unknown)))},
		{"groups", order, wire(id, group(6, varint(7, 1)), group(6, varint(7, 2)))},
		{"extensions", order, wire(id, str(100, "r"), varint(101, 5), varint(150, 5))},
		{"required missing", order, str(100, "r")},
		{"unpacked of proto2, packed", order, wire(id, msg(8, []byte{1, 2}))},
		{"not UTF-8 in proto2", order, str(1, "a\xff")},
		{"not UTF-8 in a group", order, wire(id, group(3, str(4, "\xc3\x28")))},
		{"not UTF-8 in an extension", order, wire(id, str(100, "\xff"))},
		{"delimited", cart, wire(id, group(3, str(1, "o")))},
		{"expanded", cart, wire(id, varint(4, 9), varint(4, 8))},
		{"50 levels", kinds, deep(50)},
		{"99 levels", kinds, deep(98)},
	}
}
