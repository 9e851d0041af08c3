package payload

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// merge applies an edit of a message to the bytes of the message. It compares the decoded message
// before the edit with the one after it, and changes only the bytes of what differs. This preserves
// what decoding does not show: unknown fields, an Any of an unknown type, the order of fields, and
// varints that are longer than necessary.
type merge struct{ types *descriptor.Resolver }

// fields holds the fields of a message by number. The number is the key because it identifies a
// field both before and after an edit, whereas the two messages have different descriptors for the
// same extension.
type fields map[protowire.Number]field

type field struct {
	fd protoreflect.FieldDescriptor
	v  protoreflect.Value
}

func fieldsOf(m protoreflect.Message) fields {
	f := make(fields)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		f[fd.Number()] = field{fd, v}
		return true
	})
	return f
}

// message applies the difference between the decoded messages "was" and "now" to the bytes b of the
// message. It returns the resulting bytes, and whether there is a difference. If there is none, it
// returns b itself.
func (g *merge) message(b []byte, md protoreflect.MessageDescriptor, was, now fields) ([]byte, bool) {
	w := &rewrite{parts: piecesOf(g.types, b, md), in: make(map[int][]byte), new: make(map[protowire.Number][]byte)}
	isAny := g.isAny(md, was, now)
	numbers := maps.Clone(was)
	maps.Copy(numbers, now)
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		before, after := was[n], now[n]
		switch {
		case after.fd == nil:
			w.put(before.fd, nil)
		case isAny != nil && n == 2:
			g.anyContent(w, isAny, before, after)
		case after.fd.IsMap():
			g.entries(w, before, after)
		case after.fd.IsList():
			g.list(w, before, after)
		case after.fd.Message() != nil:
			g.submessage(w, before, after)
		case before.fd == nil || !sameScalar(after.fd.Kind(), before.v, after.v):
			w.put(after.fd, appendValue(nil, after.fd, after.v))
		}
	}
	if !w.changed {
		return b, false
	}
	return w.bytes(), true
}

func (g *merge) submessage(w *rewrite, before, after field) {
	fd := after.fd
	live := w.effectiveParts(fd)
	// a map entry without a value has an empty value
	if before.fd == nil || len(live) == 0 && !fd.ContainingMessage().IsMapEntry() {
		w.put(fd, appendValue(nil, fd, after.v))
		return
	}
	// If a message field occurs several times, its value is the merge of all occurrences. The
	// concatenated contents of these occurrences, read as one message, have the same value.
	var content []byte
	if len(live) == 1 {
		content = w.parts[live[0]].content
	} else {
		for _, i := range live {
			content = append(content, w.parts[i].content...)
		}
	}
	if out, changed := g.message(
		content, fd.Message(), fieldsOf(before.v.Message()), fieldsOf(after.v.Message()),
	); changed {
		w.put(fd, appendMessage(nil, fd, out))
	}
}

// isAny returns the type of the message inside a google.protobuf.Any. If that type is unknown, or
// if the edit has changed it, isAny returns nil. It also returns nil for a message that is not an
// Any. If the result is nil, the message is merged field by field.
func (g *merge) isAny(md protoreflect.MessageDescriptor, was, now fields) protoreflect.MessageDescriptor {
	if md.FullName() != "google.protobuf.Any" {
		return nil
	}
	before, after := was[1], now[1]
	if before.fd == nil || after.fd == nil || after.fd.Kind() != protoreflect.StringKind || after.fd.IsList() ||
		before.v.String() != after.v.String() {
		return nil
	}
	if fd := md.Fields().ByNumber(2); fd == nil || fd.Kind() != protoreflect.BytesKind || fd.IsList() {
		return nil
	}
	return g.types.AnyContent(after.v.String())
}

// anyContent merges the content of an Any. It decodes the content before and after the edit, and
// changes only the bytes of what differs. It makes these changes in the content as it is on the
// wire, because the messages before and after the edit contain only a canonical form of the
// content.
func (g *merge) anyContent(w *rewrite, md protoreflect.MessageDescriptor, before, after field) {
	var old []byte
	if before.fd != nil {
		old = before.v.Bytes()
	}
	if bytes.Equal(old, after.v.Bytes()) {
		return
	}
	var content []byte
	if live := w.effectiveParts(after.fd); len(live) > 0 {
		content = w.parts[live[len(live)-1]].content
	}
	was, now := dynamicpb.NewMessage(md), dynamicpb.NewMessage(md)
	// the content is not a valid message of its type, so it is marked
	if unmarshal(old, was, g.types) != nil || unmarshal(after.v.Bytes(), now, g.types) != nil {
		w.put(after.fd, appendValue(nil, after.fd, after.v))
		return
	}
	out, changed := g.message(content, md, fieldsOf(was), fieldsOf(now))
	if changed {
		w.put(after.fd, appendValue(nil, after.fd, protoreflect.ValueOfBytes(out)))
	}
}

func (g *merge) list(w *rewrite, before, after field) {
	fd, now := after.fd, after.v.List()
	if fd.Message() != nil {
		g.messages(w, before, after)
		return
	}
	if before.fd != nil && before.v.List().Len() == now.Len() {
		same := true
		for i := 0; i < now.Len() && same; i++ {
			same = sameScalar(fd.Kind(), before.v.List().Get(i), now.Get(i))
		}
		if same {
			return
		}
	}
	packed := fd.IsPacked()
	if own := w.fieldParts(fd.Number()); len(own) > 0 && descriptor.Packable(fd.Kind()) {
		packed = w.parts[own[0]].wire == protowire.BytesType // in the form in which it was sent
	}
	w.putList(fd, [][]byte{appendList(nil, fd, now, packed)})
}

// messages merges a list of messages. Each element keeps the bytes of the old element to which it
// corresponds.
func (g *merge) messages(w *rewrite, before, after field) {
	fd, now := after.fd, after.v.List()
	keys := func(list protoreflect.List) []string {
		out := make([]string, list.Len())
		for i := range out {
			out[i] = string(canonical(list.Get(i).Message()))
		}
		return out
	}
	news := keys(now)
	var olds []string
	if before.fd != nil {
		olds = keys(before.v.List())
	}
	if slices.Equal(olds, news) && before.fd != nil {
		return
	}
	own := w.fieldParts(fd.Number())
	if len(own) != len(olds) {
		olds = nil // cannot happen: each of them is an element
	}
	row := make([][]byte, 0, len(news))
	for i, from := range pairElements(olds, news) {
		switch {
		case from < 0:
			row = append(row, appendMessage(nil, fd, []byte(news[i])))
		case olds[from] == news[i]:
			row = append(row, w.parts[own[from]].raw)
		default:
			out, _ := g.message(
				w.parts[own[from]].content, fd.Message(), fieldsOf(before.v.List().Get(from).Message()),
				fieldsOf(now.Get(i).Message()),
			)
			row = append(row, appendMessage(nil, fd, out))
		}
	}
	w.putList(fd, row)
}

// pairElements returns, for each new element, the index of the old element to which it corresponds,
// or -1. It first pairs equal elements. If an element equals several old ones, it prefers the one
// at the same index. If both lists have the same length, it then pairs the remaining elements at
// the same index. Otherwise, it pairs an element with the old one that has the same neighbours. Any
// other pair would be a guess, which could give an element the unknown fields of another one.
func pairElements(olds, news []string) []int {
	of := make([]int, len(news))
	taken := make([]bool, len(olds))
	spare := make(map[string][]int)
	for i := range news {
		of[i] = -1
		if i < len(olds) && olds[i] == news[i] {
			of[i], taken[i] = i, true
		}
	}
	for i, key := range olds {
		if !taken[i] {
			spare[key] = append(spare[key], i)
		}
	}
	for i, key := range news {
		if list := spare[key]; of[i] < 0 && len(list) > 0 {
			of[i], taken[list[0]] = list[0], true
			spare[key] = list[1:]
		}
	}
	if len(olds) == len(news) {
		for i := range news {
			if of[i] < 0 && !taken[i] {
				of[i], taken[i] = i, true
			}
		}
		return of
	}
	for i := range news {
		if of[i] >= 0 {
			continue
		}
		left, right := -1, len(olds)
		if i > 0 {
			if left = of[i-1]; left < 0 {
				continue
			}
		}
		if i+1 < len(news) {
			if right = of[i+1]; right < 0 {
				continue
			}
		}
		if right-left == 2 && !taken[left+1] {
			of[i], taken[left+1] = left+1, true
		}
	}
	return of
}

// sortedKeys returns the keys of a map, sorted by their text. Each key has a different text.
func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// entries merges a map. Each entry keeps the bytes of the old entry with the same key.
func (g *merge) entries(w *rewrite, before, after field) {
	fd, now := after.fd, after.v.Map()
	var was protoreflect.Map
	places := make(map[string][]int) // the map entries on the wire with each key; the last one counts
	for _, i := range w.fieldParts(fd.Number()) {
		k := g.key(w.parts[i].content, fd)
		places[k] = append(places[k], i)
	}
	if before.fd != nil {
		was = before.v.Map()
		for _, k := range sortedKeys(was) {
			if !now.Has(k) {
				w.drop(places[k.String()]...)
			}
		}
	}
	var added []byte
	for _, k := range sortedKeys(now) {
		v := now.Get(k)
		at := places[k.String()]
		if was == nil || !was.Has(k) || len(at) == 0 {
			w.drop(at...)
			added = appendEntry(added, fd, k, v)
			continue
		}
		last := at[len(at)-1]
		val := fd.MapValue()
		out, changed := g.message(
			w.parts[last].content, fd.Message(), fields{2: {val, was.Get(k)}}, fields{2: {val, v}},
		)
		if changed {
			w.drop(at[:len(at)-1]...)
			w.set(last, appendMessage(nil, fd, out))
		}
	}
	if len(added) > 0 {
		w.add(fd, added)
	}
}

// key returns the key of a map entry as text.
func (g *merge) key(entry []byte, fd protoreflect.FieldDescriptor) string {
	kd := fd.MapKey()
	key := kd.Default().MapKey().String()
	for _, p := range piecesOf(g.types, entry, fd.Message()) {
		switch {
		case p.num != 1 || p.fd == nil:
		case kd.Kind() == protoreflect.StringKind:
			key = string(p.content)
		default:
			key = wireText(kd, p.content)
		}
	}
	return key
}

// rewrite is a message that is being rewritten part by part.
type rewrite struct {
	parts   []piece
	in      map[int][]byte              // new bytes of parts; nil removes the part
	new     map[protowire.Number][]byte // fields that have no part yet
	changed bool
}

// fieldParts returns the indices of those parts of the message that contain a given field. It omits
// parts whose wire type the field does not accept.
func (w *rewrite) fieldParts(num protowire.Number) []int {
	var list []int
	for i := range w.parts {
		if p := &w.parts[i]; p.num == num && p.fd != nil {
			list = append(list, i)
		}
	}
	return list
}

// effectiveParts returns the indices of those occurrences of a field that determine its value. If
// the field belongs to a oneof, each occurrence of another member discards the occurrences before
// it, because only one member can be set. Therefore, only the occurrences after the last occurrence
// of any other member count.
func (w *rewrite) effectiveParts(fd protoreflect.FieldDescriptor) []int {
	list := w.fieldParts(fd.Number())
	for _, num := range otherMembers(fd) {
		for _, i := range w.fieldParts(num) {
			for len(list) > 0 && list[0] < i {
				list = list[1:]
			}
		}
	}
	return list
}

// otherMembers returns the other members of the oneof to which a field belongs.
func otherMembers(fd protoreflect.FieldDescriptor) []protowire.Number {
	o := fd.ContainingOneof()
	if o == nil || o.IsSynthetic() {
		return nil
	}
	var list []protowire.Number
	for i := range o.Fields().Len() {
		if n := o.Fields().Get(i).Number(); n != fd.Number() {
			list = append(list, n)
		}
	}
	return list
}

func (w *rewrite) set(i int, b []byte) {
	w.in[i] = b
	w.changed = true
}

func (w *rewrite) drop(list ...int) {
	for _, i := range list {
		w.set(i, nil)
	}
}

// put sets the value of a field that is not a list. If the value is nil, put removes the field. If
// the field is a member of a oneof, put also removes all other members of the oneof, because a body
// may contain several of them, and the last one takes effect. If put removed only the last member,
// an earlier one would take effect.
func (w *rewrite) put(fd protoreflect.FieldDescriptor, b []byte) {
	w.changed = true
	for _, num := range otherMembers(fd) {
		w.drop(w.fieldParts(num)...)
	}
	own := w.fieldParts(fd.Number())
	w.drop(own...)
	switch {
	case b == nil:
	case len(own) > 0:
		w.set(own[len(own)-1], b)
	default:
		w.new[fd.Number()] = b
	}
}

// putList replaces the elements of a repeated field. Each new element is written at the position of
// an old element. If there are more new elements than old ones, the rest follows at the position of
// the last old element.
func (w *rewrite) putList(fd protoreflect.FieldDescriptor, elements [][]byte) {
	w.changed = true
	own := w.fieldParts(fd.Number())
	w.drop(own...)
	if len(own) == 0 {
		w.new[fd.Number()] = slices.Concat(elements...)
		return
	}
	for i, at := range own[:min(len(own), len(elements))] {
		w.set(at, elements[i])
	}
	if len(elements) > len(own) {
		w.set(own[len(own)-1], slices.Concat(elements[len(own)-1:]...))
	}
}

// add appends bytes after the last part of a field.
func (w *rewrite) add(fd protoreflect.FieldDescriptor, b []byte) {
	w.changed = true
	own := w.fieldParts(fd.Number())
	if len(own) == 0 {
		w.new[fd.Number()] = b
		return
	}
	last := own[len(own)-1]
	now, ok := w.in[last]
	if !ok {
		now = w.parts[last].raw
	}
	w.in[last] = append(slices.Clip(now), b...)
}

// bytes returns the rewritten message. A new field comes before the first part that has a higher
// number.
func (w *rewrite) bytes() []byte {
	due := slices.Sorted(maps.Keys(w.new))
	var out []byte
	for i := range w.parts {
		for len(due) > 0 && due[0] < w.parts[i].num {
			out, due = append(out, w.new[due[0]]...), due[1:]
		}
		if b, ok := w.in[i]; ok {
			out = append(out, b...)
		} else {
			out = append(out, w.parts[i].raw...)
		}
	}
	for _, n := range due {
		out = append(out, w.new[n]...)
	}
	return out
}
