package payload

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// submessage makes the node of a message. Well-known types are shown in a readable form. A set may
// define google.protobuf.Timestamp in an unusual way, so the definition is checked first. If it is
// unusual, the message is shown like any other message.
func (t *tree) submessage(n *Node, m protoreflect.Message, at spot, parts []Range) {
	md := m.Descriptor()
	at = at.inside(md)
	if n.Type == "" {
		n.Type = string(md.Name())
	}
	if md.IsPlaceholder() {
		n.addNote("its type is missing in the descriptor set")
	}
	if at.hidden {
		t.hide(n)
		return
	}
	if descriptor.IsGoogle(md.FullName()) && t.wellKnown(n, m, at, parts) {
		return
	}
	n.Kind = Message
	n.Children = t.message(m, at, parts)
	if len(n.Children) == 0 && !m.IsValid() {
		n.addNote("empty")
	}
}

// hasSpecialForm reports whether pages and JSON show a type in another form than its fields.
func hasSpecialForm(md protoreflect.MessageDescriptor) bool {
	switch md.FullName() {
	case "google.protobuf.Any", "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask", "google.protobuf.Struct", "google.protobuf.Value",
		"google.protobuf.ListValue", "google.protobuf.BoolValue", "google.protobuf.Int32Value", "google.protobuf.Int64Value", "google.protobuf.UInt32Value",
		"google.protobuf.UInt64Value", "google.protobuf.FloatValue", "google.protobuf.DoubleValue", "google.protobuf.StringValue", "google.protobuf.BytesValue":
		return true
	}
	return false
}

// mayHoldText reports whether a type with a special form has texts of any kind in it.
func mayHoldText(md protoreflect.MessageDescriptor) bool {
	switch md.Name() {
	case "Any", "FieldMask", "Struct", "Value", "ListValue", "StringValue", "BytesValue":
		return true
	}
	return false
}

// wellKnown shows a message of a well-known type in a short form, for example a Timestamp as a
// time. It reports whether it did. A message with unknown fields is not shown in this form, because
// the form would omit them. An Any is an exception, because its unknown fields are shown beside its
// content.
func (t *tree) wellKnown(n *Node, m protoreflect.Message, at spot, parts []Range) bool {
	md := m.Descriptor()
	if !hasSpecialForm(md) || len(m.GetUnknown()) > 0 && md.Name() != "Any" {
		return false
	}
	switch md.Name() {
	case "Any":
		t.showAny(n, m, at, parts)
		return true
	case "Timestamp", "Duration":
		seconds, ok1 := scalarField(m, "seconds", protoreflect.Int64Kind)
		nanos, ok2 := scalarField(m, "nanos", protoreflect.Int32Kind)
		if !ok1 || !ok2 {
			return false
		}
		text, ok := timestampText(seconds.Int(), nanos.Int())
		kind := Timestamp
		if md.Name() == "Duration" {
			text, ok = durationText(seconds.Int(), nanos.Int())
			kind = Duration
		}
		if !ok {
			n.addNote("out of range")
			return false
		}
		t.setScalar(n, at, text, kind)
		return true
	case "FieldMask":
		fd := md.Fields().ByName("paths")
		if fd == nil || !fd.IsList() || fd.Kind() != protoreflect.StringKind {
			return false
		}
		list := m.Get(fd).List()
		paths := make([]string, 0, min(list.Len(), maxItems))
		for i := range min(list.Len(), maxItems) {
			paths = append(paths, list.Get(i).String())
		}
		text := strings.Join(paths, ", ")
		t.setScalar(n, at.text(len(text)), text, String)
		n.addNote(deadletter.Plural(list.Len(), "path", "paths"))
		return true
	case "Struct", "Value", "ListValue":
		return t.dynamic(n, m, at, parts)
	}
	fd := md.Fields().ByName("value") // the wrappers
	if fd == nil || fd.IsList() || fd.IsMap() || fd.Message() != nil || md.Fields().Len() != 1 {
		return false
	}
	t.value(n, fd, m.Get(fd), at, nil)
	return true
}

// dynamic shows a Struct, a Value or a ListValue like the JSON that it represents.
func (t *tree) dynamic(n *Node, m protoreflect.Message, at spot, parts []Range) bool {
	md := m.Descriptor()
	there := t.occurrences(parts)
	switch md.Name() {
	case "Struct":
		fd := md.Fields().ByName("fields")
		if fd == nil || !fd.IsMap() || fd.MapKey().Kind() != protoreflect.StringKind || fd.MapValue().Message() == nil {
			return false
		}
		t.mapEntries(n, fd, m.Get(fd).Map(), at, there[fd.Number()])
		n.Kind = Message
		return true
	case "ListValue":
		fd := md.Fields().ByName("values")
		if fd == nil || !fd.IsList() || fd.Message() == nil {
			return false
		}
		t.list(n, fd, m.Get(fd).List(), at, there[fd.Number()])
		return true
	}
	o := md.Oneofs().ByName("kind")
	if o == nil {
		return false
	}
	fd := m.WhichOneof(o)
	switch {
	case fd == nil:
		t.setScalar(n, at, "null", Null)
		n.addNote("no kind is set")
	case fd.Name() == "null_value":
		t.setScalar(n, at, "null", Null)
	case fd.Message() != nil:
		n.Type = string(fd.Message().Name())
		t.submessage(n, m.Get(fd).Message(), at, contentRanges(there[fd.Number()]))
	default:
		t.value(n, fd, m.Get(fd), at, nil)
	}
	return true
}

// scalarField returns the value of a singular field of a message. If the message has no singular
// field with this name and kind, scalarField returns false.
func scalarField(m protoreflect.Message, name protoreflect.Name, kind protoreflect.Kind) (protoreflect.Value, bool) {
	fd := m.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != kind || fd.IsList() || fd.IsMap() {
		return protoreflect.Value{}, false
	}
	return m.Get(fd), true
}

// timestampText returns a time such as "2026-11-20 06:52:14.208 UTC", with as many digits as
// needed. It returns false for times outside the years 1 to 9999.
func timestampText(seconds, nanos int64) (string, bool) {
	if seconds < -62135596800 || seconds > 253402300799 || nanos < 0 || nanos > 999_999_999 {
		return "", false
	}
	return time.Unix(seconds, nanos).UTC().Format("2006-01-02 15:04:05.999999999 UTC"), true
}

// durationText returns a duration such as "1 h 30 min 0.5 s", "-0.25 s" or "0 s". It returns false
// for more than 10,000 years, or if the seconds and the nanoseconds have different signs.
func durationText(seconds, nanos int64) (string, bool) {
	const limit = 315_576_000_000
	if seconds < -limit || seconds > limit || nanos <= -1e9 || nanos >= 1e9 || seconds > 0 && nanos < 0 ||
		seconds < 0 && nanos > 0 {
		return "", false
	}
	sign := ""
	if seconds < 0 || nanos < 0 {
		sign, seconds, nanos = "-", -seconds, -nanos
	}
	var parts []string
	for _, u := range []struct {
		size int64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}} {
		if n := seconds / u.size; n > 0 {
			parts = append(parts, strconv.FormatInt(n, 10)+" "+u.name)
			seconds %= u.size
		}
	}
	if seconds > 0 || nanos > 0 || len(parts) == 0 {
		s := strconv.FormatInt(seconds, 10)
		if nanos > 0 {
			s += strings.TrimRight(fmt.Sprintf(".%09d", nanos), "0")
		}
		parts = append(parts, s+" s")
	}
	return sign + strings.Join(parts, " "), true
}
