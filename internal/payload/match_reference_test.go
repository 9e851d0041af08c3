package payload

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// reference is a simple and slow comparison of a body with a type, with which the tests compare the
// fast ranking. It uses only the descriptors, without signatures, shapes or a tree, and does not
// stop early.
//
// For every type in the ranking, the reference must find the same evidence. Every type that the
// reference finds must be in the ranking.
type reference struct {
	types  *descriptor.Resolver
	e      evidence
	beyond bool // some elements were not examined
}

func (r *reference) decodesAs(body []byte, md protoreflect.MessageDescriptor) bool {
	r.e.bytes = int64(len(body))
	parts := map[string]bool{}
	for i := range md.Fields().Len() {
		parts[partName(md.Fields().Get(i))] = true
	}
	r.e.parts = len(parts)
	return r.message(body, md, true)
}

// partName returns the name of a field. If the field belongs to a oneof, it returns the name of the
// oneof.
func partName(fd protoreflect.FieldDescriptor) string {
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return "oneof " + string(o.Name())
	}
	return string(fd.FullName())
}

func (r *reference) message(b []byte, md protoreflect.MessageDescriptor, top bool) bool {
	seen, parts := map[protoreflect.FieldNumber]bool{}, map[string]bool{}
	var seconds, nanos uint64
	url := "a/b"
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num > protowire.MaxValidNumber {
			return false
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return false
		}
		long := n != protowire.SizeTag(num)
		value := b[n : n+size]
		b = b[n+size:]
		fd := r.types.Field(md, num)
		if fd == nil {
			r.countUnknown(n + size)
			continue
		}
		many := fd.IsList() || fd.IsMap()
		packed := typ == protowire.BytesType && fd.IsList() && descriptor.Packable(fd.Kind())
		if typ != descriptor.WireType(fd.Kind()) && !packed {
			if md.IsMapEntry() {
				return false
			}
			r.countUnknown(n + size)
			r.e.odd++
			continue
		}
		r.e.known++
		odd := seen[num] && (!many || fd.IsPacked())
		seen[num] = true
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && parts[partName(fd)] {
			odd = true
		}
		parts[partName(fd)] = true
		unsent := !fd.HasPresence() && !many && !md.IsMapEntry()
		var content []byte
		if typ == protowire.BytesType {
			var of int
			content, of = protowire.ConsumeBytes(value)
			long = long || of-len(content) != protowire.SizeVarint(uint64(len(content)))
		}
		switch {
		case fd.Kind() == protoreflect.GroupKind:
			inner, _ := protowire.ConsumeGroup(num, value)
			if !r.message(inner, fd.Message(), false) {
				return false
			}
		case fd.Kind() == protoreflect.MessageKind:
			if !r.message(content, fd.Message(), false) {
				return false
			}
		case packed:
			wrong, number := 0, 0
			for p := content; len(p) > 0; number++ {
				n := protowire.ConsumeFieldValue(1, descriptor.WireType(fd.Kind()), p)
				if n < 0 {
					return false
				}
				if descriptor.WireType(fd.Kind()) == protowire.VarintType {
					v, _ := protowire.ConsumeVarint(p)
					odd = odd || n != protowire.SizeVarint(v)
					if number < maxElements {
						bad, outside := r.number(fd, v)
						odd = odd || bad
						wrong += outside
					} else {
						r.beyond = true
					}
				}
				p = p[n:]
			}
			if fd.Enum() != nil && wrong > 0 {
				r.e.noEnum++
			} else if fd.Enum() != nil {
				r.e.enums++
			}
			odd = odd || !fd.IsPacked() || len(content) == 0
			if len(content) >= 8 && printable(content) {
				r.e.textAsNumbers++
			} else if len(content) >= 4 && wireShaped(content, 1<<30) {
				r.e.textAsBytes++
			}
		case fd.Kind() == protoreflect.StringKind:
			switch {
			case !utf8.Valid(content):
				return false
			case !printable(content):
				r.e.noText++
			case len(content) >= 3:
				r.e.texts++
			}
			odd = odd || unsent && len(content) == 0
			if num == 1 {
				url = string(content)
			}
		case fd.Kind() == protoreflect.BytesKind:
			odd = odd || unsent && len(content) == 0
			opaque := md.FullName() == "google.protobuf.Any" || md.FullName() == "google.protobuf.BytesValue"
			if !opaque && len(content) >= 4 && (printable(content) || wireShaped(content, 1<<30)) {
				r.e.textAsBytes++
			}
		default:
			var v uint64
			switch typ {
			case protowire.VarintType:
				var n int
				v, n = protowire.ConsumeVarint(value)
				long = long || n != protowire.SizeVarint(v)
			case protowire.Fixed32Type:
				w, _ := protowire.ConsumeFixed32(value)
				v = uint64(w)
			case protowire.Fixed64Type:
				v, _ = protowire.ConsumeFixed64(value)
			}
			odd = odd || unsent && v == 0 || fd.IsPacked()
			bad, outside := r.number(fd, v)
			odd = odd || bad
			if fd.Enum() != nil {
				r.e.noEnum += outside
				r.e.enums += 1 - outside
			}
			if num == 1 {
				seconds = v
			} else if num == 2 {
				nanos = v
			}
		}
		if odd || long {
			r.e.odd++
		}
	}
	if top {
		r.e.covered = len(parts)
	}
	switch {
	case md.IsMapEntry() && !(seen[1] && seen[2]):
		r.e.odd++
	case md.FullName() == "google.protobuf.Timestamp":
		r.e.addTime(int64(seconds), int64(nanos))
	case md.FullName() == "google.protobuf.Duration":
		r.e.addDuration(int64(seconds), int64(nanos))
	case md.FullName() == "google.protobuf.Any" && !isTypeURL([]byte(url)):
		r.e.noTimes++
	}
	return true
}

func (r *reference) countUnknown(size int) {
	r.e.unread += int64(size)
	r.e.unreadFields++
}

// number checks whether a value fits the type of a field. The result "odd" is true if the value is
// outside the range of the type. The result "outside" is 1 if the value is not in the enum of the
// field.
func (r *reference) number(fd protoreflect.FieldDescriptor, v uint64) (odd bool, outside int) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return v > 1, 0
	case protoreflect.Int32Kind:
		return v != uint64(int32(v)), 0
	case protoreflect.Uint32Kind, protoreflect.Sint32Kind:
		return v != uint64(uint32(v)), 0
	case protoreflect.EnumKind:
		if fd.Enum().Values().ByNumber(protoreflect.EnumNumber(v)) == nil {
			outside = 1
		}
		return v != uint64(int32(v)), outside
	}
	return false, 0
}

type listed struct {
	name string
	rank float64
	e    evidence
}

// ranked lists all types that can decode a body according to the reference, the best first.
func ranked(t testing.TB, r *descriptor.Registry, body []byte, h Hints) (list []listed) {
	for _, name := range r.Types() {
		defs, _ := r.Lookup(name)
		ref := reference{types: defs[0].Types}
		m := dynamicpb.NewMessage(defs[0].Desc)
		err := unmarshal(body, m, defs[0].Types)
		if !ref.decodesAs(body, defs[0].Desc) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: the reference reads %x, the decoder says %v", name, body, err)
		}
		// If the reference finds nothing odd and nothing unknown in the body, the message must have
		// the same size when it is encoded again.
		if again, _ := (proto.MarshalOptions{AllowPartial: true}).Marshal(
			m,
		); ref.e.odd == 0 && ref.e.unread == 0 && !ref.beyond && len(
			again,
		) != len(body) && defs[0].Desc.Syntax() == protoreflect.Proto3 && !hasMap(m) {
			t.Fatalf("%s: %x re-encodes to %x, evidence %+v", name, body, again, ref.e)
		}
		if score := ref.e.score(); score >= listedFrom {
			p := min(1, h.Prior[name])
			if p < likely {
				p = 0
			}
			list = append(list, listed{name, score + priorWeight*p, ref.e})
		}
	}
	slices.SortStableFunc(
		list, func(a, b listed) int { return cmp.Or(cmp.Compare(b.rank, a.rank), strings.Compare(a.name, b.name)) },
	)
	tied := 0
	for tied < len(list) && list[0].rank-list[tied].rank <= margin {
		tied++
	}
	slices.SortStableFunc(list[:tied], func(a, b listed) int { return cmp.Compare(h.Prior[b.name], h.Prior[a.name]) })
	return list
}

func compareRankings(t testing.TB, r *descriptor.Registry, body []byte, h Hints) {
	t.Helper()
	got := (&Decoder{Types: r}).Match(body, h, nil)
	var want []listed
	if whyNotCompared(body, isProtobuf(h.ContentType)) == "" {
		want = ranked(t, r, body, h)
	}
	for i := range max(len(got.Matches), min(len(want), maxMatches)) {
		if i >= len(got.Matches) || i >= len(want) {
			t.Fatalf("%x: fast %+v, reference %+v", body, got, want)
		}
		g, w := got.Matches[i], want[i]
		if g.Type != w.name || g.Score != shapeMost*min(1, w.rank) ||
			!slices.Equal(g.Why[:len(w.e.reasons())], w.e.reasons()) {
			t.Fatalf("%x, place %d: fast %+v, reference %s %v %v", body, i+1, g, w.name, w.rank, w.e.reasons())
		}
	}
	tied, top := 0, 0.0
	for _, w := range want {
		top = max(top, w.rank)
	}
	for _, w := range want {
		if top-w.rank <= margin {
			tied++
		}
	}
	if got.Tied != tied {
		t.Fatalf("%x: fast %d tied, reference %d", body, got.Tied, tied)
	}
}

// invented returns a registry of invented types with fields of all kinds. Many types are similar.
var invented = sync.OnceValue(func() *descriptor.Registry { return inventTypes(300) })

func inventTypes(n int) *descriptor.Registry {
	rnd := rand.New(rand.NewPCG(7, 8))
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("invented.proto"), Package: proto.String("invented"), Syntax: proto.String("proto3"),
		Dependency: []string{
			"google/protobuf/timestamp.proto", "google/protobuf/duration.proto", "google/protobuf/any.proto",
		},
		EnumType: []*descriptorpb.EnumDescriptorProto{
			{Name: proto.String("State"), Value: []*descriptorpb.EnumValueDescriptorProto{
				{Name: proto.String("A"), Number: proto.Int32(0)},
				{Name: proto.String("B"), Number: proto.Int32(1)},
				{Name: proto.String("C"), Number: proto.Int32(2)},
				{Name: proto.String("D"), Number: proto.Int32(-5)},
			}},
		},
	}
	kinds := []descriptorpb.FieldDescriptorProto_Type{
		9, 9, 9, 9, 9, 5, 3, 13, 8, 14, 11, 11, 11, 12, 1, 2, 17, 18, 4, 6, 7, 15, 16,
	}
	for i := range n {
		m := &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprintf("T%d", i))}
		num := int32(0)
		oneof := false
		for f := range 1 + rnd.IntN(9) {
			num += 1 + int32(rnd.IntN(10)/9)*int32(rnd.IntN(20)*rnd.IntN(20))
			k := kinds[rnd.IntN(len(kinds))]
			fd := &descriptorpb.FieldDescriptorProto{
				Name: proto.String(fmt.Sprintf("f%d", f)), Number: proto.Int32(num), Type: k.Enum(),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}
			switch k {
			case descriptorpb.FieldDescriptorProto_TYPE_ENUM:
				fd.TypeName = proto.String(".invented.State")
			case descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
				fd.TypeName = proto.String([]string{
					".google.protobuf.Timestamp", ".google.protobuf.Duration", ".google.protobuf.Any",
					fmt.Sprintf(".invented.T%d", rnd.IntN(n)),
				}[min(3, rnd.IntN(8))])
			}
			switch rnd.IntN(8) {
			case 0, 1:
				fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
				if k != 9 && k != 11 && k != 12 && rnd.IntN(4) == 0 {
					fd.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(false)}
				}
			case 2:
				fd.OneofIndex = proto.Int32(0)
				oneof = true
			case 3:
				entry := fmt.Sprintf("F%dEntry", f)
				value := proto.Clone(fd).(*descriptorpb.FieldDescriptorProto)
				value.Name, value.Number = proto.String("value"), proto.Int32(2)
				m.NestedType = append(m.NestedType, &descriptorpb.DescriptorProto{
					Name: &entry, Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
					Field: []*descriptorpb.FieldDescriptorProto{
						{
							Name: proto.String("key"), Number: proto.Int32(1),
							Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: fd.Label,
						},
						value,
					},
				})
				fd.Type, fd.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(fmt.Sprintf(".invented.T%d.%s", i, entry))
				fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
			m.Field = append(m.Field, fd)
		}
		if oneof {
			m.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: proto.String("choice")}}
			// the members of a oneof must be adjacent
			slices.SortStableFunc(m.Field, func(a, b *descriptorpb.FieldDescriptorProto) int {
				return map[bool]int{true: 1}[a.OneofIndex == nil] - map[bool]int{true: 1}[b.OneofIndex == nil]
			})
		}
		file.MessageType = append(file.MessageType, m)
	}
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	if err != nil {
		panic(err)
	}
	r := descriptor.NewRegistry()
	if _, err := r.AddSet("invented", b); err != nil {
		panic(err)
	}
	return r
}

// hasMap reports whether a message contains a map. On the wire, a map can have duplicate keys.
func hasMap(m protoreflect.Message) (has bool) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			has = true
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				has = has || hasMap(v.List().Get(i).Message())
			}
		default:
			has = hasMap(v.Message())
		}
		return !has
	})
	return has
}

func TestMatchIsLikeTheReference(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	r := invented()
	rnd := rand.New(rand.NewPCG(9, 10))
	names := r.Types()
	rounds := 1_000
	if testing.Short() {
		rounds = 300
	}
	for range rounds {
		name := names[rnd.IntN(len(names))]
		defs, _ := r.Lookup(name)
		body, err := proto.Marshal(payloadtest.Instance(defs[0].Desc, rnd))
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > 3000 {
			continue
		}
		h := Hints{ContentType: "application/protobuf"}
		if rnd.IntN(3) == 0 {
			h.Prior = map[string]float64{name: rnd.Float64(), names[rnd.IntN(len(names))]: 2 * rnd.Float64()}
		}
		compareRankings(t, r, body, h)
		for range rnd.IntN(4) { // damages the body
			if len(body) == 0 {
				break
			}
			at := rnd.IntN(len(body))
			switch rnd.IntN(4) {
			case 0:
				body[at] ^= 1 << rnd.IntN(8)
			case 1:
				body = slices.Delete(body, at, at+1)
			case 2:
				body = slices.Insert(body, at, byte(rnd.Uint32()))
			case 3:
				body = append(body, body[at:]...)
			}
		}
		compareRankings(t, r, body, h)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add(sample(f), true, 0.5)
	f.Add(encodeStd(sample(f)), false, 0.0)
	f.Add(
		encode(
			f, "Kinds",
			`{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z", "timeout": "1s"}`,
		),
		true, 1.0,
	)
	f.Add(
		encode(
			f, "acme.odd.Order",
			`{"line": {"sku": "s"}, "extra": [{"n": 1}], "unpacked": [1], "[acme.odd.codes]": [1, 2]}`,
		),
		true, 0.0,
	)
	f.Add(bytes.Repeat([]byte{0x12, 0x00}, 100), true, 0.0)
	f.Add(payloadtest.Nested([]byte{0x18, 1}, 0xa2, 25), true, 0.0)
	f.Add(append(bytes.Repeat([]byte{0xa3, 0x06}, 50), bytes.Repeat([]byte{0xa4, 0x06}, 50)...), true, 0.0)
	f.Add([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'}, true, 0.0)
	f.Fuzz(func(t *testing.T, body []byte, declared bool, prior float64) {
		h := Hints{Prior: map[string]float64{email: prior, "invented.T1": 1 - prior}}
		if declared {
			h.ContentType = "application/protobuf"
		}
		b := budget.NewBudget()
		got := (&Decoder{Types: schemas()}).Match(body, h, b)
		checkWithin(t, b)
		if strings.Contains(got.Why, "internal error") {
			t.Fatal(got.Why)
		}
		tiny := &budget.Budget{Bytes: 64, Fields: 8, Depth: 3, Memory: 1 << 18}
		(&Decoder{Types: schemas()}).Match(body, h, tiny)
		checkWithin(t, tiny)
		// The reference counts all fields of a body. If the tree has no nodes for some of these
		// fields, a ranking that uses the tree cannot be compared with the reference.
		var tree wireTree
		if !tree.read(body, maxWireFields) || tree.cut || got.Left == 0 && len(body) > 4000 {
			return
		}
		compareRankings(t, invented(), body, h)
	})
}
