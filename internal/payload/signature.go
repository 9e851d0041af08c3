package payload

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// signature says which kinds of values on the wire a type accepts for its fields with numbers below
// 64. Each kind has a set of field numbers. With a signature, most types that do not fit a body are
// ruled out quickly.
type signature struct {
	varint, fixed32, fixed64, groups uint64 // fields that accept one value of this wire type
	texts, messages, bytes           uint64 // fields that accept length-delimited values of this kind
	varints, fixed32s, fixed64s      uint64 // fields that accept packed values, which are length-delimited
}

// shape is a message type in a form that can be compared quickly with many bodies, without
// interface calls or allocations. Shapes refer to each other as their types do.
type shape struct {
	dense   []int16 // index of each field number in fields; -1 = there is no such field
	sparse  map[int32]int16
	fields  []shapeField
	parts   int // number of fields; each oneof counts as one
	special special
}

type special uint8

const (
	ordinary special = iota
	mapEntry
	timestamp
	duration
	anyMessage
)

type shapeField struct {
	kind   protoreflect.Kind
	wire   int8 // wire type of one value
	list   bool
	packs  bool // publishers write the field packed
	absent bool // the field has no presence, so publishers do not write zeros
	opaque bool // a bytes field may contain a message or a text
	oneof  int8 // number of the oneof; 0 = none
	msg    *shape
	enum   []int32 // the numbers of the enum, sorted
}

// field returns the index of a field, or -1.
func (s *shape) field(num int32) int {
	if int(num) < len(s.dense) {
		return int(s.dense[num])
	}
	if i, ok := s.sparse[num]; ok {
		return int(i)
	}
	return -1
}

// inEnum reports whether an enum has the number v. The parameter "enum" holds its sorted numbers.
func inEnum(enum []int32, v int32) bool {
	if uint(v) < uint(len(enum)) && enum[v] == v { // most enums count from 0
		return true
	}
	_, ok := slices.BinarySearch(enum, v)
	return ok
}

// matchable is a type against which bodies are matched.
type matchable struct {
	name  string
	short string // short name in lower case
	shape *shape
	def   *descriptor.Type
}

// typeIndex contains all types against which bodies are matched. It is immutable.
type typeIndex struct {
	types      []matchable // sorted by name; a type that several sets define has one entry for each set
	signatures []signature // the signatures of types, in the same order
	names      int         // number of different names
}

// typesOf returns the types in the newest version of every set, except types without fields and
// those of google.protobuf.
func typesOf(r *descriptor.Registry) *typeIndex {
	return r.Memo(indexKey{}, func(newest []*descriptor.Resolver) any { return mergeTypes(newest) }).(*typeIndex)
}

type (
	indexKey      struct{}
	matchablesKey struct{}
)

func mergeTypes(newest []*descriptor.Resolver) *typeIndex {
	x := &typeIndex{}
	for _, types := range newest {
		for _, t := range matchablesOf(types) {
			t.def = &descriptor.Type{Desc: t.def.Desc, Types: types}
			x.types = append(x.types, t)
		}
	}
	slices.SortStableFunc(x.types, func(a, b matchable) int { return strings.Compare(a.name, b.name) })
	x.signatures = make([]signature, len(x.types))
	for i := range x.types {
		x.signatures[i] = x.types[i].shape.signature()
		if i == 0 || x.types[i].name != x.types[i-1].name {
			x.names++
		}
	}
	return x
}

// Prepare prepares the types of a schema for matching, so that the first body does not have to wait
// for this.
func Prepare(s *descriptor.Schema) { matchablesOf(s.Resolver()) }

// matchablesOf returns the types of a version in the form for matching. It makes them only once.
func matchablesOf(t *descriptor.Resolver) []matchable {
	return t.Memo(matchablesKey{}, func() any {
		var list []matchable
		c := &shapes{
			made:  map[protoreflect.MessageDescriptor]*shape{},
			exts:  map[protoreflect.FullName][]protoreflect.FieldDescriptor{},
			enums: map[protoreflect.EnumDescriptor][]int32{},
		}
		t.RangeExtensions(func(of protoreflect.FullName, x protoreflect.ExtensionTypeDescriptor) {
			c.exts[of] = append(c.exts[of], x)
		})
		for _, list := range c.exts {
			slices.SortFunc(list, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
		}
		t.RangeMessages(func(md protoreflect.MessageDescriptor) {
			if s := c.shape(md); len(s.fields) > 0 && !descriptor.IsGoogle(md.FullName()) {
				list = append(list, matchable{
					string(md.FullName()), plainName(string(md.Name())), s, &descriptor.Type{Desc: md, Types: t},
				})
			}
		})
		return list
	}).([]matchable)
}

// plainName returns a name in the form in which hints are compared: in lower case, without
// separators.
func plainName(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c == '/' || c == ':' || c == ' ' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// shapes builds the shapes of one version.
type shapes struct {
	made  map[protoreflect.MessageDescriptor]*shape
	exts  map[protoreflect.FullName][]protoreflect.FieldDescriptor
	enums map[protoreflect.EnumDescriptor][]int32
}

const maxDense = 256

func (c *shapes) shape(md protoreflect.MessageDescriptor) *shape {
	if s := c.made[md]; s != nil {
		return s
	}
	s := &shape{}
	c.made[md] = s // set before the fields are added, because they may refer to this shape
	switch {
	case md.IsMapEntry():
		s.special = mapEntry
	case md.FullName() == "google.protobuf.Timestamp":
		s.special = timestamp
	case md.FullName() == "google.protobuf.Duration":
		s.special = duration
	case md.FullName() == "google.protobuf.Any":
		s.special = anyMessage
	}
	fields := md.Fields()
	s.fields = make([]shapeField, 0, fields.Len())
	highest := int32(-1)
	for i := range fields.Len() {
		if n := int32(fields.Get(i).Number()); n < maxDense {
			highest = max(highest, n)
		}
	}
	s.dense = slices.Repeat([]int16{-1}, int(highest+1))
	for i := range fields.Len() {
		c.add(s, fields.Get(i))
	}
	for i := range s.fields {
		if s.fields[i].oneof == 0 {
			s.parts++
		}
	}
	for i := range md.Oneofs().Len() {
		if !md.Oneofs().Get(i).IsSynthetic() {
			s.parts++
		}
	}
	for _, fd := range c.exts[md.FullName()] {
		if md.ExtensionRanges().Has(fd.Number()) {
			c.add(s, fd)
		}
	}
	return s
}

// add adds a field to a shape. It does nothing if the shape already has a field with that number,
// or has too many fields.
func (c *shapes) add(s *shape, fd protoreflect.FieldDescriptor) {
	num := int32(fd.Number())
	if s.field(num) >= 0 || len(s.fields) >= 1<<15-1 {
		return
	}
	f := shapeField{
		kind:  fd.Kind(),
		wire:  int8(descriptor.WireType(fd.Kind())),
		list:  fd.IsList(),
		packs: fd.IsPacked(),
	}
	f.absent = !fd.HasPresence() && !f.list && !fd.IsMap() && s.special != mapEntry
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && o.Index() < 64 {
		f.oneof = int8(o.Index() + 1)
	}
	parent := fd.ContainingMessage().FullName()
	f.opaque = parent == "google.protobuf.Any" || parent == "google.protobuf.BytesValue"
	if fd.Message() != nil {
		f.msg = c.shape(fd.Message())
	}
	if ed := fd.Enum(); ed != nil {
		f.enum = c.enum(ed)
	}
	f.list = f.list || fd.IsMap()
	if int(num) < len(s.dense) {
		s.dense[num] = int16(len(s.fields))
	} else {
		if s.sparse == nil {
			s.sparse = make(map[int32]int16)
		}
		s.sparse[num] = int16(len(s.fields))
	}
	s.fields = append(s.fields, f)
}

func (c *shapes) enum(ed protoreflect.EnumDescriptor) []int32 {
	if list, ok := c.enums[ed]; ok {
		return list
	}
	values := ed.Values()
	list := make([]int32, values.Len())
	for i := range list {
		list[i] = int32(values.Get(i).Number())
	}
	slices.Sort(list)
	c.enums[ed] = slices.Compact(list)
	return c.enums[ed]
}

func (s *shape) signature() (g signature) {
	add := func(num int32, f *shapeField) {
		if num >= 64 {
			return
		}
		bit := uint64(1) << num
		switch f.kind {
		case protoreflect.StringKind:
			g.texts |= bit
		case protoreflect.BytesKind:
			g.bytes |= bit
		case protoreflect.MessageKind:
			g.messages |= bit
		case protoreflect.GroupKind:
			g.groups |= bit
		default:
			one, many := &g.varint, &g.varints
			switch wireIndex(f.wire) {
			case wire32:
				one, many = &g.fixed32, &g.fixed32s
			case wire64:
				one, many = &g.fixed64, &g.fixed64s
			}
			*one |= bit
			if f.list {
				*many |= bit
			}
		}
	}
	for num, i := range s.dense {
		if i >= 0 {
			add(int32(num), &s.fields[i])
		}
	}
	for num, i := range s.sparse {
		add(num, &s.fields[i])
	}
	return g
}
