package payload

import (
	"math"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// piece is one field on the wire. The pieces of a message follow each other without gaps.
type piece struct {
	num     protowire.Number
	fd      protoreflect.FieldDescriptor // nil = the type does not know the field, or the wire type is another one
	wire    protowire.Type
	raw     []byte // the bytes of the field, including its tag
	content []byte // the bytes without tag, length and end group tag
}

// piecesOf splits a message into its fields. The caller must have checked that the bytes are
// well-formed. piecesOf stops at the first malformed byte.
func piecesOf(t *descriptor.Resolver, b []byte, md protoreflect.MessageDescriptor) []piece {
	var list []piece
	for len(b) > 0 {
		num, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return list
		}
		m := protowire.ConsumeFieldValue(num, wire, b[n:])
		if m < 0 {
			return list
		}
		p := piece{num: num, wire: wire, raw: b[: n+m : n+m], content: b[n : n+m]}
		switch wire {
		case protowire.BytesType:
			p.content, _ = protowire.ConsumeBytes(p.content)
		case protowire.StartGroupType:
			p.content, _ = protowire.ConsumeGroup(num, p.content)
		}
		if fd := t.Field(md, num); accepts(fd, wire) {
			p.fd = fd
		}
		list = append(list, p)
		b = b[n+m:]
	}
	return list
}

// appendMessage appends a message as the value of a field, or as one element of a repeated field.
func appendMessage(b []byte, fd protoreflect.FieldDescriptor, content []byte) []byte {
	if fd.Kind() == protoreflect.GroupKind {
		b = protowire.AppendTag(b, fd.Number(), protowire.StartGroupType)
		b = append(b, content...)
		return protowire.AppendTag(b, fd.Number(), protowire.EndGroupType)
	}
	b = protowire.AppendTag(b, fd.Number(), protowire.BytesType)
	return protowire.AppendBytes(b, content)
}

// appendValue appends one value of a field, with its tag.
func appendValue(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	if fd.Message() != nil {
		return appendMessage(b, fd, canonical(v.Message()))
	}
	b = protowire.AppendTag(b, fd.Number(), descriptor.WireType(fd.Kind()))
	return appendScalar(b, fd.Kind(), v)
}

func appendList(b []byte, fd protoreflect.FieldDescriptor, list protoreflect.List, packed bool) []byte {
	if list.Len() == 0 {
		return b
	}
	if packed {
		var inner []byte
		for i := range list.Len() {
			inner = appendScalar(inner, fd.Kind(), list.Get(i))
		}
		b = protowire.AppendTag(b, fd.Number(), protowire.BytesType)
		return protowire.AppendBytes(b, inner)
	}
	for i := range list.Len() {
		b = appendValue(b, fd, list.Get(i))
	}
	return b
}

func appendEntry(b []byte, fd protoreflect.FieldDescriptor, key protoreflect.MapKey, v protoreflect.Value) []byte {
	entry := appendValue(nil, fd.MapKey(), key.Value())
	return appendMessage(b, fd, appendValue(entry, fd.MapValue(), v))
}

// canonical returns the deterministic encoding of a message by the protobuf library.
func canonical(m protoreflect.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m.Interface())
	if err != nil {
		// cannot happen, because strings were checked when they were parsed; see panicToError
		panic("payload: " + err.Error())
	}
	return b
}

// appendScalar appends a value without a tag.
func appendScalar(b []byte, kind protoreflect.Kind, v protoreflect.Value) []byte {
	switch kind {
	case protoreflect.BoolKind:
		return protowire.AppendVarint(b, protowire.EncodeBool(v.Bool()))
	case protoreflect.EnumKind:
		return protowire.AppendVarint(b, uint64(v.Enum()))
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return protowire.AppendVarint(b, uint64(v.Int()))
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return protowire.AppendVarint(b, protowire.EncodeZigZag(v.Int()))
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return protowire.AppendVarint(b, v.Uint())
	case protoreflect.Sfixed32Kind:
		return protowire.AppendFixed32(b, uint32(v.Int()))
	case protoreflect.Fixed32Kind:
		return protowire.AppendFixed32(b, uint32(v.Uint()))
	case protoreflect.FloatKind:
		return protowire.AppendFixed32(b, math.Float32bits(float32(v.Float())))
	case protoreflect.Sfixed64Kind:
		return protowire.AppendFixed64(b, uint64(v.Int()))
	case protoreflect.Fixed64Kind:
		return protowire.AppendFixed64(b, v.Uint())
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(b, math.Float64bits(v.Float()))
	case protoreflect.StringKind:
		return protowire.AppendString(b, v.String())
	}
	return protowire.AppendBytes(b, v.Bytes())
}

// sameScalar reports whether two scalars are equal. It compares the bits of floats, so that 0 and
// -0 differ.
func sameScalar(kind protoreflect.Kind, a, b protoreflect.Value) bool {
	switch kind {
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	}
	return a.Equal(b)
}
