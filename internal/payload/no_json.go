package payload

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// maxNamed is the maximum number of paths in the note about values that have no JSON form.
const maxNamed = 3

// withoutJSON finds the values of a message that have no JSON form: a text that is not UTF-8, a
// time out of range, an Any that cannot be decoded. The JSON shows null in their place.
type withoutJSON struct {
	types *descriptor.Resolver
	found []*jsonPlace
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
	return dotted(s.up.String(), cmp.Or(s.name, element(s.index)))
}

// marshal returns the message m as protojson, and the places of the values that have no JSON form.
// It may replace such values in m.
func marshal(m protoreflect.Message, types *tolerant, b *budget.Budget) ([]byte, []*jsonPlace, error) {
	options := protojson.MarshalOptions{Resolver: types, AllowPartial: true}
	out, err := options.Marshal(m.Interface())
	if err == nil {
		return out, nil, nil
	}
	k := &withoutJSON{types: types.Resolver}
	if k.submessage(m, nil); len(k.found) == 0 {
		return nil, nil, err
	}
	types.missing = nil
	if out, err = options.Marshal(m.Interface()); err != nil {
		return nil, nil, err
	}
	out, err = k.nulls(string(out), b)
	return out, k.found, err
}

// nulls writes null at the places of the values that have no JSON form.
func (k *withoutJSON) nulls(text string, b *budget.Budget) ([]byte, error) {
	tree, err := parseJSON(text, b)
	if err != nil {
		return nil, errors.New("a value has none")
	}
	var nodes []*jsonNode
	for _, at := range k.found {
		n := at.find(tree)
		if n == nil {
			return nil, errors.New("a value has none")
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *jsonNode) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, n := range nodes {
		out = append(append(out, text[at:n.from]...), "null"...)
		at = n.to
	}
	return append(out, text[at:]...), nil
}

// find returns the value at a place.
func (s *jsonPlace) find(root *jsonNode) *jsonNode {
	if s == nil {
		return root
	}
	n := s.up.find(root)
	switch {
	case n == nil:
	case n.kind == '[' && s.index < len(n.items):
		return n.items[s.index]
	case n.kind == '{':
		if i := n.find(s.name); i >= 0 {
			return n.items[i]
		}
	}
	return nil
}

func (k *withoutJSON) message(m protoreflect.Message, at *jsonPlace) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		in := &jsonPlace{up: at, name: fd.JSONName()}
		switch {
		case fd.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
				k.value(
					fd.MapValue(), item, func(v protoreflect.Value) { m.Mutable(fd).Map().Set(key, v) },
					&jsonPlace{up: in, name: key.String()},
				)
				return true
			})
		case fd.IsList():
			for i := range v.List().Len() {
				k.value(
					fd, v.List().Get(i), func(v protoreflect.Value) { m.Mutable(fd).List().Set(i, v) },
					&jsonPlace{up: in, index: i},
				)
			}
		default:
			k.value(fd, v, func(v protoreflect.Value) { m.Set(fd, v) }, in)
		}
		return true
	})
}

func (k *withoutJSON) value(
	fd protoreflect.FieldDescriptor, v protoreflect.Value, set func(protoreflect.Value), at *jsonPlace,
) {
	switch {
	case fd.Message() != nil:
		k.submessage(v.Message(), at)
	case fd.Kind() == protoreflect.StringKind && !utf8.ValidString(v.String()):
		k.found = append(k.found, at)
		set(protoreflect.ValueOfString("x")) // JSON omits a field that is ""
	}
}

func (k *withoutJSON) submessage(m protoreflect.Message, at *jsonPlace) {
	md := m.Descriptor()
	switch md.FullName() {
	case "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask", "google.protobuf.Any":
		if _, err := (protojson.MarshalOptions{
			Resolver:     &tolerant{Resolver: k.types},
			AllowPartial: true,
		}).Marshal(m.Interface()); err == nil {
			return
		}
		k.found = append(k.found, at)
		m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			m.Clear(fd)
			return true
		})
	case "google.protobuf.Value":
		k.dynamic(m, at)
	case "google.protobuf.Struct":
		m.Get(md.Fields().ByNumber(1)).Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			k.submessage(v.Message(), &jsonPlace{up: at, name: key.String()})
			return true
		})
	case "google.protobuf.ListValue":
		values := m.Get(md.Fields().ByNumber(1)).List()
		for i := range values.Len() {
			k.submessage(values.Get(i).Message(), &jsonPlace{up: at, index: i})
		}
	default:
		if !hasSpecialForm(md) {
			k.message(m, at)
		}
	}
}

// dynamic handles a google.protobuf.Value. It has no JSON form if it has no kind, or if it is a
// number that JSON cannot express, such as NaN.
func (k *withoutJSON) dynamic(m protoreflect.Message, at *jsonPlace) {
	md := m.Descriptor()
	fd := m.WhichOneof(md.Oneofs().ByName("kind"))
	if fd != nil && fd.Message() != nil {
		k.submessage(m.Get(fd).Message(), at)
		return
	}
	if fd != nil && (fd.Kind() != protoreflect.DoubleKind ||
		!math.IsNaN(m.Get(fd).Float()) && !math.IsInf(m.Get(fd).Float(), 0)) {
		return
	}
	k.found = append(k.found, at)
	null := md.Fields().ByName("null_value")
	m.Set(null, null.Default())
}

// noteNulls adds a note that the JSON has null in place of values that have no JSON form. If the
// parameter "hide" is true, the note omits the paths of these values, which may be masked.
func (d *Document) noteNulls(places []*jsonPlace, hide bool) {
	if len(places) == 0 {
		return
	}
	text := "the JSON has null in place of values that have no JSON form; an edit keeps them, and cannot write such values"
	if !hide {
		var names []string
		for _, at := range places[:min(len(places), maxNamed)] {
			names = append(names, cmp.Or(at.String(), "the whole message"))
		}
		if more := len(places) - len(names); more > 0 {
			names = append(names, "and "+strconv.Itoa(more)+" more")
		}
		text += ": " + strings.Join(names, ", ")
	}
	d.jsonProblem(text)
}

// jsonProblem records why the JSON is missing or incomplete.
func (d *Document) jsonProblem(text string) {
	d.JSONProblem = text
	d.note(text)
}
