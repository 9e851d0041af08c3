package payload

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// spot is a place in a body as masks see it. Everything that shows or walks a body carries one
// down: tree, JSON, hex and the view of the wire hide the same.
type spot struct {
	m      *masking
	hidden bool                   // with all below it
	open   []deadletter.FieldPath // what is left of the rules that began above; shared, never written to
}

// masking is what hides in one body.
type masking struct {
	*Mask
	redacts bool                                     // a field of its types has debug_redact
	others  []*descriptor.Resolver                   // of other definitions of the type: what they redact is hidden too
	begun   map[protoreflect.MessageDescriptor]begun // of the types so far
}

// rootSpot is the spot of the body as it is now; defs are the definitions of the type that it is
// read as, the one that counts first.
func (r *reading) rootSpot(defs ...*descriptor.Type) spot {
	return spot{m: newMasking(r.Mask, defs...), hidden: r.outer.hidden, open: r.outer.open}
}

func newMasking(mask *Mask, defs ...*descriptor.Type) *masking {
	m := &masking{}
	if mask == revealed {
		return m
	}
	if mask.hides() {
		m.Mask = mask
	}
	for i, d := range defs {
		if redacting(d.Types) {
			m.redacts = true
			if i > 0 && !slices.Contains(m.others, d.Types) {
				m.others = append(m.others, d.Types)
			}
		}
	}
	return m
}

// fresh is s with a memory of its own: documents may be shown concurrently.
func (s spot) fresh() spot {
	s.m = &masking{Mask: s.m.Mask, redacts: s.m.redacts, others: s.m.others}
	return s
}

// idle says whether nothing can be hidden here or below.
func (s spot) idle() bool { return !s.hidden && len(s.open) == 0 && s.m.Mask == nil && !s.m.redacts }

// apply returns what is shown of a value here.
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

// in is the spot inside of a message of a type.
func (s spot) in(md protoreflect.MessageDescriptor) spot {
	if s.hidden || s.m.Mask == nil || len(s.m.Fields) == 0 {
		return s
	}
	b, ok := s.m.begun[md]
	if !ok {
		if s.m.begun == nil {
			s.m.begun = make(map[protoreflect.MessageDescriptor]begun)
		}
		b = s.m.begin(string(md.FullName()))
		s.m.begun[md] = b
	}
	s.hidden = b.all
	if len(b.paths) > 0 {
		s.open = append(slices.Clip(s.open), b.paths...)
	}
	return s
}

// field is the spot of a field of the message that s is in. The fields of types that are shown as
// one value add nothing to a path.
func (s spot) field(fd protoreflect.FieldDescriptor) spot {
	switch {
	case s.hidden:
	case s.m.redacts && s.redacted(fd):
		s.hidden = true
	case len(s.open) == 0 || unwraps(fd):
	default:
		return s.to(string(fd.Name()), fd.JSONName(), int32(fd.Number()))
	}
	return s
}

// redacted reports whether a field has debug_redact, here or in another definition of its type.
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

// member is the spot of a member of a JSON object outside of any schema.
func (s spot) member(name string) spot { return s.to(name, name, 0) }

// entry is the spot of an entry of a map: rules may name its key, or pass it over as they do with
// elements. The members of a google.protobuf.Struct are only named.
func (s spot) entry(fd protoreflect.FieldDescriptor, key string) spot {
	next := s.to(key, key, 0)
	if !next.hidden && len(s.open) > 0 && !unwraps(fd) {
		next.open = append(slices.Clip(next.open), s.open...)
	}
	return next
}

// unknown is the spot of a field that the type does not know, or not with that wire type. Nobody
// can say what is in it, so a rule that leads into it hides all of it.
func (s spot) unknown(fd protoreflect.FieldDescriptor, num int32) spot {
	if s.hidden {
		return s
	}
	if s.m.Mask != nil && s.m.numbered() {
		s.hidden = true
		return s
	}
	if fd != nil {
		s = s.field(fd)
	} else {
		s = s.to("", "", num)
	}
	s.hidden = s.hidden || len(s.open) > 0
	return s
}

// content is the spot of what a google.protobuf.Any holds; s is in the Any. Rules may name its
// field value, or pass it over.
func (s spot) content(md protoreflect.MessageDescriptor) spot {
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

// unread is the spot inside of a google.protobuf.Any whose content cannot be read; md is the type
// that it names, nil when that is not registered. With rules for fields it may be anything, so all
// of it is hidden; debug_redact says something of known types only.
func (s spot) unread(md protoreflect.MessageDescriptor) spot {
	s.hidden = s.hidden || s.m.Mask != nil && len(s.m.Fields) > 0 || s.m.redacts && md != nil
	return s
}

// to goes where a name leads: a rule may say it as the schema does, as JSON does, or by its number.
func (s spot) to(name, json string, number int32) spot {
	if s.hidden || len(s.open) == 0 {
		return s
	}
	open := s.open
	s.open = nil
	for _, path := range open {
		if at := path[0]; at != name && at != json && (number == 0 || at != strconv.Itoa(int(number))) {
			continue
		}
		if len(path) == 1 {
			s.hidden, s.open = true, nil
			return s
		}
		s.open = append(s.open, path[1:])
	}
	return s
}
