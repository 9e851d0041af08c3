package payload

import (
	"fmt"
	"math"
	"strings"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// site describes a value in the JSON of a message, or the name of a member. It contains what the
// schema says about this value or name, for example the field and its message type.
type site struct {
	md protoreflect.MessageDescriptor // the message type of the value, or of the message to which the name belongs
	fd protoreflect.FieldDescriptor   // the field; nil for the whole message, and inside a Struct
	// the value is an element of the list fd, or the value of an entry of the map fd
	element bool
	name    string // if the site is that of a name, the name of the member
	types   *descriptor.Resolver
}

// locate finds the value or the name that contains a certain byte of the text. It returns the path
// of this value or name, and a site, which contains what the schema says about it.
func (s site) locate(n *jsonNode, at int) (string, site) {
	path := ""
	for {
		next := -1
		for i, item := range n.items {
			switch {
			case n.kind == '{' && n.names[i].from <= at && at < n.names[i].from+len(n.names[i].raw):
				s.name = n.names[i].text
				return dotted(path, s.name), s
			case item.from <= at && at < item.to:
				next = i
			}
		}
		if next < 0 {
			return path, s
		}
		name := element(next)
		if n.kind == '{' {
			name = n.names[next].text
		}
		path = dotted(path, name)
		n, s = s.child(n, next)
	}
}

// member returns the site of a member of the JSON object n. The parameter "name" is the name of the
// member.
func (s site) member(n *jsonNode, name string) site {
	if s.fd != nil && s.fd.IsMap() && !s.element {
		return site{fd: s.fd, md: s.fd.MapValue().Message(), element: true, types: s.types}
	}
	md := s.md
	if md != nil && md.FullName() == "google.protobuf.Any" {
		if i := n.find("@type"); i >= 0 && name != "@type" {
			md = nil
			if defs := s.types.AnyContent(n.items[i].text); len(defs) > 0 {
				md, s.types = defs[0].Desc, defs[0].Types
			}
			if md != nil && hasSpecialForm(md) {
				return site{md: md, types: s.types}
			}
		} else {
			return site{types: s.types}
		}
	}
	if md == nil {
		return site{types: s.types}
	}
	fd := s.types.FieldNamed(md, name)
	if fd == nil {
		return site{types: s.types}
	}
	return site{fd: fd, md: fd.Message(), types: s.types}
}

// child returns the value with the given index in the JSON object or list n, and its site.
func (s site) child(n *jsonNode, i int) (*jsonNode, site) {
	if n.kind == '{' {
		return n.items[i], s.member(n, n.names[i].text)
	}
	s.element = true
	return n.items[i], s
}

// nameIn returns the name under which the JSON object n has the field that a person calls "name".
// If n does not have this field, or the schema does not know it, nameIn returns the person's name.
func (s site) nameIn(n *jsonNode, name string) string {
	if in := s.member(n, name); in.fd != nil && !in.element && n.find(name) < 0 {
		for _, other := range []string{in.fd.JSONName(), in.fd.TextName()} {
			if n.find(other) >= 0 {
				return other
			}
		}
	}
	return name
}

// instruction returns an instruction for the person whose JSON protojson has rejected. The
// parameter "mistake" is the error text of protojson.
func (s site) instruction(mistake string) string {
	has := func(part string) bool { return strings.Contains(mistake, part) }
	switch {
	case has("unknown field") && s.md != nil && s.md.FullName() == "google.protobuf.Any":
		return "the Any has no such field: its type does not know it, or is not registered here"
	case has("unknown field") && s.md != nil:
		return fmt.Sprintf("%s has no such field: %s", s.md.FullName(), s.fieldNames())
	case has("unknown field"):
		return "there is no such field here: remove it"
	case has("duplicate field"), has("duplicate map key"), has(`duplicate "`):
		return "this is there twice, under two spellings of its name: remove one"
	case has("invalid escape"), has("unexpected EOF"): // protobuf refuses this, other JSON decoders do not
		return "the text has half of a pair of escapes, which is not a character: write the character itself"
	case has("oneof"):
		return "another member of the same oneof is there already: keep one of them"
	case has("unable to resolve"):
		return "the type of this Any is not registered: upload its schema, or take another type"
	case has(`missing "@type"`):
		return `an Any needs its type: "@type": "type.googleapis.com/the.full.Name"`
	case has(`missing "value"`):
		return `an Any of this type has its content in "value"`
	case has("cannot be extended"):
		return "this extension belongs to another message: remove it"
	case s.fd != nil && s.fd.IsMap() && has(" key: "):
		return "a name in this map must be " + wantsKind(s.fd.MapKey()) + ", in double quotes"
	case s.fd == nil && s.md == nil:
		return "this value does not fit here"
	}
	return "write " + s.howToWrite()
}

// howToWrite says how to write the value.
func (s site) howToWrite() string {
	switch {
	case s.fd != nil && s.fd.IsMap() && !s.element:
		return `an object, { "key": value }`
	case s.fd != nil && s.fd.IsList() && !s.element:
		return "a list, [ ... ]"
	case s.md != nil:
		return wantsMessage(s.md)
	case s.fd.IsMap():
		return wantsKind(s.fd.MapValue())
	}
	return wantsKind(s.fd)
}

// fieldNames lists the names of the fields of the message.
func (s site) fieldNames() string {
	f := s.md.Fields()
	if f.Len() == 0 {
		return "it has none"
	}
	var list []string
	for i := range min(f.Len(), 12) {
		list = append(list, f.Get(i).JSONName())
	}
	if left := f.Len() - len(list); left > 0 {
		list = append(list, fmt.Sprintf("and %d more", left))
	}
	text, _ := cut("it has "+strings.Join(list, ", "), 400)
	return text
}

func wantsMessage(md protoreflect.MessageDescriptor) string {
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		return `a time of the years 1 to 9999, "2026-01-02T03:04:05.678Z"`
	case "google.protobuf.Duration":
		return `seconds, "1.5s"`
	case "google.protobuf.FieldMask":
		return `names of fields, "name,address.street"`
	case "google.protobuf.ListValue":
		return "a list, [ ... ]"
	case "google.protobuf.Value":
		return "a value of JSON; its numbers have the range of a double"
	}
	if hasSpecialForm(md) {
		if fd := md.Fields().ByName("value"); fd != nil && md.FullName() != "google.protobuf.Any" {
			return wantsKind(fd)
		}
	}
	return "an object, { ... }"
}

func wantsKind(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.StringKind:
		return "a text in double quotes"
	case protoreflect.BytesKind:
		return "base64 in double quotes"
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return fmt.Sprintf("a whole number from %d to %d", math.MinInt32, math.MaxInt32)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return fmt.Sprintf("a whole number from 0 to %d", uint32(math.MaxUint32))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return fmt.Sprintf("a whole number from %d to %d", math.MinInt64, math.MaxInt64)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return fmt.Sprintf(`a number in the range of a %s, "NaN", "Infinity" or "-Infinity"`, fd.Kind())
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		var list []string
		for i := range min(values.Len(), 12) {
			list = append(list, string(values.Get(i).Name()))
		}
		if left := values.Len() - len(list); left > 0 {
			list = append(list, fmt.Sprintf("one of %d more", left))
		}
		text, _ := cut(strings.Join(list, ", "), 400)
		return "a number, or one of these in double quotes: " + text
	}
	return "a value of the type " + fd.Kind().String()
}
