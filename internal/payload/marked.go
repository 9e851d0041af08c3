package payload

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// wireKey marks a value that cannot be written as protojson, for example a text that is not UTF-8.
// In the JSON, an object whose only name is wireKey takes the place of the value. It contains the
// wire fields of the value, or the base64 of a text that is not UTF-8. The mark is recognised only
// for Timestamp, Duration, FieldMask, Any, Value and texts, so no other object can be mistaken for
// one. A Struct can contain any name. If a name in a Struct looks like wireKey, it gets an
// additional "@".
const wireKey = "@wire"

var (
	likeWireKey    = regexp.MustCompile(`^@+wire$`)
	escapedWireKey = regexp.MustCompile(`^@@+wire$`)
)

// maxMarksNamed is the maximum number of paths in the note about values that have no JSON form.
const maxMarksNamed = 3

// marking finds the values of a message that have no JSON form, and replaces them.
type marking struct {
	types *descriptor.Resolver
	found []mark
}

// mark is a change to the JSON that protojson writes. There are two kinds of marks: one puts other
// JSON in place of a value that has no JSON form, and one escapes the name of a member.
type mark struct {
	at     *jsonPlace
	text   string // the JSON that replaces the value; "" = only the name of the member is escaped
	marked bool   // the value has no JSON form
}

// jsonPlace is a position in JSON, as a chain from the value to the outermost value. The position
// of the outermost value is nil.
type jsonPlace struct {
	up    *jsonPlace
	name  string
	index int // index of an element; name is then ""
}

func (s *jsonPlace) String() string {
	if s == nil {
		return ""
	}
	up := ""
	if s.up != nil {
		up = s.up.String()
	}
	return dotted(up, cmp.Or(s.name, element(s.index)))
}

// marshal returns the message m as protojson. If protojson cannot write some values of m, marshal
// replaces them in m and puts marks (wireKey) in their place in the JSON. It also returns the
// places of these marks.
func marshal(m protoreflect.Message, types *tolerant, b *budget.Budget) ([]byte, []*jsonPlace, error) {
	options := protojson.MarshalOptions{Resolver: types, AllowPartial: true}
	out, err := options.Marshal(m.Interface())
	if err == nil && !bytes.Contains(out, []byte(wireKey+`"`)) && !hasMinusZero(out) {
		return out, nil, nil
	}
	k := &marking{types: types.Resolver}
	k.submessage(m, nil)
	if len(k.found) == 0 {
		return out, nil, err
	}
	types.missing = nil
	if out, err = options.Marshal(m.Interface()); err != nil {
		return nil, nil, err
	}
	return k.insert(string(out), b)
}

// hasMinusZero reports whether JSON may contain the number -0. It also returns true for a text that
// looks like -0.
func hasMinusZero(b []byte) bool {
	for {
		i := bytes.Index(b, []byte("-0"))
		if i < 0 {
			return false
		}
		before := i == 0 || bytes.IndexByte([]byte(":,[ "), b[i-1]) >= 0
		if b = b[i+2:]; before && (len(b) == 0 || bytes.IndexByte([]byte(",]} "), b[0]) >= 0) {
			return true
		}
	}
}

// insert puts the marks into the JSON.
func (k *marking) insert(text string, b *budget.Budget) (out []byte, places []*jsonPlace, err error) {
	tree, err := parseJSON(text, b)
	if err != nil {
		return nil, nil, errors.New("it cannot be marked")
	}
	type piece struct {
		from, to int
		text     string
		place    *jsonPlace
		marked   bool
	}
	var pieces []piece
	for _, m := range k.found {
		n, name := m.at.find(tree)
		if n == nil {
			return nil, nil, errors.New("it cannot be marked")
		}
		if m.text == "" {
			pieces = append(pieces, piece{
				name.from, name.from + len(name.raw), string(quoteJSON("@" + name.text)), nil, false,
			})
		} else {
			pieces = append(pieces, piece{n.from, n.to, m.text, m.at, m.marked})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.from - b.from })
	at := 0
	for _, p := range pieces {
		out = append(append(out, text[at:p.from]...), p.text...)
		if at = p.to; p.marked {
			places = append(places, p.place)
		}
	}
	return append(out, text[at:]...), places, nil
}

// find returns the value at a place, and the name of the value.
func (s *jsonPlace) find(root *jsonNode) (*jsonNode, jsonName) {
	if s == nil {
		return root, jsonName{}
	}
	n, _ := s.up.find(root)
	switch {
	case n == nil:
	case n.kind == '[' && s.index < len(n.items):
		return n.items[s.index], jsonName{}
	case n.kind == '{':
		if i := n.find(s.name); i >= 0 {
			return n.items[i], n.names[i]
		}
	}
	return nil, jsonName{}
}

func (k *marking) add(at *jsonPlace, text string, marked bool) {
	k.found = append(k.found, mark{at, text, marked})
}

func (k *marking) message(m protoreflect.Message, at *jsonPlace) {
	for _, f := range fieldsOf(m) {
		fd, v := f.fd, f.v
		if !fd.IsMap() && !fd.IsList() && !mayNeedMark(fd, v) {
			continue
		}
		in := &jsonPlace{up: at, name: fd.JSONName()}
		switch {
		case fd.IsMap():
			for _, key := range sortedKeys(v.Map()) {
				item := v.Map().Get(key)
				if !mayNeedMark(fd.MapValue(), item) {
					continue
				}
				set := func(v protoreflect.Value) { m.Mutable(fd).Map().Set(key, v) }
				k.value(fd.MapValue(), item, set, &jsonPlace{up: in, name: key.String()})
			}
		case fd.IsList():
			for i := range v.List().Len() {
				item := v.List().Get(i)
				if !mayNeedMark(fd, item) {
					continue
				}
				set := func(v protoreflect.Value) { m.Mutable(fd).List().Set(i, v) }
				k.value(fd, item, set, &jsonPlace{up: in, index: i})
			}
		default:
			k.value(fd, v, func(v protoreflect.Value) { m.Set(fd, v) }, in)
		}
	}
}

// mayNeedMark reports whether a value may have to be marked: it is a message, or a scalar that
// cannot be written as its usual JSON.
func mayNeedMark(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return true
	case protoreflect.StringKind:
		return !utf8.ValidString(v.String())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return v.Float() == 0 && math.Signbit(v.Float())
	}
	return false
}

func (k *marking) value(
	fd protoreflect.FieldDescriptor, v protoreflect.Value, set func(protoreflect.Value), at *jsonPlace,
) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		k.submessage(v.Message(), at)
	case protoreflect.StringKind:
		k.add(at, `{"`+wireKey+`":"`+base64.StdEncoding.EncodeToString([]byte(v.String()))+`"}`, true)
		set(protoreflect.ValueOfString("x"))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		// many JSON readers turn -0 into 0, but they do not change a text
		k.add(at, `"-0"`, false)
	}
}

func (k *marking) submessage(m protoreflect.Message, at *jsonPlace) {
	md := m.Descriptor()
	switch md.FullName() {
	case "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask", "google.protobuf.Any":
		if _, err := (protojson.MarshalOptions{
			Resolver:     &tolerant{Resolver: k.types},
			AllowPartial: true,
		}).Marshal(m.Interface()); err == nil {
			return
		}
		if text, ok := wireForm(m); ok {
			k.add(at, text, true)
			m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
				m.Clear(fd)
				return true
			})
		}
	case "google.protobuf.Value":
		k.dynamic(m, at)
	case "google.protobuf.Struct":
		fields := m.Get(md.Fields().ByNumber(1)).Map()
		for _, key := range sortedKeys(fields) {
			in := &jsonPlace{up: at, name: key.String()}
			if likeWireKey.MatchString(in.name) {
				k.add(in, "", false)
			}
			k.submessage(fields.Get(key).Message(), in)
		}
	case "google.protobuf.ListValue":
		values := m.Get(md.Fields().ByNumber(1)).List()
		for i := range values.Len() {
			k.submessage(values.Get(i).Message(), &jsonPlace{up: at, index: i})
		}
	case "google.protobuf.FloatValue", "google.protobuf.DoubleValue":
		fd := md.Fields().ByNumber(1)
		if mayNeedMark(fd, m.Get(fd)) {
			k.value(fd, m.Get(fd), nil, at)
		}
	default:
		if !hasSpecialForm(md) {
			k.message(m, at)
		}
	}
}

// dynamic handles a google.protobuf.Value. It marks the Value if it has no kind, or if it is a
// number that JSON cannot express, such as NaN.
func (k *marking) dynamic(m protoreflect.Message, at *jsonPlace) {
	md := m.Descriptor()
	fd := m.WhichOneof(md.Oneofs().ByName("kind"))
	null := func() {
		fd := md.Fields().ByName("null_value")
		m.Set(fd, fd.Default())
	}
	switch {
	case fd == nil:
		k.add(at, `{"`+wireKey+`":{}}`, true)
		null()
	case fd.Message() != nil:
		k.submessage(m.Get(fd).Message(), at)
	case fd.Kind() == protoreflect.DoubleKind:
		f := m.Get(fd).Float()
		text := ""
		switch {
		case math.IsNaN(f):
			text = "NaN"
		case math.IsInf(f, 1):
			text = "Infinity"
		case math.IsInf(f, -1):
			text = "-Infinity"
		case f == 0 && math.Signbit(f):
			text = "-0"
		default:
			return
		}
		k.add(at, `{"`+wireKey+`":{"numberValue":"`+text+`"}}`, true)
		null()
	}
}

// wireForm returns the JSON that dlo shows for a message of a well-known type if protojson cannot
// write this message. The JSON is an object with the key wireKey. The result is false if the type
// does not have its usual fields.
func wireForm(m protoreflect.Message) (string, bool) {
	number := func(n protoreflect.FieldNumber) protoreflect.Value { return m.Get(m.Descriptor().Fields().ByNumber(n)) }
	if !hasUsualFields(m.Descriptor()) {
		return "", false
	}
	inner := ""
	switch m.Descriptor().Name() {
	case "Timestamp", "Duration":
		inner = `"seconds":"` + strconv.FormatInt(number(1).Int(), 10) + `"`
		if nanos := number(2).Int(); nanos != 0 {
			inner += `,"nanos":` + strconv.FormatInt(nanos, 10)
		}
	case "FieldMask":
		var paths []string
		for i := range number(1).List().Len() {
			paths = append(paths, string(quoteJSON(number(1).List().Get(i).String())))
		}
		inner = `"paths":[` + strings.Join(paths, ",") + `]`
	default:
		inner = `"typeUrl":` + string(quoteJSON(number(1).String())) + `,"value":"` +
			base64.StdEncoding.EncodeToString(number(2).Bytes()) + `"`
	}
	return `{"` + wireKey + `":{` + inner + `}}`, true
}

// hasUsualFields reports whether a well-known type has its usual fields. A set may define the type
// in another way.
func hasUsualFields(md protoreflect.MessageDescriptor) bool {
	is := func(n protoreflect.FieldNumber, kind protoreflect.Kind, list bool) bool {
		fd := md.Fields().ByNumber(n)
		return fd != nil && fd.Kind() == kind && fd.IsList() == list
	}
	switch md.FullName() {
	case "google.protobuf.Timestamp", "google.protobuf.Duration":
		return is(1, protoreflect.Int64Kind, false) && is(2, protoreflect.Int32Kind, false)
	case "google.protobuf.FieldMask":
		return is(1, protoreflect.StringKind, true)
	case "google.protobuf.Any":
		return is(1, protoreflect.StringKind, false) && is(2, protoreflect.BytesKind, false)
	case "google.protobuf.Value":
		return is(1, protoreflect.EnumKind, false) && is(2, protoreflect.DoubleKind, false)
	}
	return false
}

// fromWireForm parses the JSON under wireKey, which stands for a message without a JSON form. It
// returns this message. It returns false if the JSON does not fit the type.
func fromWireForm(n *jsonNode, md protoreflect.MessageDescriptor) (protoreflect.Message, bool) {
	m := dynamicpb.NewMessage(md)
	if n.kind != '{' || !hasUsualFields(md) {
		return nil, false
	}
	for i, item := range n.items {
		name := n.names[i].text
		fd := md.Fields().ByJSONName(name)
		if fd == nil {
			return nil, false
		}
		text := item.raw
		if item.kind == '"' {
			text = item.text
		}
		switch name {
		case "seconds", "nanos":
			bits := 64
			if name == "nanos" {
				bits = 32
			}
			v, err := strconv.ParseInt(text, 10, bits)
			if err != nil {
				return nil, false
			}
			if name == "seconds" {
				m.Set(fd, protoreflect.ValueOfInt64(v))
			} else {
				m.Set(fd, protoreflect.ValueOfInt32(int32(v)))
			}
		case "paths":
			if item.kind != '[' {
				return nil, false
			}
			for _, path := range item.items {
				if path.kind != '"' || !utf8.ValidString(path.text) {
					return nil, false
				}
				m.Mutable(fd).List().Append(protoreflect.ValueOfString(path.text))
			}
		case "numberValue":
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || item.kind != '"' && item.kind != '0' {
				return nil, false
			}
			m.Set(fd, protoreflect.ValueOfFloat64(v))
		case "typeUrl":
			if item.kind != '"' || !utf8.ValidString(text) {
				return nil, false
			}
			m.Set(fd, protoreflect.ValueOfString(text))
		case "value":
			v, err := base64.StdEncoding.DecodeString(text)
			if err != nil || item.kind != '"' {
				return nil, false
			}
			m.Set(fd, protoreflect.ValueOfBytes(v))
		default:
			return nil, false
		}
	}
	return m, true
}

// wantsWireForm returns an example for people: how a value without a JSON form is written under
// wireKey.
func wantsWireForm(md protoreflect.MessageDescriptor) string {
	switch {
	case md == nil:
		return `{"@wire": "base64 of the text"}`
	case md.Name() == "FieldMask":
		return `{"@wire": {"paths": ["name"]}}`
	case md.Name() == "Any":
		return `{"@wire": {"typeUrl": "...", "value": "base64"}}`
	case md.Name() == "Value":
		return `{"@wire": {"numberValue": "NaN"}}`
	}
	return `{"@wire": {"seconds": "0", "nanos": 0}}`
}

// noteMarked adds a note that the JSON contains marks in place of values that have no JSON form. If
// the parameter "hide" is true, the note omits the paths of these values, which may be masked.
func (d *Document) noteMarked(places []*jsonPlace, hide bool) {
	if len(places) == 0 {
		return
	}
	var names []string
	for _, at := range places[:min(len(places), maxMarksNamed)] {
		names = append(names, cmp.Or(at.String(), "the whole message"))
	}
	if more := len(places) - len(names); more > 0 {
		names = append(names, "and "+strconv.Itoa(more)+" more")
	}
	text := `the JSON marks values that have no JSON form with "` + wireKey + `"`
	if !hide {
		text += ": " + strings.Join(names, ", ")
	}
	d.jsonProblem(text)
}

// jsonProblem records why the JSON is missing or incomplete.
func (d *Document) jsonProblem(text string) {
	d.JSONProblem = text
	d.note(text)
}
