package payload

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// maxDefinitions is how many definitions of one type name are tried: newest versions first.
const maxDefinitions = 8

// readProtobuf fills the document when the body is a message of the candidate type. Otherwise it says why not.
//
// When sets define the type differently, the definition that leaves the fewest bytes unknown is taken; of equals the first in the order of
// Registry.find. The others are named in the document.
func (r *reading) readProtobuf(c candidate) bool {
	doc := r.doc
	label := c.name + " (" + c.source + ")"
	if len(c.defs) == 0 {
		doc.problem(label + " " + c.why)
		doc.step(false, "protobuf: "+label+" "+c.why)
		return false
	}
	def, s, err := r.scanAll(c.defs)
	if tooLarge := (*tooLargeError)(nil); errors.As(err, &tooLarge) {
		doc.tooLarge(tooLarge.what)
		return false
	}
	var m *dynamicpb.Message
	if err == nil && s.known == 0 {
		err = fmt.Errorf("%s, none of which it knows", plural(s.unknown, "field is", "fields are")+" on the wire")
	}
	if err == nil {
		if over := r.budget.takeMemory(s.memory + treeMemory); over != nil {
			doc.tooLarge(over.Error())
			return false
		}
		m = dynamicpb.NewMessage(def.desc)
		err = unmarshal(doc.Body, m, def.types)
	}
	if err != nil {
		doc.problem(label + " does not parse: " + err.Error())
		doc.step(false, "protobuf: "+label+" does not parse: "+err.Error())
		return false
	}
	doc.Kind, doc.Type, doc.Chosen, doc.by, doc.Set = Protobuf, c.name, c.source, c.by, def.set
	doc.Problem = ""
	for _, o := range c.defs {
		if o != def && !sameFields(o.desc, def.desc) {
			doc.Also = append(doc.Also, o.set)
		}
	}
	used := "whole body used"
	if doc.UnknownFields, doc.UnknownBytes = s.unknown, s.unknownBytes; s.unknown > 0 {
		used = fmt.Sprintf("%s of %s in %s unknown", count(s.unknownBytes), bytesText(len(doc.Body)), plural(s.unknown, "field", "fields"))
	}
	doc.step(true, "protobuf by "+c.source+", "+used)
	r.show(m, def, s, r.rootSpot(append([]*definition{def}, c.defs...)...))
	return true
}

// unmarshal decodes b into m. On a map entry with a second key of another wire type the decoder panics (protobuf 1.36.12).
func unmarshal(b []byte, m *dynamicpb.Message, types *resolver) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the decoder fails on it")
		}
	}()
	if err := (proto.UnmarshalOptions{Resolver: types, AllowPartial: true}).Unmarshal(b, m); err != nil {
		return plainError(err)
	}
	return nil
}

// scanAll returns the definition to decode with and its scan, or the error of the first definition.
func (r *reading) scanAll(defs []*definition) (best *definition, of *scan, err error) {
	for i, def := range defs[:min(len(defs), maxDefinitions)] {
		s, e := r.scan(r.doc.Body, def)
		// A million fields of which the type knows none are no reason to call a body too large: it is something else.
		if tooLarge := (*tooLargeError)(nil); errors.As(e, &tooLarge) {
			if s.known > 0 || s.entered {
				return nil, nil, e
			}
			e = errors.New(tooLarge.what + ", none of which it knows")
		}
		if e != nil {
			if i == 0 {
				err = e
			}
			continue
		}
		if best == nil || s.known > 0 && (of.known == 0 || s.unknownBytes < of.unknownBytes) {
			best, of = def, s
		}
	}
	if best != nil {
		err = nil
	}
	return best, of, err
}

// scanned is the outcome of one scan. Peeling and reading look at the same body, and a scan is paid for once.
type scanned struct {
	body []byte
	def  *definition
	scan *scan
	err  error
}

// scan scans a body of at least one byte along a definition, or returns what an earlier scan found.
func (r *reading) scan(body []byte, def *definition) (*scan, error) {
	for _, m := range r.memo {
		if m.def == def && len(m.body) == len(body) && &m.body[0] == &body[0] {
			return m.scan, m.err
		}
	}
	s := &scan{budget: r.budget, types: def.types}
	err := s.run(body, def.desc)
	r.memo = append(r.memo, scanned{body, def, s, err})
	return s, err
}

// sameFields reports whether two definitions of a type read it alike, at its own level.
func sameFields(a, b protoreflect.MessageDescriptor) bool {
	x, y := a.Fields(), b.Fields()
	if x.Len() != y.Len() {
		return false
	}
	for i := range x.Len() {
		f := x.Get(i)
		g := y.ByNumber(f.Number())
		if g == nil || f.Name() != g.Name() || f.Kind() != g.Kind() || f.Cardinality() != g.Cardinality() || typeName(f) != typeName(g) {
			return false
		}
	}
	return true
}

// show fills tree, JSON and notes from a decoded message.
func (r *reading) show(m *dynamicpb.Message, def *definition, s *scan, at spot) {
	doc := r.doc
	if err := proto.CheckInitialized(m); err != nil {
		doc.note(plainError(err).Error())
	}
	t := newTree(def.types, doc.Body)
	whole := []Range{{0, len(doc.Body)}}
	if unlike(def.desc) {
		if t.take() {
			n := Node{Name: "value", Ranges: whole}
			t.submessage(&n, m, at, whole)
			doc.Fields = []Node{n}
		}
	} else {
		doc.Fields = t.message(m, at.in(def.desc), whole)
	}
	doc.Notes = append(doc.Notes, t.notes()...)
	doc.Masked = doc.Masked || t.masked
	var hidden bool // what neither tree nor JSON show may hold a masked value too: what their caps leave out, and what a later field overrides
	doc.hidden, hidden = hiddenFields(doc.Body, def, at)
	doc.Masked = doc.Masked || hidden
	if r.NoJSON {
		return
	}
	if s.jsonBytes > maxJSON {
		doc.note("the JSON would have about " + bytesText(int(s.jsonBytes)) + ", above " + bytesText(maxJSON) + ", and is left out")
	} else if err := r.jsonOf(m, def, s, at); err != nil {
		doc.note("no JSON: " + err.Error())
	}
}

// jsonOf writes the message as protojson does (lowerCamelCase names, int64 as strings, unknown fields left out), then again with fixed
// spacing, as that of protojson is random on purpose.
func (r *reading) jsonOf(m *dynamicpb.Message, def *definition, s *scan, at spot) (err error) {
	defer func() {
		// A set may define a well-known type in another way than protojson takes for granted, which it answers with a panic.
		if recover() != nil {
			r.doc.JSON, err = "", errors.New("a type of google.protobuf is not defined as usual")
		}
	}()
	if err := r.budget.takeMemory(6*s.jsonBytes + 3*maxJSON); err != nil {
		return err
	}
	types := &tolerant{resolver: def.types}
	b, err := protojson.MarshalOptions{Resolver: types, AllowPartial: true}.Marshal(m)
	if err != nil && !at.idle() { // the text may quote a value
		return errors.New("a value has none")
	}
	if err != nil {
		return plainError(err)
	}
	root := place{spot: at, types: def.types}
	root.describe(def.desc)
	p := &jsonPrinter{jsonReader: jsonReader{src: b}, budget: r.budget, root: root}
	text, masked := p.print()
	r.doc.Masked = r.doc.Masked || masked
	switch {
	case p.err != nil:
		return p.err
	case p.over:
		return errors.New("indented it has more than " + bytesText(maxJSON))
	}
	r.doc.JSON = text
	for i, name := range types.missing {
		if !at.idle() { // a name may be masked
			r.doc.note("the JSON leaves out what an Any of a type that is not registered holds")
			break
		}
		if i == 0 || name != types.missing[i-1] {
			r.doc.note("the JSON leaves out what an Any of type " + name + " holds: it is not registered")
		}
	}
	return nil
}

// plainError is an error of the protobuf module as people read it. Its texts vary between a space and a no-break space on purpose.
func plainError(err error) error {
	s := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	s, _ = cut(visible(strings.TrimPrefix(s, "proto: "), ""), 300)
	return errors.New(s)
}
