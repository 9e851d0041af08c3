package payload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// These are the limits of one tree. Every omission is reported in a node of kind More, in the note
// of a node, or in the notes of the document.
const (
	maxNodes   = 2_000
	maxItems   = 100       // the maximum number of elements shown of a list or map
	maxValue   = 4 << 10   // the maximum size of a shown value in bytes
	maxShown   = 256 << 10 // total bytes of values; after that, each value is cut to shortValue
	shortValue = 64
	maxHex     = 256 // bytes of a bytes field that are shown

	treeMemory = 2 << 20 // in bytes; more than a full tree needs
)

// tree builds the nodes of one document.
type tree struct {
	types *descriptor.Resolver
	body  []byte // the body to which ranges refer

	nodes  int
	shown  int // bytes of values so far
	left   int // number of fields for which the tree has no room
	short  int // number of values that were cut to shortValue
	deep   int // number of JSON values below maxTreeDepth
	masked bool
}

// limitNotes says what the limits have omitted.
func (t *tree) limitNotes() []string {
	var list []string
	if t.left > 0 {
		list = append(
			list,
			fmt.Sprintf(
				"the tree shows the first %s entries; %s more, with what they contain, are left out",
				deadletter.Count(maxNodes), deadletter.Count(t.left),
			),
		)
	}
	if t.short > 0 {
		list = append(
			list,
			fmt.Sprintf(
				"the values have more than %s together; %s of the later ones are cut to %d bytes",
				deadletter.Bytes(maxShown), deadletter.Count(t.short), shortValue,
			),
		)
	}
	if t.deep > 0 {
		list = append(
			list,
			fmt.Sprintf(
				"the tree ends at %d levels; %s are deeper", maxTreeDepth, deadletter.Plural(t.deep, "value", "values"),
			),
		)
	}
	return list
}

// takeNode counts a node. It returns false if the tree has no room for it.
func (t *tree) takeNode() bool {
	if t.nodes >= maxNodes {
		t.left++
		return false
	}
	t.nodes++
	return true
}

// setScalar stores a scalar in a node. The scalar is masked, cut, and safe to print.
func (t *tree) setScalar(n *Node, at spot, text string, kind Kind) {
	if at.hidden {
		t.hide(n)
		return
	}
	n.Kind = kind
	n.text, n.Masked = at.apply(text)
	t.masked = t.masked || n.Masked
	if n.Masked && kind != String {
		n.Kind = String // the text of a mask need not be a number
	}
	t.show(n, n.Kind == String && !(n.Masked && kind != String))
}

// hide turns a node into one with a hidden value. The node then contains nothing of the value.
func (t *tree) hide(n *Node) {
	n.Kind, n.text, n.Masked, n.Children = String, Masked, true, nil
	t.masked = true
	t.show(n, false)
}

// show makes n.Value from n.text.
func (t *tree) show(n *Node, quotes bool) {
	limit := maxValue
	if t.shown >= maxShown {
		limit = shortValue
		if len(n.text) > limit {
			t.short++
		}
	}
	if n.text, n.left = cut(n.text, limit); n.left > 0 {
		n.addNote(deadletter.Bytes(n.left) + " more")
	}
	if quotes {
		n.Value = quoted(n.text)
	} else {
		n.Value = visible(n.text, "")
	}
	t.shown += len(n.Value)
}

func (n *Node) addNote(text string) {
	if n.Note != "" {
		n.Note += ", "
	}
	n.Note += text
}

// item is a part of a message that becomes a node.
type item struct {
	number  protoreflect.FieldNumber
	fd      protoreflect.FieldDescriptor // nil = an unknown field
	value   protoreflect.Value
	missing bool // the field is not on the wire
	there   []occurrence
	wire    protowire.Type
	raw     []byte // the value of an unknown field, without its tag
}

// message returns the nodes of m, sorted by field number. These are the fields that are set, the
// defaults of fields without presence, and the unknown fields.
func (t *tree) message(m protoreflect.Message, at spot, parts []Range) []Node {
	var items []item
	there := t.occurrences(parts)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		items = append(items, item{
			number: fd.Number(),
			fd:     fd,
			value:  v,
			there:  filterAccepted(there[fd.Number()], fd, true),
		})
		return true
	})
	fields := m.Descriptor().Fields()
	for i := range min(fields.Len(), maxNodes) {
		if t.nodes+len(items) >= maxNodes {
			break
		}
		fd := fields.Get(i)
		if !fd.HasPresence() && !fd.IsList() && !fd.IsMap() && !m.Has(fd) {
			items = append(items, item{number: fd.Number(), fd: fd, value: m.Get(fd), missing: true})
		} else if fd.Cardinality() == protoreflect.Required && !m.Has(fd) {
			items = append(items, item{number: fd.Number(), fd: fd, missing: true})
		}
	}
	items = t.unknowns(items, m, there)
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.number, b.number) })
	return t.items(items, m.Descriptor(), at)
}

// unknowns appends every occurrence of the fields that the type of m does not know.
func (t *tree) unknowns(items []item, m protoreflect.Message, found map[protowire.Number][]occurrence) []item {
	unknown := 0
	seen := make(map[protowire.Number]int)
	for b := m.GetUnknown(); len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		v := protowire.ConsumeFieldValue(num, typ, b[max(n, 0):])
		if n < 0 || v < 0 {
			break // cannot happen, because the decoder accepted the fields
		}
		if unknown++; unknown <= maxNodes {
			it := item{number: num, wire: typ, raw: b[n : n+v]}
			list := filterAccepted(found[num], t.types.Field(m.Descriptor(), num), false)
			if k := seen[num]; k < len(list) {
				it.there = list[k : k+1]
			}
			seen[num]++
			items = append(items, it)
		} else {
			t.left++
		}
		b = b[n+v:]
	}
	return items
}

// items returns the nodes for a list of items. The items are parts of a message of the type md.
func (t *tree) items(items []item, md protoreflect.MessageDescriptor, at spot) []Node {
	if len(items) == 0 {
		return nil
	}
	nodes := make([]Node, 0, min(len(items), maxNodes-t.nodes))
	for i := range items {
		if t.takeNode() {
			nodes = append(nodes, t.item(&items[i], md, at))
		}
	}
	return nodes
}

// item returns the node for a part of a message of type md. The parameter "at" is the spot inside
// the message.
func (t *tree) item(it *item, md protoreflect.MessageDescriptor, at spot) Node {
	if it.fd == nil {
		return t.unknownNode(it, at.unknownField(t.types.Field(md, it.number), int32(it.number)))
	}
	fd := it.fd
	n := Node{Number: int32(fd.Number()), Name: fieldName(fd), Type: typeName(fd), Default: it.missing}
	n.also = otherName(fd, n.Name)
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
		n.Note = "oneof " + string(o.Name())
	}
	n.Ranges = wholeRanges(it.there)
	if note := deviation(fd, it.there); note != "" {
		n.addNote(note)
	}
	at = at.field(fd)
	switch {
	case it.missing && fd.Cardinality() == protoreflect.Required:
		n.Kind, n.Default = More, false
		n.addNote("required, missing on the wire")
	case at.hidden && !it.missing:
		t.hide(&n)
	case fd.IsMap():
		t.mapEntries(&n, fd, it.value.Map(), at, it.there)
	case fd.IsList():
		t.list(&n, fd, it.value.List(), at, it.there)
	default:
		if it.missing { // a missing field is not hidden
			at.hidden, at.into = false, false
		}
		t.value(&n, fd, it.value, at, contentRanges(it.there))
		if it.missing {
			n.addNote("default, not on the wire")
		}
	}
	return n
}

func (t *tree) list(n *Node, fd protoreflect.FieldDescriptor, list protoreflect.List, at spot, found []occurrence) {
	n.Kind = List
	elements := t.elements(fd, found)
	n.addNote(deadletter.Plural(list.Len(), "item", "items"))
	for i := range list.Len() {
		if i == maxItems {
			n.Children = append(n.Children, Node{
				Kind:  More,
				Value: deadletter.Count(list.Len()-i) + " more items not shown",
			})
			break
		}
		if t.takeNode() {
			c := Node{Name: element(i)}
			var in []Range
			if i < len(elements) {
				c.Ranges, in = []Range{elements[i].whole}, []Range{elements[i].in}
			}
			t.value(&c, fd, list.Get(i), at, in)
			n.Children = append(n.Children, c)
		}
	}
}

// mapEntries sorts entries by key, because their order on the wire has no meaning.
func (t *tree) mapEntries(n *Node, fd protoreflect.FieldDescriptor, m protoreflect.Map, at spot, found []occurrence) {
	n.Kind = Map
	entries := t.entries(fd, found)
	n.addNote(deadletter.Plural(m.Len(), "entry", "entries"))
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch a.Interface().(type) {
		case int32, int64:
			return cmp.Compare(a.Int(), b.Int())
		case uint32, uint64:
			return cmp.Compare(a.Uint(), b.Uint())
		}
		return strings.Compare(a.String(), b.String()) // for bool keys: false before true
	})
	for i, k := range keys {
		if i == maxItems {
			n.Children = append(n.Children, Node{
				Kind:  More,
				Value: deadletter.Count(len(keys)-i) + " more entries not shown",
			})
			break
		}
		if t.takeNode() {
			var c Node
			t.key(&c, at, k.String(), fd.MapKey().Kind() == protoreflect.StringKind)
			var in []Range
			if list := entries[k.String()]; len(list) > 0 {
				c.Ranges, in = wholeRanges(list), []Range{list[len(list)-1].in}
			}
			t.value(&c, fd.MapValue(), m.Get(k), at.entry(fd, k.String()), in)
			n.Children = append(n.Children, c)
		}
	}
}

// key sets the name of a map entry. Keys are values, too, so they are masked and cut.
func (t *tree) key(n *Node, at spot, key string, quotes bool) {
	shown, masked := at.apply(key)
	t.masked = t.masked || masked
	if s, left := cut(shown, 256); left > 0 {
		shown = s + "…"
	}
	if n.Name = visible(shown, ""); quotes {
		n.Name = quoted(shown)
	}
	t.shown += len(n.Name)
}

// value fills n with a value of fd: the value of the field itself, of an element, or of a map
// entry. If the value is a message, the parameter "parts" holds the ranges of its content.
func (t *tree) value(n *Node, fd protoreflect.FieldDescriptor, v protoreflect.Value, at spot, parts []Range) {
	if at.hidden {
		if n.Type == "" {
			n.Type = typeName(fd)
		}
		t.hide(n)
		return
	}
	if fd.Message() != nil {
		t.submessage(n, v.Message(), at, parts)
		return
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		t.setScalar(n, at.text(len(v.String())), v.String(), String)
	case protoreflect.BytesKind:
		t.bytes(n, at.text(len(v.Bytes())), v.Bytes())
	case protoreflect.EnumKind:
		number := strconv.Itoa(int(v.Enum()))
		if ev := fd.Enum().Values().ByNumber(v.Enum()); ev != nil {
			t.setScalar(n, at, string(ev.Name()), Enum)
			if !n.Masked {
				n.addNote(number)
			}
			return
		}
		t.setScalar(n, at, number, Enum)
		n.addNote("no such value in " + string(fd.Enum().Name()))
	case protoreflect.BoolKind:
		t.setScalar(n, at, strconv.FormatBool(v.Bool()), Bool)
	default:
		t.setScalar(n, at, numberText(v), Number)
	}
}

func numberText(v protoreflect.Value) string {
	switch x := v.Interface().(type) {
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return v.String()
}

// bytes shows hex in groups of four bytes, with the length. The mask is applied to the raw bytes,
// because they may contain text.
func (t *tree) bytes(n *Node, at spot, b []byte) {
	n.Kind = Bytes
	if shown, masked := at.apply(string(b[:min(len(b), maxShown)])); masked {
		t.masked, n.Masked, n.Kind, n.text = true, true, String, shown
		t.show(n, false)
		return
	}
	limit := maxHex
	if t.shown >= maxShown {
		limit = shortValue / 2
	}
	part := b[:min(len(b), limit)]
	n.text = fmt.Sprintf("%x", part)
	n.Value = hexGroups(part)
	n.addNote(deadletter.Bytes(len(b)))
	if n.left = len(b) - len(part); n.left > 0 {
		n.addNote(deadletter.Bytes(n.left) + " more")
	}
	t.shown += len(n.Value)
}

// hexGroups writes bytes in groups of four: "5b1e7ac0 9d3f44e2".
func hexGroups(b []byte) string {
	var w strings.Builder
	for i := 0; i < len(b); i += 4 {
		if i > 0 {
			w.WriteByte(' ')
		}
		fmt.Fprintf(&w, "%x", b[i:min(i+4, len(b))])
	}
	return w.String()
}

// showAny shows the content of a google.protobuf.Any if its type is known.
func (t *tree) showAny(n *Node, m protoreflect.Message, at spot, parts []Range) {
	url, _ := scalarField(m, "type_url", protoreflect.StringKind)
	content, _ := scalarField(m, "value", protoreflect.BytesKind)
	n.Kind, n.Type = Message, "Any"
	if !url.IsValid() || !content.IsValid() {
		n.Children = t.message(m, at, parts)
		return
	}
	defs := t.types.AnyContent(url.String())
	if len(defs) == 0 {
		var md protoreflect.MessageDescriptor
		if url.String() == "" {
			md = m.Descriptor() // nothing names the type of the content
		}
		if fd := m.Descriptor().Fields().ByName("type_url"); url.String() != "" {
			short, _ := cut(visible(descriptor.TypeName(url.String()), ""), 200)
			if _, masked := at.field(fd).apply(url.String()); masked {
				short = "its type"
			}
			n.addNote(short + " is not registered")
		}
		n.Children = t.message(m, at.unreadAny(md), parts)
		return
	}
	def, outer := defs[0], t.types
	md := def.Desc
	inner := dynamicpb.NewMessage(md)
	// The scan of the whole body has already included the content of this Any, so the content fits
	// into the budget.
	if err := (proto.UnmarshalOptions{
		Resolver:     def.Types,
		AllowPartial: true,
	}).Unmarshal(content.Bytes(), inner); err != nil {
		n.addNote("does not parse as " + string(md.FullName()))
		n.Children = t.message(m, at.unreadAny(md), parts)
		return
	}
	around, there := at, t.occurrences(parts)
	in := contentRanges(filterAccepted(there[2], m.Descriptor().Fields().ByNumber(2), true))
	in = in[max(0, len(in)-1):] // the last occurrence counts
	if at = at.content(m.Descriptor(), url.String(), defs); at.hidden {
		t.hide(n)
		return
	}
	n.Type = "Any of " + string(md.Name())
	n.addNote(string(md.FullName()) + setsOf(content.Bytes(), defs))
	t.types = def.Types
	if hasSpecialForm(md) {
		if t.takeNode() {
			c := Node{Name: "value", Type: string(md.Name())}
			c.Ranges = wholeRanges(there[2])
			t.submessage(&c, inner, at, in)
			n.Children = append(n.Children, c)
		}
	} else {
		n.Children = t.message(inner, at.inside(md), in)
	}
	t.types = outer
	n.Children = append(n.Children, t.items(t.unknowns(nil, m, there), m.Descriptor(), around)...)
}

// setsOf names the set that defines the content of an Any, unless it is that of the message around
// it, and the sets that define the content differently.
func setsOf(content []byte, defs []*descriptor.Type) string {
	text := ""
	if defs[0].Set != "" {
		text = ", set " + defs[0].Set
	}
	var others []string
	for _, other := range defs[1:] {
		if !sameFields(other.Desc, defs[0].Desc) && canDecode(content, other) {
			others = append(others, other.Set)
		}
	}
	if len(others) > 0 {
		text += ", ambiguous: defined differently in " + strings.Join(others, ", ")
	}
	return text
}

func fieldName(fd protoreflect.FieldDescriptor) string {
	if fd.IsExtension() {
		return "[" + string(fd.FullName()) + "]"
	}
	return string(fd.Name())
}

// typeName returns a field's type: "string", "EmailAddress", "repeated int32", "map<string, Item>".
func typeName(fd protoreflect.FieldDescriptor) string {
	one := func(fd protoreflect.FieldDescriptor) string {
		switch {
		case fd.Message() != nil:
			return string(fd.Message().Name())
		case fd.Enum() != nil:
			return string(fd.Enum().Name())
		}
		return fd.Kind().String()
	}
	switch {
	case fd.IsMap():
		return "map<" + one(fd.MapKey()) + ", " + one(fd.MapValue()) + ">"
	case fd.IsList():
		return "repeated " + one(fd)
	}
	return one(fd)
}
