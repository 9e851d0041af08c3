package payload

import (
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// hiddenFields calls the function "hide" with the range of each masked value in a message, for some
// of them twice. It reads the wire format and not the decoded message, because every occurrence of
// a field counts, even one that a later occurrence overrides.
func hiddenFields(body []byte, def *descriptor.Type, at spot, hide func(from, to int)) {
	if at.hidesNothing() {
		return
	}
	w := &hiding{types: def.Types, whole: cap(body), spare: 1<<18 + 8*len(body), hide: hide}
	w.message(body, def.Desc, at.inside(def.Desc), 0)
	if w.merged { // what was read before this was known may hide more
		w.message(body, def.Desc, at.inside(def.Desc), 0)
	}
	at.m.concealed = w.concealed
}

type hiding struct {
	types *descriptor.Resolver
	whole int // capacity of the slice of the whole body, as in Scan
	hide  func(from, to int)
	// a singular message field occurs more than once, and the decoder merges the occurrences; a
	// type URL may then be separated from its content
	merged    bool
	concealed []string // see masking
	// bytes of Anys that may still be read by a further definition; without a limit, nested Anys
	// would double the time at each level
	spare int
}

func (w *hiding) hideAll(b []byte) {
	if len(b) > 0 {
		from := w.whole - cap(b)
		w.hide(from, from+len(b))
	}
}

func (w *hiding) hideIfMasked(at spot, value string, b []byte) {
	if _, masked := at.apply(value); masked {
		w.hideAll(b)
	}
}

// countSingular records an occurrence of a singular message field, and detects a repeated
// occurrence.
func (w *hiding) countSingular(fd protoreflect.FieldDescriptor, seen *[]protowire.Number) {
	if fd == nil || fd.Message() == nil || fd.Cardinality() == protoreflect.Repeated || w.merged {
		return
	}
	w.merged = slices.Contains(*seen, fd.Number())
	*seen = append(*seen, fd.Number())
}

// message reads well-formed bytes of a message up to the end of the input, or up to the tag that
// ends a protobuf group. It returns the bytes that follow. The parameter "at" is the spot of the
// content of the message. The caller must have scanned the bytes, because the scan limits the
// depth.
func (w *hiding) message(b []byte, md protoreflect.MessageDescriptor, at spot, depth int) []byte {
	var urls, contents [][]byte
	var seen []protowire.Number
	isAny := md.FullName() == "google.protobuf.Any"
	for len(b) > 0 && depth <= 2*budget.DefaultDepth {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		v := b[n:]
		if typ == protowire.EndGroupType {
			b = v
			break
		}
		fd := w.types.Field(md, num)
		w.countSingular(fd, &seen)
		if isAny && typ == protowire.BytesType {
			p, _ := protowire.ConsumeBytes(v)
			switch num {
			case 1:
				urls = append(urls, p)
			case 2:
				contents = append(contents, p)
			}
		}
		if inner := at; fd != nil && fd.Kind() == protoreflect.GroupKind && typ == protowire.StartGroupType {
			if inner = at.field(fd).inside(fd.Message()); !inner.hidden {
				b = w.message(v, fd.Message(), inner, depth+1)
				continue
			}
		}
		m := protowire.ConsumeFieldValue(num, typ, v)
		if m < 0 {
			return nil
		}
		w.field(v[:m], fd, num, typ, at, depth)
		b = v[m:]
	}
	if isAny {
		w.readAny(urls, contents, md, at, depth)
	}
	return b
}

// readAny reads the content of a google.protobuf.Any. If the Any has several URLs or contents, or
// if parts of it are elsewhere, it may be unclear which content has which type. In that case,
// readAny hides everything that might have to be hidden.
func (w *hiding) readAny(urls, contents [][]byte, md protoreflect.MessageDescriptor, at spot, depth int) {
	if len(contents) == 0 {
		return
	}
	var inner protoreflect.MessageDescriptor
	var defs []*descriptor.Type
	url := ""
	if len(urls) > 0 && len(urls[len(urls)-1]) > 0 {
		url = string(urls[len(urls)-1])
		defs = w.types.AnyContent(url)
	}
	if len(defs) > 0 {
		inner = defs[0].Desc
	}
	at = at.content(md, url, defs)
	several := w.merged || len(urls) > 1 || len(contents) > 1
	named := inner
	if several || len(urls) == 0 || len(urls[len(urls)-1]) == 0 {
		named = md
	}
	if at.unreadAny(named).hidden && (several || inner == nil || !canDecode(contents[0], defs[0])) {
		for _, c := range contents {
			w.hideAll(c)
		}
		return
	}
	last := contents[len(contents)-1]
	var own []Range
	for i, def := range defs {
		if i > 0 {
			if w.spare -= len(last); w.spare < 0 {
				w.conceal(url, last)
				return
			}
			if !canDecode(last, def) {
				continue
			}
			at = at.withoutUnknown()
		}
		for _, r := range w.hiddenIn(last, def, at, depth) {
			if i == 0 {
				own = append(own, r)
				w.hide(r.From, r.To)
			} else if !slices.ContainsFunc(own, func(o Range) bool { return o.From <= r.From && r.To <= o.To }) {
				w.conceal(url, last)
				return
			}
		}
	}
}

// conceal hides the whole content of an Any.
func (w *hiding) conceal(url string, content []byte) {
	w.concealed = append(w.concealed, url)
	w.hideAll(content)
}

// hiddenIn returns the ranges that are hidden in the content of an Any if it has the given
// definition. The parameter "at" is the spot of the content.
func (w *hiding) hiddenIn(content []byte, def *descriptor.Type, at spot, depth int) (list []Range) {
	in := *w
	in.types, in.hide = def.Types, func(from, to int) { list = append(list, Range{from, to}) }
	if at = at.inside(def.Desc); at.hidden {
		in.hideAll(content)
	} else {
		in.message(content, def.Desc, at, depth+1)
	}
	w.merged, w.concealed, w.spare = in.merged, in.concealed, in.spare
	return list
}

// canDecode reports whether the tree can decode the content of an Any.
func canDecode(content []byte, def *descriptor.Type) bool {
	s := &descriptor.Scan{
		Budget: &budget.Budget{Fields: math.MaxInt64, Depth: 2 * budget.DefaultDepth, Memory: math.MaxInt64},
		Types:  def.Types,
	}
	return s.Run(content, def.Desc) == nil
}

func (w *hiding) field(
	v []byte, fd protoreflect.FieldDescriptor, num protowire.Number, typ protowire.Type, at spot, depth int,
) {
	p := v
	if typ == protowire.BytesType {
		p, _ = protowire.ConsumeBytes(v)
	}
	if !accepts(fd, typ) {
		if at = at.unknownField(fd, int32(num)); typ == protowire.VarintType {
			x, _ := protowire.ConsumeVarint(v)
			w.hideIfMasked(at, strconv.FormatUint(x, 10), v)
			return
		}
		w.hideIfMasked(at, string(p), p)
		return
	}
	at = at.field(fd)
	kind := fd.Kind()
	switch {
	case at.hidden:
		w.hideAll(p)
	case kind == protoreflect.GroupKind: // the field has a hidden type
		w.hideAll(v)
	case typ != protowire.BytesType:
		w.hideIfMasked(at, wireText(fd, v), v)
	case fd.IsMap():
		w.entry(p, fd, at, depth)
	case kind == protoreflect.MessageKind:
		w.submessage(p, fd.Message(), at, depth)
	case descriptor.Packable(kind):
		for len(p) > 0 {
			n := protowire.ConsumeFieldValue(1, descriptor.WireType(kind), p)
			if n < 0 {
				return
			}
			w.hideIfMasked(at, wireText(fd, p[:n]), p[:n])
			p = p[n:]
		}
	default:
		w.hideIfMasked(at.text(len(p)), string(p), p)
	}
}

// submessage reads the content of a message. The parameter "at" is the spot of the message: its
// position, with the masks that apply there.
func (w *hiding) submessage(p []byte, md protoreflect.MessageDescriptor, at spot, depth int) {
	at = at.inside(md)
	if at.hidden {
		w.hideAll(p)
		return
	}
	if whole, ok := w.formatted(p, md); ok {
		w.hideIfMasked(at, whole, p)
		return
	}
	w.message(p, md, at, depth+1)
}

// entry reads an entry of a map. The key decides which masks apply to the value, but the bytes of
// the key may come after those of the value.
func (w *hiding) entry(p []byte, fd protoreflect.FieldDescriptor, at spot, depth int) {
	key := fd.MapKey().Default().MapKey().String()
	for num, f := range rawFields(p) {
		typ, v := f.typ, f.raw
		switch {
		case num != 1 || typ != descriptor.WireType(fd.MapKey().Kind()):
		case typ == protowire.BytesType:
			k, _ := protowire.ConsumeBytes(v)
			key = string(k)
			w.hideIfMasked(at, key, k)
		default:
			key = wireText(fd.MapKey(), v)
			w.hideIfMasked(at, key, v)
		}
	}
	inner, val := at.entry(fd, key), fd.MapValue()
	var seen []protowire.Number
	for num, f := range rawFields(p) {
		typ, v, content := f.typ, f.raw, f.raw
		if typ == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(v)
		}
		switch {
		case num == 1 && typ == descriptor.WireType(fd.MapKey().Kind()):
		case inner.hidden:
			w.hideAll(content)
		case num != 2 || typ != descriptor.WireType(val.Kind()):
			w.field(v, nil, num, typ, inner, depth)
		case val.Message() != nil:
			w.countSingular(val, &seen)
			w.submessage(content, val.Message(), inner, depth)
		case typ == protowire.BytesType:
			w.hideIfMasked(inner.text(len(content)), string(content), content)
		default:
			w.hideIfMasked(inner, wireText(val, v), v)
		}
	}
}

// rawField is a field of a message on the wire.
type rawField struct {
	typ protowire.Type
	raw []byte // the value without its tag
}

// rawFields returns the fields of a message by their numbers, up to the first one that is damaged.
func rawFields(b []byte) iter.Seq2[protowire.Number, rawField] {
	return func(yield func(protowire.Number, rawField) bool) {
		for len(b) > 0 {
			num, typ, n := protowire.ConsumeTag(b)
			size := protowire.ConsumeFieldValue(num, typ, b[max(n, 0):])
			if n < 0 || size < 0 || !yield(num, rawField{typ, b[n : n+size]}) {
				return
			}
			b = b[n+size:]
		}
	}
}

// isUnwrapped reports whether paths omit a field. They omit it if the message that contains the
// field is shown as a single value. For example, a Timestamp is shown as a time, so paths omit its
// field "seconds".
func isUnwrapped(fd protoreflect.FieldDescriptor) bool {
	md := fd.ContainingMessage()
	return !fd.IsExtension() && descriptor.IsGoogle(md.FullName()) && md.FullName() != "google.protobuf.Any" &&
		hasSpecialForm(md)
}

// formatted returns the text of a Timestamp or Duration.
func (w *hiding) formatted(p []byte, md protoreflect.MessageDescriptor) (string, bool) {
	name := md.FullName()
	if name != "google.protobuf.Timestamp" && name != "google.protobuf.Duration" {
		return "", false
	}
	var seconds, nanos int64
	for num, f := range rawFields(p) {
		x, _ := protowire.ConsumeVarint(f.raw)
		switch {
		case f.typ != protowire.VarintType || num > 2:
			return "", false
		case num == 1:
			seconds = int64(x)
		default:
			nanos = int64(int32(x))
		}
	}
	if name == "google.protobuf.Timestamp" {
		return timestampText(seconds, nanos)
	}
	return durationText(seconds, nanos)
}

// wireText returns a scalar that is not length-delimited, as the tree shows it.
func wireText(fd protoreflect.FieldDescriptor, v []byte) string {
	kind := fd.Kind()
	var x uint64
	switch descriptor.WireType(kind) {
	case protowire.VarintType:
		x, _ = protowire.ConsumeVarint(v)
	case protowire.Fixed32Type:
		y, _ := protowire.ConsumeFixed32(v)
		x = uint64(y)
	case protowire.Fixed64Type:
		x, _ = protowire.ConsumeFixed64(v)
	default:
		return ""
	}
	return scalarText(fd, x)
}

// scalarText returns the value of a field as text. The parameter x holds the bits of the value on
// the wire, and the kind of the field says how these bits must be read.
func scalarText(fd protoreflect.FieldDescriptor, x uint64) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return strconv.FormatBool(protowire.DecodeBool(x))
	case protoreflect.EnumKind:
		number := protoreflect.EnumNumber(int32(x))
		if ev := fd.Enum().Values().ByNumber(number); ev != nil {
			return string(ev.Name())
		}
		return strconv.Itoa(int(number))
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return strconv.FormatInt(int64(int32(x)), 10)
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return strconv.FormatInt(int64(x), 10)
	case protoreflect.Sint32Kind:
		return strconv.FormatInt(int64(int32(protowire.DecodeZigZag(x&math.MaxUint32))), 10)
	case protoreflect.Sint64Kind:
		return strconv.FormatInt(protowire.DecodeZigZag(x), 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return strconv.FormatUint(uint64(uint32(x)), 10)
	case protoreflect.FloatKind:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(x))), 'g', -1, 32)
	case protoreflect.DoubleKind:
		return strconv.FormatFloat(math.Float64frombits(x), 'g', -1, 64)
	}
	return strconv.FormatUint(x, 10)
}
