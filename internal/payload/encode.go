package payload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// encodeAs applies an edit of the JSON of a message to the bytes of the message. The parameter
// "stored" is the JSON of the body. The parameter "edited" is a person's edit of it. Everything
// that the edit does not touch keeps its bytes. The checks name the data that the JSON does not
// show, and say whether it was kept.
func encodeAs(
	def *descriptor.Type, body []byte, stored string, edited *unmasked, b *budget.Budget,
) ([]byte, []Check, error) {
	seen := &tolerant{Resolver: def.Types}
	was, err := messageOf(def, stored, nil, seen, b)
	if err != nil {
		return nil, nil, &EditError{Message: "its JSON cannot be read back: replace the body as a whole"}
	}
	before := len(seen.missing)
	now, err := messageOf(def, edited.text, edited.tree, seen, b)
	if err != nil {
		return nil, nil, explain(def, err, edited)
	}
	for _, name := range seen.missing[before:] {
		if !slices.Contains(seen.missing[:before], name) {
			return nil, nil, edited.unregistered(name)
		}
	}
	if err := proto.CheckInitialized(now); err != nil && proto.CheckInitialized(was) == nil {
		return nil, nil, &EditError{Message: descriptor.PlainError(err).Error() + ": put it back"}
	}
	out, _ := (&merge{def.Types}).message(body, def.Desc, fieldsOf(was), fieldsOf(now))
	if err := verify(def, out, now, b); err != nil {
		return nil, nil, err
	}
	kept, lost := compareUnseen(unseenOf(def.Types, body, def.Desc), unseenOf(def.Types, out, def.Desc))
	checks := []Check{
		{LevelOK, "Valid JSON, valid for the type"},
		{LevelOK, "Encodes to " + deadletter.Bytes(len(out)) + " and decodes back unchanged"},
	}
	return out, append(checks, checksOf(kept, lost)...), nil
}

// messageOf parses protojson. The parameter "tree" is the tree of that JSON, or nil if dlo wrote
// the JSON itself.
func messageOf(
	def *descriptor.Type, text string, tree *jsonNode, types *tolerant, b *budget.Budget,
) (m *dynamicpb.Message, err error) {
	// A set may define a well-known type in a way that protojson does not expect. In that case
	// protojson panics.
	defer func() {
		if recover() != nil {
			m, err = nil, errors.New("a type of google.protobuf is not defined as usual")
		}
	}()
	cost := int64(len(text)) * 4
	if tree != nil {
		cost += tree.cost(text)
	}
	if err := b.TakeMemory(cost); err != nil {
		return nil, err
	}
	m = dynamicpb.NewMessage(def.Desc)
	if !strings.Contains(text, "wire\"") && !strings.Contains(text, `\u`) { // the text has no marked values
		return m, protojson.UnmarshalOptions{Resolver: types, AllowPartial: true}.Unmarshal([]byte(text), m)
	}
	// the positions must be those of this text, because the edited text contains stored values
	if tree, err = parseJSON(text, b); err != nil {
		return nil, err
	}
	return m, unmarshalMarked(m, text, tree, types)
}

// cost estimates the memory in bytes that protojson allocates for a value. For an Any, this
// includes the bytes as which protojson writes the parsed content. If Anys are nested, their
// content is parsed and written once for each Any that encloses it.
func (n *jsonNode) cost(text string) int64 {
	total := int64(descriptor.CostField)
	switch n.kind {
	case '{', '[':
		total = descriptor.CostMessage
		if n.kind == '{' && n.find("@type") >= 0 {
			total += 4 * int64(n.to-n.from)
		}
		for _, item := range n.items {
			total += item.cost(text)
		}
	}
	return total
}

// verify decodes the new bytes, and checks that their JSON is that of the intended message.
func verify(def *descriptor.Type, out []byte, meant *dynamicpb.Message, b *budget.Budget) error {
	failed := &EditError{
		Message: "the edit cannot be encoded so that it decodes back unchanged: replace the body as a whole",
	}
	s := &descriptor.Scan{Budget: b, Types: def.Types}
	if err := s.Run(out, def.Desc); err != nil {
		if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
			return &EditError{Message: "the new body would be too large to decode safely: " + tooLarge.What}
		}
		return failed
	}
	if err := b.TakeMemory(s.Memory + 12*s.JsonBytes); err != nil {
		return &EditError{Message: "the new body would be too large to decode safely: " + err.Error()}
	}
	m := dynamicpb.NewMessage(def.Desc)
	if unmarshal(out, m, def.Types) != nil {
		return failed
	}
	var trees [2]*jsonNode
	for i, m := range []*dynamicpb.Message{m, meant} {
		text, _, err := marshal(m, &tolerant{Resolver: def.Types}, b)
		if err != nil {
			return failed
		}
		if trees[i], err = parseJSON(string(text), b); err != nil {
			return failed
		}
	}
	if !sameJSON(trees[0], trees[1]) {
		return failed
	}
	return nil
}

// unregistered returns the error for an Any whose type is not registered.
func (u *unmasked) unregistered(name string) error {
	e := &EditError{
		Message: "the type of this Any is not registered, so it cannot be encoded: upload its schema, or take another type",
	}
	u.tree.walk("", func(n *jsonNode, path string) bool {
		i := n.find("@type")
		if n.kind != '{' || i < 0 || n.items[i].kind != '"' || descriptor.TypeName(n.items[i].text) != name {
			return true
		}
		e.Path = dotted(path, "@type")
		e.Line, e.Column = position(u.source, n.items[i].from)
		return false
	})
	return e
}

// halfPair finds a text with a lone surrogate, which JSON allows and protobuf does not. It returns
// nil if there is none.
func (u *unmasked) halfPair() error {
	e := &EditError{
		Message: "the text has half of a pair of escapes, which is not a character: write the character itself",
	}
	whole := u.tree.walk("", func(n *jsonNode, path string) bool {
		at := n.from
		ok := n.kind != '"' || utf8.ValidString(n.text)
		for i := 0; ok && i < len(n.names); i++ {
			ok, at = utf8.ValidString(n.names[i].text), n.names[i].from
		}
		if !ok {
			e.Path = path
			e.Line, e.Column = position(u.source, at)
		}
		return ok
	})
	if whole {
		return nil
	}
	return e
}

// walk calls f for a value and all values inside it, until f returns false. It reports whether f
// always returned true.
func (n *jsonNode) walk(path string, f func(n *jsonNode, path string) bool) bool {
	if !f(n, path) {
		return false
	}
	for i, item := range n.items {
		name := element(i)
		if n.kind == '{' {
			name = cmp.Or(n.names[i].shown, n.names[i].text)
		}
		if !item.walk(dotted(path, name), f) {
			return false
		}
	}
	return true
}

// explain turns an error of protojson into one that says what to write. The texts of protojson vary
// deliberately and quote values, which may be masked. Therefore explain uses only the position and
// the kind of the mistake.
func explain(def *descriptor.Type, err error, u *unmasked) error {
	if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
		return &EditError{Message: "too large to encode safely: " + tooLarge.What}
	}
	if e := u.halfPair(); e != nil {
		return e
	}
	s := site{md: def.Desc, types: def.Types}
	if wrong := (*markError)(nil); errors.As(err, &wrong) {
		e := &EditError{Message: wrong.message}
		if wrong.at >= 0 {
			at := u.origin(wrong.at)
			e.Line, e.Column = position(u.source, at)
			e.Path, _ = s.locate(u.tree, at)
		}
		return e
	}
	read := u.text
	inner := &unmasked{}
	if marked := (*readError)(nil); errors.As(err, &marked) {
		err, read, inner.moves = marked.error, marked.text, marked.moves
	}
	text := descriptor.PlainError(err).Error()
	_, place, _ := strings.Cut(text, "(line ")
	var line, column int
	if n, _ := fmt.Sscanf(place, "%d:%d", &line, &column); n != 2 {
		return &EditError{
			Message: "this JSON does not fit the type " + string(def.Desc.FullName()) + ": replace the body as a whole",
		}
	}
	at := u.origin(inner.origin(byteAt(read, line, column)))
	e := &EditError{}
	e.Line, e.Column = position(u.source, at)
	e.Path, s = s.locate(u.tree, at)
	e.Message = s.instruction(text)
	return e
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
