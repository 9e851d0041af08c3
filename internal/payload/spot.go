package payload

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// spot is a position in a body, with the masks that apply there. All code that shows or reads a
// body uses spots, so that the tree, the JSON, the bytes and the wire view hide the same values.
type spot struct {
	m      *masking
	hidden bool                   // this value and everything below it is hidden
	open   []deadletter.FieldPath // the remaining paths of rules that began further up; shared, so never modified
	into   bool                   // one of these rules began before this value, and leads into it
}

// masking holds everything that is hidden in one body.
type masking struct {
	*Mask
	redacts bool // a field of the body's types has debug_redact
	masked  bool // a mask applies to a field of the body's type, so all that the type does not know is hidden
	// fields whose type is missing in the set are hidden, because something in them may have to be
	lacks bool
	// other definitions of the type, whose debug_redact fields are hidden too
	others []*descriptor.Resolver
	begun  map[protoreflect.MessageDescriptor]typeRules // the rules for the types that were seen so far
	// type URLs of Anys whose content is hidden, because another definition of the type hides more
	// of it than the one that is used
	concealed []string
}

type lackingKey struct{}

// rootSpot returns the spot of the whole current body, with the masks that apply to it. The
// parameter "defs" holds the definitions of the body's type, the one in use first.
func (r *reading) rootSpot(defs ...*descriptor.Type) spot {
	m := &masking{}
	at := spot{m: m, hidden: r.outer.hidden, open: r.outer.open, into: r.outer.into}
	if r.Mask == revealed {
		return at
	}
	if r.Mask.hides() {
		m.Mask = r.Mask
	}
	for i, d := range defs {
		m.redacts = m.redacts || redacting(d.Types) || anyRedacts(d)
		if i > 0 {
			m.addOther(d.Types)
		}
	}
	if r.mayHideFields() {
		m.masked = (m.redacts || m.Mask != nil) && slices.ContainsFunc(defs, r.mayHide)
		m.lacks = r.Types.AnyVersion(lackingKey{}, func(t *descriptor.Resolver) bool { return t.Lacks })
	}
	return at
}

// addOther adds a version of a set that may define the fields of a body differently.
func (m *masking) addOther(t *descriptor.Resolver) {
	if redacting(t) && !slices.Contains(m.others, t) {
		m.others = append(slices.Clip(m.others), t)
	}
}

// hidesNothing reports whether nothing can be hidden at this spot or below it.
func (s spot) hidesNothing() bool {
	return !s.hidden && len(s.open) == 0 && s.m.Mask == nil && !s.m.redacts && !s.m.lacks
}

// apply returns the value at this spot in the form in which it may be shown, and whether anything
// in it is masked.
func (s spot) apply(value string) (string, bool) {
	if s.hidden {
		return Masked, true
	}
	if s.m.Mask == nil || s.m.Text == nil {
		return value, false
	}
	shown, masked := s.m.Text(value)
	if !masked {
		return value, false
	}
	return shown, true
}

// text returns the spot of a text of n bytes. A text may itself be JSON or a message, so all of it
// is hidden if a rule leads further into it.
func (s spot) text(n int) spot {
	s.hidden = s.hidden || s.into && n > 0
	return s
}

// inside returns the spot of the content of a message. The message is at the spot s and has the
// type md.
func (s spot) inside(md protoreflect.MessageDescriptor) spot {
	if s.hidden || s.m.Mask == nil || len(s.m.Fields) == 0 {
		return s
	}
	b, ok := s.m.begun[md]
	if !ok {
		if s.m.begun == nil {
			s.m.begun = make(map[protoreflect.MessageDescriptor]typeRules)
		}
		b = s.m.rulesFor(string(md.FullName()))
		s.m.begun[md] = b
	}
	s.hidden = b.all
	if len(b.paths) > 0 {
		s.open = append(slices.Clip(s.open), b.paths...)
	}
	return s
}

// field returns the spot of a field. The spot s is the spot of the content of the message that has
// the field. Some messages, such as google.protobuf.StringValue, are shown as a single value. The
// field of such a message does not occur in paths, so its spot has the path of the message.
func (s spot) field(fd protoreflect.FieldDescriptor) spot {
	switch {
	case s.hidden:
	case s.m.redacts && s.redacted(fd), s.m.lacks && descriptor.Unresolved(fd):
		s.hidden = true
	case len(s.open) == 0 || isUnwrapped(fd):
	default:
		return s.follow(string(fd.Name()), fd.JSONName(), int32(fd.Number()))
	}
	return s
}

// redacted reports whether a field has debug_redact in this or another definition of its type.
func (s spot) redacted(fd protoreflect.FieldDescriptor) bool {
	if descriptor.Redacted(fd) {
		return true
	}
	for _, t := range s.m.others {
		if md := t.Message(fd.ContainingMessage().FullName()); md != nil {
			if other := t.Field(md, fd.Number()); other != nil && descriptor.Redacted(other) {
				return true
			}
		}
	}
	return false
}

// member returns the spot of a member of a JSON object for which there is no schema.
func (s spot) member(name string) spot { return s.follow(name, name, 0) }

// entry returns the spot of a map entry. In a rule of the mask, a path may contain the key of the
// entry or omit it, just as it may omit the index of a list element. In a google.protobuf.Struct,
// however, the path must contain the name of the member.
func (s spot) entry(fd protoreflect.FieldDescriptor, key string) spot {
	next := s.follow(key, key, 0)
	if !next.hidden && len(s.open) > 0 && !isUnwrapped(fd) {
		next.open = append(slices.Clip(next.open), s.open...)
	}
	return next
}

// unknownField returns the spot of a field that the type does not know, or knows only with another
// wire type. Nobody can tell what the field contains, so it is hidden if anything in the body is: a
// message that is read as another one has its values in unknown fields.
func (s spot) unknownField(fd protoreflect.FieldDescriptor, num int32) spot {
	s.hidden = s.hidden || s.m.masked || s.m.Mask != nil && s.m.usesNumbers()
	if s.hidden {
		return s
	}
	if fd != nil {
		s = s.field(fd)
	} else {
		s = s.follow("", "", num)
	}
	s.hidden = s.hidden || len(s.open) > 0
	return s
}

// withoutUnknown returns the spot for another definition of the type. Fields that only this one
// does not know are shown.
func (s spot) withoutUnknown() spot {
	m := *s.m
	m.masked = false
	s.m = &m
	return s
}

// content returns the spot of the content of a google.protobuf.Any. A spot is a position in a body,
// with the masks that apply there. The parameter s is the spot of the Any's fields. The path of a
// rule may contain the Any's field "value", or omit it. The parameter "defs" holds the definitions
// of the content's type, the one in use first.
func (s spot) content(md protoreflect.MessageDescriptor, url string, defs []*descriptor.Type) spot {
	s.hidden = s.hidden || slices.Contains(s.m.concealed, url)
	if s.m.redacts {
		inner := *s.m
		for _, def := range defs {
			inner.addOther(def.Types)
		}
		s.m = &inner
	}
	fd := md.Fields().ByNumber(2)
	if fd == nil {
		return s
	}
	v := s.field(fd)
	if !v.hidden && len(s.open) > 0 {
		v.open = append(slices.Clip(v.open), s.open...)
	}
	return v
}

// unreadAny returns the spot of the fields of a google.protobuf.Any whose content cannot be
// decoded. The parameter "md" is the type that the Any names, or nil if this type is not
// registered. If the mask has rules for fields, the whole Any is hidden, because its content may be
// anything. If fields are hidden only by debug_redact, the Any is hidden only if its type is known.
func (s spot) unreadAny(md protoreflect.MessageDescriptor) spot {
	s.hidden = s.hidden || s.m.Mask != nil && len(s.m.Fields) > 0 || s.m.redacts && md != nil
	return s
}

// follow returns the spot of the field or member with the given name. The path of a rule may name a
// field by its name in the schema, by its JSON name or by its number. Without a schema, a rule with
// one of the two names hides both.
func (s spot) follow(name, json string, number int32) spot {
	if s.hidden || len(s.open) == 0 {
		return s
	}
	open := s.open
	s.open, s.into = nil, false
	for _, path := range open {
		at := path[0]
		named := at == name || at == json || number != 0 && at == strconv.Itoa(int(number))
		// a field whose JSON name is its name in the schema may have had another JSON name
		if !named && (number != 0 && name != json || name == "" || !deadletter.SameName(at, name)) {
			continue
		}
		if len(path) == 1 {
			s.hidden, s.open = true, nil
			return s
		}
		s.open, s.into = append(s.open, path[1:]), true
	}
	return s
}
