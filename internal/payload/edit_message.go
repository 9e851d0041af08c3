package payload

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

const anyType = "@type" // the name under which JSON has the type of a google.protobuf.Any

// messageEdit applies an edit to a decoded message. Where the JSON after the edit differs from the
// JSON before it, the field of the message is set or cleared. Everything else is never made from
// JSON: unknown fields stay, and so do values that have no JSON form, which the JSON shows as null.
// A list whose length changes keeps the equal elements at both of its ends, and those between them
// are made from JSON.
type messageEdit struct {
	types  *descriptor.Resolver
	root   site
	source string    // the JSON after the edit, as the person wrote it
	tree   *jsonNode // its tree
	budget *budget.Budget
}

// encodeAs applies an edit of the JSON of a message to the bytes of the message, and encodes the
// message again. The trees hold the JSON before and after the edit. The checks say what became of
// fields that the JSON does not show.
func encodeAs(
	def *descriptor.Type, body []byte, was, now *jsonNode, text string, b *budget.Budget,
) ([]byte, []Check, error) {
	valid := Check{true, "Valid JSON, valid for the type"}
	if sameJSON(was, now) {
		return body, []Check{valid}, nil
	}
	m, before, err := decodeMessage(def, body, b)
	if err != nil {
		return nil, nil, tooLargeTo("decode", err, "its bytes cannot be read back: replace the body as a whole")
	}
	def = def.Choosing(before.Contents)
	complete := proto.CheckInitialized(m) == nil
	e := &messageEdit{types: def.Types, root: site{md: def.Desc, types: def.Types}, source: text, tree: now, budget: b}
	done := false
	if was.kind == now.kind && isContainer(now.kind) {
		done, err = e.inside(m, was, now)
	}
	if err == nil && !done && hasSpecialForm(def.Desc) {
		m, err = e.whole(m)
	} else if err == nil && !done {
		err = e.fail(now.from, "")
	}
	if err != nil {
		return nil, nil, err
	}
	if err := proto.CheckInitialized(m); err != nil && complete {
		return nil, nil, &EditError{Message: descriptor.PlainError(err).Error() + ": put it back"}
	}
	out, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
	failed := "the edit cannot be encoded so that it decodes back unchanged: replace the body as a whole"
	if err != nil {
		return nil, nil, &EditError{Message: failed}
	}
	again, after, err := decodeMessage(def, out, b)
	if err != nil || !proto.Equal(m, again) {
		return nil, nil, tooLargeTo("decode", err, failed)
	}
	checks := []Check{valid, {true, "Encoded again to " + deadletter.Bytes(len(out)) + ", decodes back unchanged"}}
	if after.Unknown > 0 {
		checks = append(checks, Check{true, fmt.Sprintf(
			"%s that the JSON does not show, %s, carried over",
			deadletter.Plural(after.Unknown, "field", "fields"), deadletter.Bytes(int(after.UnknownBytes)),
		)})
	}
	if lost := before.Unknown - after.Unknown; lost > 0 {
		checks = append(checks, Check{false, fmt.Sprintf(
			"loss: %s that the JSON does not show (%s) dropped, with what was removed or replaced",
			deadletter.Plural(lost, "field", "fields"), deadletter.Bytes(int(before.UnknownBytes-after.UnknownBytes)),
		)})
	}
	return out, checks, nil
}

// decodeMessage scans bytes, and decodes them if they fit into the budget.
func decodeMessage(def *descriptor.Type, body []byte, b *budget.Budget) (*dynamicpb.Message, *descriptor.Scan, error) {
	s := &descriptor.Scan{Budget: b, Types: def.Types}
	if err := s.Run(body, def.Desc); err != nil {
		return nil, nil, err
	}
	if err := b.TakeMemory(s.Memory); err != nil {
		return nil, nil, err
	}
	m := dynamicpb.NewMessage(def.Desc)
	return m, s, unmarshal(body, m, def.Types)
}

// tooLargeTo returns an *EditError that names the limit if err is one, and otherwise the message.
func tooLargeTo(do string, err error, message string) error {
	if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
		message = "the body would be too large to " + do + " safely: " + tooLarge.What
	}
	return &EditError{Message: message}
}

// content returns the type and the content of a google.protobuf.Any. It returns nil if m is none,
// or if its type is not registered or does not fit the content.
func (e *messageEdit) content(m protoreflect.Message) (*descriptor.Type, protoreflect.Message) {
	fields := m.Descriptor().Fields()
	if m.Descriptor().FullName() != "google.protobuf.Any" || fields.ByNumber(1) == nil || fields.ByNumber(2) == nil {
		return nil, nil
	}
	defs := e.types.AnyContent(m.Get(fields.ByNumber(1)).String())
	if len(defs) == 0 {
		return nil, nil
	}
	content, _, err := decodeMessage(defs[0], m.Get(fields.ByNumber(2)).Bytes(), e.budget)
	if err != nil {
		return nil, nil
	}
	return defs[0], content
}

// message applies the difference between two JSON objects to the message m. For the content of an
// Any, the objects also have its type.
func (e *messageEdit) message(m protoreflect.Message, was, now *jsonNode, inAny bool) error {
	type member struct {
		fd       protoreflect.FieldDescriptor
		was, now *jsonNode
	}
	md := m.Descriptor()
	before := make(map[protoreflect.FieldNumber]*member)
	for i, item := range was.items {
		if fd := e.types.FieldNamed(md, was.names[i].text); fd != nil {
			before[fd.Number()] = &member{fd: fd, was: item}
		}
	}
	var changed []*member
	present := make(map[protoreflect.FieldNumber]bool)
	oneofs := make(map[protoreflect.FullName]bool)
	for i, item := range now.items {
		name := &now.names[i]
		if inAny && name.text == anyType {
			continue
		}
		fd := e.types.FieldNamed(md, name.text)
		if fd == nil {
			return e.fail(name.from, "unknown field")
		}
		if present[fd.Number()] {
			return e.fail(name.from, "duplicate field")
		}
		present[fd.Number()] = true
		old := before[fd.Number()]
		sets := item.kind != 'n' || takesNull(fd) || old != nil && old.was.kind == 'n' // a value without JSON
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && sets {
			if oneofs[o.FullName()] {
				return e.fail(name.from, "oneof")
			}
			oneofs[o.FullName()] = true
		}
		c := &member{fd: fd, now: item}
		if old != nil {
			c.was = old.was
		}
		if c.was == nil || !sameJSON(c.was, item) {
			changed = append(changed, c)
		}
	}
	for num, old := range before {
		if !present[num] {
			m.Clear(old.fd)
		}
	}
	for _, c := range changed {
		if err := e.field(m, c.fd, c.was, c.now); err != nil {
			return err
		}
	}
	return nil
}

// takesNull reports whether null is a value of a field, instead of its absence.
func takesNull(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value" ||
		fd.Enum() != nil && fd.Enum().FullName() == "google.protobuf.NullValue"
}

// field sets a field of the message m whose JSON differs. The node "was" is nil if it was not
// there.
func (e *messageEdit) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, was, now *jsonNode) error {
	m.Range(func(held protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if held.Number() == fd.Number() {
			fd = held // for an extension, this is another descriptor
		}
		return held != fd
	})
	if was != nil && was.kind == now.kind && isContainer(now.kind) {
		switch {
		case fd.IsMap():
			return e.entries(m, fd, was, now)
		case fd.IsList():
			return e.list(m, fd, was, now)
		case fd.Message() != nil:
			if done, err := e.inside(m.Mutable(fd).Message(), was, now); done || err != nil {
				return err
			}
		}
	}
	made, err := e.parse(m, fd, "", now, "", now.from)
	if err != nil {
		return err
	}
	var unknown protoreflect.RawFields // for example of a Timestamp, whose JSON is its whole value
	if fd.Message() != nil && !fd.IsMap() && !fd.IsList() && hasSpecialForm(fd.Message()) && m.Has(fd) {
		unknown = m.Get(fd).Message().GetUnknown()
	}
	m.Clear(fd)
	made.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if len(unknown) > 0 {
			v.Message().SetUnknown(unknown)
		}
		m.Set(fd, v)
		return true
	})
	return nil
}

// inside applies the difference between two JSON objects or lists to the message m. It returns
// false if the message must be made from JSON as a whole.
func (e *messageEdit) inside(m protoreflect.Message, was, now *jsonNode) (bool, error) {
	fields := m.Descriptor().Fields()
	switch m.Descriptor().FullName() {
	case "google.protobuf.Struct":
		return true, e.entries(m, fields.ByNumber(1), was, now)
	case "google.protobuf.ListValue":
		return true, e.list(m, fields.ByNumber(1), was, now)
	case "google.protobuf.Value":
		name := protoreflect.Name("struct_value")
		if now.kind == '[' {
			name = "list_value"
		}
		return e.inside(m.Mutable(fields.ByName(name)).Message(), was, now)
	case "google.protobuf.Any":
		i, j := was.find(anyType), now.find(anyType)
		def, content := e.content(m)
		if def == nil || hasSpecialForm(def.Desc) || i < 0 || j < 0 || !sameJSON(was.items[i], now.items[j]) {
			return false, nil
		}
		in := *e
		in.types = def.Types
		if err := in.message(content, was, now, true); err != nil {
			return false, err
		}
		out, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(content.Interface())
		m.Set(fields.ByNumber(2), protoreflect.ValueOfBytes(out))
		return err == nil, err
	}
	if hasSpecialForm(m.Descriptor()) || now.kind != '{' {
		return false, nil
	}
	return true, e.message(m, was, now, false)
}

// entries applies the difference between two JSON objects to a map.
func (e *messageEdit) entries(m protoreflect.Message, fd protoreflect.FieldDescriptor, was, now *jsonNode) error {
	held := m.Mutable(fd).Map()
	keys := make(map[string]protoreflect.MapKey)
	held.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys[key.String()] = key
		return true
	})
	for i := range was.names {
		if key, ok := keys[was.names[i].text]; ok && now.find(was.names[i].text) < 0 {
			held.Clear(key)
		}
	}
	for i, item := range now.items {
		name := &now.names[i]
		j := was.find(name.text)
		key, ok := keys[name.text]
		if j >= 0 && sameJSON(was.items[j], item) {
			continue
		}
		if ok && j >= 0 && was.items[j].kind == item.kind && isContainer(item.kind) && fd.MapValue().Message() != nil {
			if done, err := e.inside(held.Mutable(key).Message(), was.items[j], item); err != nil {
				return err
			} else if done {
				continue
			}
		}
		made, err := e.parse(m, fd, "{"+name.raw+":", item, "}", name.from)
		if err != nil {
			return err
		}
		twice := false
		only(made).Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			twice = j < 0 && held.Has(key)
			held.Set(key, v)
			return true
		})
		if twice {
			return e.fail(name.from, "duplicate map key")
		}
	}
	return nil
}

// list applies the difference between two JSON lists to a list.
func (e *messageEdit) list(m protoreflect.Message, fd protoreflect.FieldDescriptor, was, now *jsonNode) error {
	held := m.Mutable(fd).List()
	old, size := len(was.items), len(now.items)
	head, tail := 0, 0
	for ; head < min(old, size) && sameJSON(was.items[head], now.items[head]); head++ {
	}
	for ; tail < min(old, size)-head && sameJSON(was.items[old-1-tail], now.items[size-1-tail]); tail++ {
	}
	fresh := m.NewField(fd).List()
	for i, item := range now.items {
		at := i
		if i >= size-tail {
			at = i - size + old
		}
		if i < head || i >= size-tail || old == size && sameJSON(was.items[i], item) {
			fresh.Append(held.Get(at))
			continue
		}
		if old == size && was.items[i].kind == item.kind && isContainer(item.kind) && fd.Message() != nil {
			done, err := e.inside(held.Get(i).Message(), was.items[i], item)
			if err != nil {
				return err
			}
			if done {
				fresh.Append(held.Get(i))
				continue
			}
		}
		made, err := e.parse(m, fd, "[", item, "]", item.from)
		if err != nil {
			return err
		}
		fresh.Append(only(made).List().Get(0))
	}
	m.Set(fd, protoreflect.ValueOfList(fresh))
	return nil
}

// only returns the value of the only field of a message.
func only(m protoreflect.Message) (value protoreflect.Value) {
	m.Range(func(_ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		value = v
		return false
	})
	return value
}

// whole makes a message of a type that JSON writes as a single value. The fields that the old one
// has and the schema does not know stay.
func (e *messageEdit) whole(old protoreflect.Message) (*dynamicpb.Message, error) {
	m := dynamicpb.NewMessage(old.Descriptor())
	err := e.unmarshal(m, e.tree, "", "", e.tree.from)
	m.SetUnknown(old.GetUnknown())
	return m, err
}

// parse makes one field of a message from a value in the person's JSON. The texts before and after
// complete the value: an element to a list, the value of an entry to a map. The result is a message
// of the type of m in which at most this field is set. If the mistake is in these texts, the error
// has the position "at" in the person's JSON.
func (e *messageEdit) parse(
	m protoreflect.Message, fd protoreflect.FieldDescriptor, before string, n *jsonNode, after string, at int,
) (protoreflect.Message, error) {
	made := m.New()
	if !hasSpecialForm(m.Descriptor()) { // JSON has the field of a Struct or a ListValue without a name
		before, after = "{"+string(quoteJSON(fd.JSONName()))+":"+before, after+"}"
	}
	return made, e.unmarshal(made.Interface(), n, before, after, at)
}

func (e *messageEdit) unmarshal(m proto.Message, n *jsonNode, before, after string, at int) (err error) {
	// A set may define a well-known type in a way that protojson does not expect. In that case
	// protojson panics.
	defer func() {
		if recover() != nil {
			err = &EditError{Message: "a type of google.protobuf is not defined as usual: replace the body as a whole"}
		}
	}()
	text := before + e.source[n.from:n.to] + after
	if err := e.budget.TakeMemory(4*int64(len(text)) + n.cost()); err != nil {
		return tooLargeTo("encode", err, "")
	}
	if err = (protojson.UnmarshalOptions{
		Resolver:     e.types,
		AllowPartial: true,
	}).Unmarshal([]byte(text), m); err == nil {
		return nil
	}
	// The texts of protojson vary deliberately and quote values, so only the position and the kind
	// of the mistake are used.
	mistake := descriptor.PlainError(err).Error()
	var line, column int
	_, place, _ := strings.Cut(mistake, "(line ")
	if k, _ := fmt.Sscanf(place, "%d:%d", &line, &column); k == 2 {
		if in := byteAt(text, line, column) - len(before); in >= 0 {
			at = min(n.from+in, max(n.from, n.to-1))
		}
	}
	return e.fail(at, mistake)
}

// fail returns an error at a position in the person's JSON, with an instruction for the mistake.
func (e *messageEdit) fail(at int, mistake string) error {
	path, s := e.root.locate(e.tree, at)
	line, column := position(e.source, at)
	return &EditError{Line: line, Column: column, Path: path, Message: s.instruction(mistake)}
}

// cost estimates the memory in bytes that protojson allocates for a value. For an Any, this
// includes the bytes as which protojson writes the parsed content. If Anys are nested, their
// content is parsed and written once for each Any that encloses it.
func (n *jsonNode) cost() int64 {
	total := int64(descriptor.CostField)
	if isContainer(n.kind) {
		total = descriptor.CostMessage
		if n.kind == '{' && n.find(anyType) >= 0 {
			total += 4 * int64(n.to-n.from)
		}
		for _, item := range n.items {
			total += item.cost()
		}
	}
	return total
}

// byteAt returns the byte offset of a line and a column. It is the inverse of the function
// "position".
func byteAt(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	for i := range text[at:] {
		if column--; column == 0 {
			return at + i
		}
	}
	return len(text)
}
