// Package payloadtest contains helpers for the tests of package payload and its users. Among other
// things, it makes random messages with the kinds of values that publishers send.
package payloadtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Instance returns a message in which about two thirds of the fields are set. The values are
// identifiers, names, sentences, counts and times of recent years. For the same state of the random
// source r, the message is the same.
func Instance(md protoreflect.MessageDescriptor, r *rand.Rand) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	fill(m, r, 0)
	return m
}

const deepest = 5

func fill(m protoreflect.Message, r *rand.Rand, depth int) {
	md := m.Descriptor()
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		fields := md.Fields()
		m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(1_600_000_000+r.Int64N(200_000_000)))
		m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(r.Int32N(1000)*1_000_000))
		return
	case "google.protobuf.Duration":
		m.Set(md.Fields().ByNumber(1), protoreflect.ValueOfInt64(1+r.Int64N(86_400)))
		return
	case "google.protobuf.Any":
		m.Set(md.Fields().ByNumber(1), protoreflect.ValueOfString("type.googleapis.com/google.protobuf.StringValue"))
		m.Set(md.Fields().ByNumber(2), protoreflect.ValueOfBytes([]byte("\x0a\x05hello")))
		return
	}
	taken := make(map[protoreflect.OneofDescriptor]bool)
	fields := md.Fields()
	for _, i := range r.Perm(fields.Len()) {
		fd := fields.Get(i)
		if o := fd.ContainingOneof(); o != nil {
			if taken[o] {
				continue
			}
			taken[o] = true
		}
		chance := 0.65
		if fd.Message() != nil {
			if depth >= deepest {
				continue
			}
			chance /= float64(1 + depth)
		}
		if r.Float64() > chance {
			continue
		}
		switch {
		case fd.IsMap():
			for range 1 + r.IntN(3) {
				v := m.Mutable(fd).Map()
				if fd.MapValue().Message() != nil {
					inner := v.NewValue()
					fill(inner.Message(), r, depth+1)
					v.Set(value(fd.MapKey(), r).MapKey(), inner)
				} else {
					v.Set(value(fd.MapKey(), r).MapKey(), value(fd.MapValue(), r))
				}
			}
		case fd.IsList():
			for range 1 + r.IntN(3) {
				if fd.Message() != nil {
					fill(m.Mutable(fd).List().AppendMutable().Message(), r, depth+1)
				} else {
					m.Mutable(fd).List().Append(value(fd, r))
				}
			}
		case fd.Message() != nil:
			fill(m.Mutable(fd).Message(), r, depth+1)
		default:
			m.Set(fd, value(fd, r))
		}
	}
}

var words = strings.Fields(
	"order invoice customer payment shipped pending eu-west-1 projects locations default primary model endpoint checkout Ada Grace München welcome report daily",
)

// value returns a random scalar for a field. A number is often small. It is rarely zero, because
// publishers do not send zeros.
func value(fd protoreflect.FieldDescriptor, r *rand.Rand) protoreflect.Value {
	number := func() int64 {
		switch r.IntN(4) {
		case 0:
			return 1 + r.Int64N(10)
		case 1:
			return 1 + r.Int64N(1000)
		case 2:
			return 1 + r.Int64N(1<<30)
		}
		return 1 + r.Int64N(1<<20)
	}
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(4) > 0)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(r.IntN(values.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		v := int32(number())
		if r.IntN(20) == 0 {
			v = -v
		}
		return protoreflect.ValueOfInt32(v)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(number()))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		v := number()
		if r.IntN(3) == 0 {
			v = 1_600_000_000_000 + r.Int64N(200_000_000_000)
		}
		return protoreflect.ValueOfInt64(v)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(number()))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(r.IntN(10_000)) / 100)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(r.IntN(1_000_000)) / 1000)
	case protoreflect.BytesKind:
		b := make([]byte, 8+r.IntN(24))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return protoreflect.ValueOfBytes(b)
	}
	return protoreflect.ValueOfString(text(r))
}

func text(r *rand.Rand) string {
	word := func() string { return words[r.IntN(len(words))] }
	switch r.IntN(5) {
	case 0:
		return word()
	case 1:
		return fmt.Sprintf(
			"%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48),
		)
	case 2:
		return fmt.Sprintf("projects/%s-%d/locations/%s/items/%d", word(), r.IntN(1000), word(), r.IntN(100_000))
	case 3:
		return word() + " " + word() + " " + word()
	}
	return fmt.Sprintf("%s_%d", word(), r.IntN(1_000_000))
}
