package payload

import (
	"errors"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// readProtobuf decodes the body as the type of the candidate c and fills in the document. If the
// body is not a message of this type, readProtobuf records why, and returns false.
//
// If several descriptor sets define the type differently, readProtobuf uses the definition that
// leaves the fewest bytes unknown. Among equally good definitions, it uses the first one in the
// order of Registry.Lookup. The document names the sets of the other definitions.
func (r *reading) readProtobuf(c candidate) bool {
	doc := r.doc
	label := c.told + " (" + c.source + ")"
	if len(c.defs) == 0 {
		doc.problem(label + " " + c.why)
		doc.step(false, "protobuf: "+label+" "+c.why)
		return false
	}
	def, s, err := r.scanAll(doc.Body, c.defs)
	if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
		doc.tooLarge(tooLarge.What)
		return false
	}
	var m *dynamicpb.Message
	if err == nil && s.Known == 0 {
		err = fmt.Errorf(
			"%s, none of which it knows", deadletter.Plural(s.Unknown, "field is", "fields are")+" on the wire",
		)
	}
	if err == nil {
		if over := r.budget.TakeMemory(s.Memory + treeMemory); over != nil {
			doc.tooLarge(over.Error())
			return false
		}
		m = dynamicpb.NewMessage(def.Desc)
		err = unmarshal(doc.Body, m, def.Types)
	}
	if err != nil {
		// the error may have the full name of a field, with that of the type
		why := "could not decode as " + label + ": " + strings.ReplaceAll(err.Error(), c.name, c.told)
		doc.problem(why)
		doc.step(false, "protobuf: "+why)
		return false
	}
	doc.Kind, doc.Type, doc.Chosen, doc.by, doc.Set = Protobuf, c.name, c.source, c.by, def.Set
	doc.Problem = ""
	for _, o := range c.defs {
		if o != def && !sameFields(o.Desc, def.Desc) {
			doc.Also = append(doc.Also, o.Set)
		}
	}
	def = def.Choosing(s.Contents)
	used := "whole body used"
	if doc.UnknownFields, doc.UnknownBytes = s.Unknown, s.UnknownBytes; s.Unknown > 0 {
		used = fmt.Sprintf(
			"%s of %s in %s unknown", deadletter.Count(s.UnknownBytes), deadletter.Bytes(len(doc.Body)),
			deadletter.Plural(s.Unknown, "field", "fields"),
		)
	}
	doc.step(true, "protobuf by "+c.source+", "+used)
	at := r.rootSpot(append([]*descriptor.Type{def}, c.defs...)...)
	at.hidden = at.hidden || r.definitionsHide(at, def, s, c.defs) || at.m.masked && r.beginsFramed(def)
	if c.by == deadletter.ReadByMatch {
		at = r.guess(at, def)
		doc.ShapeOnly = plainName(r.hints.Type) != plainName(string(def.Desc.Name()))
	}
	r.show(m, def, s, at)
	if s.Unknown > 0 {
		doc.sayAdded(def)
	}
	return true
}

// unmarshal decodes b into m. It returns an error if the decoder panics. protobuf 1.36.12 panics on
// a map entry that has a second key of another wire type.
func unmarshal(b []byte, m *dynamicpb.Message, types *descriptor.Resolver) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the decoder fails on it")
		}
	}()
	if err := (proto.UnmarshalOptions{Resolver: types, AllowPartial: true}).Unmarshal(b, m); err != nil {
		return descriptor.PlainError(err)
	}
	return nil
}

// scanAll scans a body as each of the given definitions. It returns the definition that is best for
// decoding the body, and its scan. If no definition fits, it returns the error of the first one.
func (r *reading) scanAll(
	body []byte, defs []*descriptor.Type,
) (best *descriptor.Type, scan *descriptor.Scan, err error) {
	for i, def := range defs[:min(len(defs), descriptor.MaxDefinitions)] {
		s, e := r.scan(body, def)
		// The type knows none of the fields of this body. It therefore does not matter that the
		// body has too many fields for the budget: the body is not a message of this type.
		if tooLarge := (*budget.TooLargeError)(nil); errors.As(e, &tooLarge) {
			if s.Known > 0 || s.Entered {
				return nil, nil, e
			}
			e = errors.New(tooLarge.What + ", none of which it knows")
		}
		if e != nil {
			if i == 0 {
				err = e
			}
			continue
		}
		if best == nil || s.Known > 0 && (scan.Known == 0 || s.UnknownBytes < scan.UnknownBytes) {
			best, scan = def, s
		}
	}
	if best != nil {
		err = nil
	}
	return best, scan, err
}

// scanned is the result of one scan of a body. dlo keeps the result, because it needs it twice:
// when it looks for layers of the body, and when it decodes the body. The scan is therefore charged
// to the budget only once.
type scanned struct {
	body []byte
	def  *descriptor.Type
	scan *descriptor.Scan
	err  error
}

// scan scans a body of at least one byte as a message of a definition. If this was done before, it
// returns the earlier result.
func (r *reading) scan(body []byte, def *descriptor.Type) (*descriptor.Scan, error) {
	for _, m := range r.memo {
		if m.def == def && len(m.body) == len(body) && &m.body[0] == &body[0] {
			return m.scan, m.err
		}
	}
	s := &descriptor.Scan{Budget: r.budget, Types: def.Types}
	err := s.Run(body, def.Desc)
	r.memo = append(r.memo, scanned{body, def, s, err})
	return s, err
}

// sameFields reports whether two definitions of a type have the same fields, so that both decode a
// body in the same way. It does not compare the definitions of nested messages.
func sameFields(a, b protoreflect.MessageDescriptor) bool {
	x, y := a.Fields(), b.Fields()
	if x.Len() != y.Len() {
		return false
	}
	for i := range x.Len() {
		f := x.Get(i)
		g := y.ByNumber(f.Number())
		if g == nil || f.Name() != g.Name() || f.Kind() != g.Kind() || f.Cardinality() != g.Cardinality() ||
			typeName(f) != typeName(g) {
			return false
		}
	}
	return true
}

// show makes the tree, the JSON and the notes of a decoded message.
func (r *reading) show(m *dynamicpb.Message, def *descriptor.Type, s *descriptor.Scan, at spot) {
	doc := r.doc
	if err := proto.CheckInitialized(m); err != nil {
		doc.note(descriptor.PlainError(err).Error())
	}
	// parts that neither the tree nor the JSON shows may also be masked: a limit omits them, or a
	// later field overrides them
	hiddenFields(doc.Body, def, at, func(int, int) { doc.Masked = true })
	t := &tree{types: def.Types, body: doc.Body}
	whole := []Range{{0, len(doc.Body)}}
	if hasSpecialForm(def.Desc) {
		if t.takeNode() {
			n := Node{Name: "value", Ranges: whole}
			t.submessage(&n, m, at, whole)
			doc.Fields = []Node{n}
		}
	} else {
		doc.Fields = t.message(m, at.inside(def.Desc), whole)
	}
	doc.Notes = append(doc.Notes, t.limitNotes()...)
	doc.Masked = doc.Masked || t.masked
	if r.NoJSON {
		return
	}
	if s.JsonBytes > maxJSON {
		doc.jsonProblem(
			"the JSON would have about " + deadletter.Bytes(int(s.JsonBytes)) + ", above " + deadletter.Bytes(maxJSON) +
				", and is left out",
		)
	} else if err := r.jsonOf(m, def, s, at); err != nil {
		doc.jsonProblem("no JSON: " + err.Error())
	}
}

// jsonOf makes the JSON of the message as protojson does: lowerCamelCase names, int64 as strings,
// unknown fields omitted, and null in place of values that have no JSON form. It then writes the
// JSON again with fixed spacing, because the spacing of protojson is deliberately random.
func (r *reading) jsonOf(m *dynamicpb.Message, def *descriptor.Type, s *descriptor.Scan, at spot) (err error) {
	defer func() {
		// A set may define a well-known type in a way that protojson does not expect. In that case
		// protojson panics.
		if recover() != nil {
			r.doc.JSON, err = "", errors.New("a type of google.protobuf is not defined as usual")
		}
	}()
	if err := r.budget.TakeMemory(6*s.JsonBytes + 3*maxJSON); err != nil {
		return err
	}
	types := &tolerant{Resolver: def.Types}
	b, nulls, err := marshal(m, types, r.budget)
	if err != nil && !at.hidesNothing() { // the error text may quote a value
		return errors.New("a value has none")
	}
	if err != nil {
		return descriptor.PlainError(err)
	}
	root := place{spot: at, types: def.Types}
	root.describe(def.Desc)
	p := &jsonPrinter{jsonReader: jsonReader{src: b}, budget: r.budget, root: root}
	text, masked := p.print()
	r.doc.Masked = r.doc.Masked || masked
	switch {
	case p.err != nil:
		return p.err
	case p.over:
		return errors.New("indented it has more than " + deadletter.Bytes(maxJSON))
	}
	r.doc.JSON = text
	r.doc.withoutJSON = len(nulls) + len(types.missing)
	r.doc.noteNulls(nulls, !at.hidesNothing())
	for i, name := range types.missing {
		if !at.hidesNothing() { // a name in it may be masked
			r.doc.note("the JSON omits what an Any of a type that is not registered holds")
			break
		}
		if i == 0 || name != types.missing[i-1] {
			r.doc.note("the JSON omits what an Any of type " + name + " holds: it is not registered")
		}
	}
	return nil
}
