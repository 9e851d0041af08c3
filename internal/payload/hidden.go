package payload

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// hiddenFields returns what finds the bytes of masked values in a message, for the hex view. It walks the wire rather than the decoded
// message: every occurrence counts, also one that a later one overrides.
func hiddenFields(body []byte, def *definition, mask Mask) func(limit int, hide func(from, to int)) {
	return func(limit int, hide func(from, to int)) {
		if mask == nil {
			return
		}
		w := &hiding{mask: mask, types: def.types, whole: cap(body), limit: limit, hide: hide}
		w.message(body, def.desc, "", 0, 0)
	}
}

type hiding struct {
	mask  Mask
	types *resolver
	whole int // as in scan
	limit int
	hide  func(from, to int)
}

func (w *hiding) ask(path, value string, b []byte) {
	if _, masked := w.mask.apply(path, value); masked {
		from := w.whole - cap(b)
		w.hide(from, from+len(b))
	}
}

// message walks well-formed bytes until their end or that of the group, and returns what follows. The depth was bounded by the scan.
func (w *hiding) message(b []byte, md protoreflect.MessageDescriptor, path string, group protowire.Number, depth int) []byte {
	var url, content []byte
	isAny := md.FullName() == "google.protobuf.Any"
	for len(b) > 0 && w.whole-cap(b) < w.limit && depth <= 2*defaultDepth {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		v := b[n:]
		if typ == protowire.EndGroupType {
			return v
		}
		fd := w.types.field(md, num)
		if isAny && typ == protowire.BytesType {
			p, _ := protowire.ConsumeBytes(v)
			switch num {
			case 1:
				url = p
			case 2:
				content = p
			}
		}
		if fd != nil && fd.Kind() == protoreflect.GroupKind && typ == protowire.StartGroupType {
			b = w.message(v, fd.Message(), join(path, fieldName(fd)), num, depth+1)
			continue
		}
		m := protowire.ConsumeFieldValue(num, typ, v)
		if m < 0 {
			return nil
		}
		w.field(v[:m], fd, num, typ, path, depth)
		b = v[m:]
	}
	if isAny && len(url) > 0 && len(url) < 1024 {
		if inner := w.types.anyContent(string(url)); inner != nil {
			if unlike(inner) {
				path = join(path, "value")
			}
			w.message(content, inner, path, 0, depth+1)
		}
	}
	return nil
}

func (w *hiding) field(v []byte, fd protoreflect.FieldDescriptor, num protowire.Number, typ protowire.Type, path string, depth int) {
	if fd == nil || typ != wireType(fd.Kind()) && !(typ == protowire.BytesType && packable(fd.Kind())) {
		inner := v
		if typ == protowire.BytesType {
			inner, _ = protowire.ConsumeBytes(v)
		}
		path = join(path, strconv.Itoa(int(num)))
		switch typ {
		case protowire.VarintType:
			x, _ := protowire.ConsumeVarint(v)
			w.ask(path, strconv.FormatUint(x, 10), v)
		default:
			w.ask(path, string(inner), inner)
		}
		return
	}
	if !unwraps(fd) {
		path = join(path, fieldName(fd))
	}
	kind := fd.Kind()
	if typ == protowire.BytesType {
		p, _ := protowire.ConsumeBytes(v)
		switch {
		case fd.IsMap():
			w.entry(p, fd, path, depth)
		case kind == protoreflect.MessageKind:
			if whole, ok := w.formatted(p, fd.Message()); ok {
				w.ask(path, whole, p)
				return
			}
			w.message(p, fd.Message(), path, 0, depth+1)
		case packable(kind):
			for len(p) > 0 {
				n := protowire.ConsumeFieldValue(1, wireType(kind), p)
				if n < 0 {
					return
				}
				w.ask(path, wireText(fd, p[:n]), p[:n])
				p = p[n:]
			}
		default:
			w.ask(path, string(p), p)
		}
		return
	}
	w.ask(path, wireText(fd, v), v)
}

// entry walks an entry of a map: its value has the key in its path.
func (w *hiding) entry(p []byte, fd protoreflect.FieldDescriptor, path string, depth int) {
	key := ""
	for b := p; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return
		}
		if v := b[n : n+m]; num == 1 && typ == wireType(fd.MapKey().Kind()) {
			if typ == protowire.BytesType {
				k, _ := protowire.ConsumeBytes(v)
				key = string(k)
				w.ask(path, key, k)
			} else {
				key = wireText(fd.MapKey(), v)
				w.ask(path, key, v)
			}
		}
		b = b[n+m:]
	}
	inner := join(path, key)
	for b := p; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return
		}
		v := b[n : n+m]
		val := fd.MapValue()
		switch {
		case num == 1:
		case num == 2 && typ == wireType(val.Kind()) && val.Message() != nil:
			content, _ := protowire.ConsumeBytes(v)
			if whole, ok := w.formatted(content, val.Message()); ok {
				w.ask(inner, whole, content)
			} else {
				w.message(content, val.Message(), inner, 0, depth+1)
			}
		case num == 2 && typ == protowire.BytesType:
			content, _ := protowire.ConsumeBytes(v)
			w.ask(inner, string(content), content)
		case num == 2 && typ == wireType(val.Kind()):
			w.ask(inner, wireText(val, v), v)
		default:
			w.field(v, nil, num, typ, inner, depth)
		}
		b = b[n+m:]
	}
}

// unwraps reports whether a field adds nothing to a path, because the view shows its message as if it were the value.
func unwraps(fd protoreflect.FieldDescriptor) bool {
	md := fd.ContainingMessage()
	return !fd.IsExtension() && isGoogle(md.FullName()) && md.FullName() != "google.protobuf.Any" && unlike(md)
}

// formatted is the text of a Timestamp or Duration.
func (w *hiding) formatted(p []byte, md protoreflect.MessageDescriptor) (string, bool) {
	name := md.FullName()
	if name != "google.protobuf.Timestamp" && name != "google.protobuf.Duration" {
		return "", false
	}
	var seconds, nanos int64
	for len(p) > 0 {
		num, typ, n := protowire.ConsumeTag(p)
		m := protowire.ConsumeFieldValue(num, typ, p[max(n, 0):])
		if n < 0 || m < 0 || typ != protowire.VarintType {
			return "", false
		}
		x, _ := protowire.ConsumeVarint(p[n:])
		switch num {
		case 1:
			seconds = int64(x)
		case 2:
			nanos = int64(int32(x))
		}
		p = p[n+m:]
	}
	if name == "google.protobuf.Timestamp" {
		return timestampText(seconds, nanos)
	}
	return durationText(seconds, nanos)
}

// wireText is the text of a scalar that is not length-delimited, as the tree has it.
func wireText(fd protoreflect.FieldDescriptor, v []byte) string {
	kind := fd.Kind()
	var x uint64
	switch wireType(kind) {
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

// scalarText reads the bits of a wire value as kind says.
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
