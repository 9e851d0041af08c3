package payload

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// unmarking reads JSON that a person wrote and that contains marks in place of values without a
// JSON form (wireKey). It removes these marks, so that protojson can parse the rest. It then sets
// the values in the message.
type unmarking struct {
	types  *descriptor.Resolver
	source string
	text   strings.Builder
	at     int // position in the source up to which the new text is complete
	moves  []move
	found  []restore
	err    *markError
}

// restore is one marked value that was removed from the JSON before protojson parsed it. It
// contains the value, and the path at which the value is put into the parsed message.
type restore struct {
	path *hop
	v    protoreflect.Value
}

// hop is one step of the path to a value: from a message to one of its fields, elements or entries.
// Each hop refers to the hop before it. A nil hop is the outermost message. A hop identifies its
// field by number, because two decoded messages have different descriptors for the same extension.
type hop struct {
	up    *hop
	num   protoreflect.FieldNumber
	index int
	key   protoreflect.MapKey
}

// markError is a mistake in a marked value, with its byte offset in the text.
type markError struct {
	at      int
	message string
}

func (e *markError) Error() string { return e.message }

// readError is an error of protojson in a text from which marked values were removed.
type readError struct {
	error
	text  string
	moves []move
}

func (e *readError) Unwrap() error { return e.error }

// unmarshalMarked parses protojson in which marks may take the place of values without a JSON form
// (wireKey).
func unmarshalMarked(m *dynamicpb.Message, text string, tree *jsonNode, types *tolerant) error {
	options := protojson.UnmarshalOptions{Resolver: types, AllowPartial: true}
	k := &unmarking{types: types.Resolver, source: text}
	k.submessage(tree, m.Descriptor(), nil)
	if k.err != nil {
		return k.err
	}
	k.text.WriteString(text[k.at:])
	if err := options.Unmarshal([]byte(k.text.String()), m); err != nil {
		return &readError{err, k.text.String(), k.moves}
	}
	for _, r := range k.found {
		if !r.put(m) {
			return errors.New("a marked value has no place")
		}
	}
	if _, err := (proto.MarshalOptions{AllowPartial: true}).Marshal(m); err != nil {
		return &markError{
			-1, `a text that is marked "@wire" is not UTF-8, and its field takes nothing else: write it as text`,
		}
	}
	return nil
}

// put sets a value in a message that was parsed without it, because protojson cannot read this
// value.
func (r restore) put(m protoreflect.Message) bool {
	if r.path == nil {
		proto.Merge(m.Interface(), r.v.Message().Interface())
		return true
	}
	var path []*hop
	for h := r.path; h != nil; h = h.up {
		path = append(path, h)
	}
	slices.Reverse(path)
	for i, h := range path {
		f, ok := fieldsOf(m)[h.num]
		if !ok {
			return false
		}
		last := i == len(path)-1
		switch {
		case f.fd.IsList():
			list := m.Mutable(f.fd).List()
			if h.index >= list.Len() {
				return false
			}
			if last {
				list.Set(h.index, r.v)
			} else {
				m = list.Get(h.index).Message()
			}
		case f.fd.IsMap():
			entries := m.Mutable(f.fd).Map()
			if !entries.Has(h.key) {
				return false
			}
			if last {
				entries.Set(h.key, r.v)
			} else {
				m = entries.Mutable(h.key).Message()
			}
		case last:
			m.Set(f.fd, r.v)
		default:
			m = m.Mutable(f.fd).Message()
		}
	}
	return true
}

func (n *jsonNode) isMarked() bool {
	return n.kind == '{' && len(n.names) == 1 && n.names[0].text == wireKey
}

func (k *unmarking) fail(n *jsonNode, message string) {
	if k.err == nil {
		k.err = &markError{n.from, message}
	}
}

// replace writes JSON in place of a piece of the text that a person wrote.
func (k *unmarking) replace(from, to int, raw string) {
	k.text.WriteString(k.source[k.at:from])
	at := k.text.Len()
	k.text.WriteString(raw)
	k.moves = append(k.moves, move{from, to, at, k.text.Len()})
	k.at = to
}

func (k *unmarking) message(n *jsonNode, md protoreflect.MessageDescriptor, path *hop) {
	if n.kind != '{' {
		return
	}
	for i, item := range n.items {
		fd := k.types.FieldNamed(md, n.names[i].text)
		if fd == nil {
			continue
		}
		num := fd.Number()
		switch {
		case fd.IsMap() && item.kind == '{':
			for j, v := range item.items {
				if key, ok := mapKey(fd.MapKey().Kind(), item.names[j].text); ok {
					k.value(v, fd.MapValue(), hop{up: path, num: num, key: key})
				}
			}
		case fd.IsList() && item.kind == '[':
			for j, v := range item.items {
				k.value(v, fd, hop{up: path, num: num, index: j})
			}
		case !fd.IsMap() && !fd.IsList():
			k.value(item, fd, hop{up: path, num: num})
		}
	}
}

func mapKey(kind protoreflect.Kind, text string) (protoreflect.MapKey, bool) {
	var v protoreflect.Value
	var err error
	switch kind {
	case protoreflect.StringKind:
		v = protoreflect.ValueOfString(text)
	case protoreflect.BoolKind:
		v = protoreflect.ValueOfBool(text == "true")
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		var i int64
		i, err = strconv.ParseInt(text, 10, 32)
		v = protoreflect.ValueOfInt32(int32(i))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		var i int64
		i, err = strconv.ParseInt(text, 10, 64)
		v = protoreflect.ValueOfInt64(i)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		var i uint64
		i, err = strconv.ParseUint(text, 10, 32)
		v = protoreflect.ValueOfUint32(uint32(i))
	default:
		var i uint64
		i, err = strconv.ParseUint(text, 10, 64)
		v = protoreflect.ValueOfUint64(i)
	}
	return v.MapKey(), err == nil
}

func (k *unmarking) value(n *jsonNode, fd protoreflect.FieldDescriptor, at hop) {
	switch {
	case fd.Message() != nil:
		path := at
		k.submessage(n, fd.Message(), &path)
	case fd.Kind() == protoreflect.StringKind && n.isMarked():
		text, err := base64.StdEncoding.DecodeString(n.items[0].text)
		if n.items[0].kind != '"' || err != nil {
			k.fail(n, "write a text, or "+wantsWireForm(nil))
			return
		}
		k.replace(n.from, n.to, `"x"`)
		path := at
		k.found = append(k.found, restore{&path, protoreflect.ValueOfString(string(text))})
	}
}

func (k *unmarking) submessage(n *jsonNode, md protoreflect.MessageDescriptor, path *hop) {
	instead := ""
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		instead = `"1970-01-01T00:00:00Z"`
	case "google.protobuf.Duration":
		instead = `"0s"`
	case "google.protobuf.FieldMask":
		instead = `""`
	case "google.protobuf.Any":
		instead = `{}`
	case "google.protobuf.Value":
		if instead = "null"; !n.isMarked() {
			k.dynamic(n, md, path)
			return
		}
	case "google.protobuf.Struct":
		k.members(n, md, path)
		return
	case "google.protobuf.ListValue":
		k.elements(n, md, path)
		return
	default:
		if !hasSpecialForm(md) {
			k.message(n, md, path)
		}
		return
	}
	if !n.isMarked() {
		return
	}
	m, ok := fromWireForm(n.items[0], md)
	if !ok {
		k.fail(n, "write "+wantsMessage(md)+", or "+wantsWireForm(md))
		return
	}
	k.replace(n.from, n.to, instead)
	k.found = append(k.found, restore{path, protoreflect.ValueOfMessage(m)})
}

// dynamic handles the object or list in a google.protobuf.Value.
func (k *unmarking) dynamic(n *jsonNode, md protoreflect.MessageDescriptor, path *hop) {
	switch n.kind {
	case '{':
		fd := md.Fields().ByName("struct_value")
		k.members(n, fd.Message(), &hop{up: path, num: fd.Number()})
	case '[':
		fd := md.Fields().ByName("list_value")
		k.elements(n, fd.Message(), &hop{up: path, num: fd.Number()})
	}
}

func (k *unmarking) members(n *jsonNode, md protoreflect.MessageDescriptor, path *hop) {
	if n.kind != '{' {
		return
	}
	fd := md.Fields().ByNumber(1)
	for i, item := range n.items {
		name := n.names[i].text
		switch {
		case name == wireKey:
			k.fail(
				n,
				`the name "@wire" stands for a value without a JSON form: write "@@wire" when the name itself is meant`,
			)
			return
		case escapedWireKey.MatchString(name):
			name = name[1:]
			from := n.names[i].from
			k.replace(from, from+len(n.names[i].raw), string(quoteJSON(name)))
		}
		key := protoreflect.ValueOfString(name).MapKey()
		k.submessage(item, fd.MapValue().Message(), &hop{up: path, num: 1, key: key})
	}
}

func (k *unmarking) elements(n *jsonNode, md protoreflect.MessageDescriptor, path *hop) {
	if n.kind != '[' {
		return
	}
	for i, item := range n.items {
		k.submessage(item, md.Fields().ByNumber(1).Message(), &hop{up: path, num: 1, index: i})
	}
}
