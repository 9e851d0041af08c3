package payload

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// place is the position of a value in JSON. Its spot says what is hidden at this position. If the
// JSON is that of a message, the other fields hold what the schema says about the value. Without a
// schema, only the spot is used.
type place struct {
	spot
	md     protoreflect.MessageDescriptor // type of the object at this place
	values protoreflect.FieldDescriptor   // the map field, if the object is a map
	bytes  bool                           // strings at this place are base64
	types  *descriptor.Resolver
	any    protoreflect.MessageDescriptor // the type google.protobuf.Any; md follows from the "@type" of the object
	object bool                           // the schema has an object or a list here, and no text
	top    bool                           // the rules for JSON bodies begin here
	inside *insides                       // finds messages in texts; nil = there are none
	path   *memberPath                    // for inside: the members that lead here; nil = the whole body
	also   []place                        // this place by other definitions of the type, which may hide more
}

// rootOfJSON returns the place of a JSON body. If the letter names a registered type, the body may
// be the JSON of a message of that type. It is then masked like such a message.
func (r *reading) rootOfJSON() place {
	p := place{}
	for _, c := range r.named {
		if len(c.defs) > 0 {
			for _, def := range c.defs[:min(len(c.defs), descriptor.MaxDefinitions)] {
				by := place{spot: r.rootSpot(c.defs...), types: def.Types}
				by.json()
				by.describe(def.Desc)
				p.also = append(p.also, by)
			}
			p, p.also = p.also[0], p.also[1:]
			return p
		}
	}
	p.spot = r.rootSpot()
	p.json()
	return p
}

// json adds the rules for JSON bodies to the rules that apply at this place and below it.
func (p *place) json() {
	if !p.hidden && p.m.Mask != nil && len(p.m.JSON) > 0 {
		p.open, p.top = append(slices.Clip(p.open), p.m.JSON...), true
	}
}

// text returns the spot of a text or number at this place. If the text may be the JSON of a message
// or of a body that may hide something, nobody can know what in it is hidden, so all of it is.
func (p place) text(text string) spot {
	s := p.spot.text(len(text))
	s.hidden = s.hidden || text != "" && p.object && (s.m.redacts || s.m.Mask != nil && len(s.m.Fields) > 0) ||
		p.top && beginsAsJSON([]byte(text))
	return s
}

// nameSpot returns the spot of the name of a member. Names that the schema has are not values.
func (p *place) nameSpot(name string) spot {
	if p.md != nil && p.types.FieldNamed(p.md, name) != nil {
		return spot{m: &masking{}}
	}
	return p.spot
}

// enter returns the place of the member with the given name. The reader r must be just before the
// value of this member.
func (p *place) enter(name string, r *jsonReader) place {
	inner := p.member(name)
	if p.inside != nil {
		inner.inside, inner.path = p.inside, &memberPath{p.path, name}
	}
	if p.any == nil || p.md != nil || p.hidden {
		return inner
	}
	if name != "@type" { // "@type" comes after this member, or not at all
		p.spot = p.spot.unreadAny(p.any)
		inner.hidden = inner.hidden || p.hidden
		return inner
	}
	var url string
	if r.peek() == '"' {
		mark := r.at
		url = unquoteJSON(r.token())
		r.at = mark
	}
	defs := p.types.AnyContent(url)
	if len(defs) == 0 {
		p.spot = p.spot.unreadAny(nil)
		return inner
	}
	also := slices.DeleteFunc(slices.Clone(p.also), func(o place) bool { return o.any != nil })
	at := p.spot.content(p.any, url, defs)
	for _, def := range defs[1:] {
		by := *p
		by.md, by.types, by.spot, by.also = def.Desc, def.Types, at.inside(def.Desc), nil
		also = append(also, by)
	}
	p.md, p.types, p.spot, p.also = defs[0].Desc, defs[0].Types, at.inside(defs[0].Desc), also
	return inner
}

// member returns the place of the member with the given name.
func (p *place) member(name string) place {
	in := p.memberByType(name)
	for i := range p.also {
		by := p.also[i].member(name)
		in.object = in.object || by.object
		in.hidden = in.hidden || by.hidden || by.any != nil && in.any == nil && by.unreadAny(by.any).hidden
		in.also = append(in.also, by)
	}
	return in
}

// memberByType returns the place of a member by the definition of the type that is used.
func (p *place) memberByType(name string) place {
	plain := place{spot: p.spot.member(name), types: p.types}
	switch {
	case p.values != nil:
		in := place{spot: p.spot.entry(p.values, name), types: p.types}
		in.value(p.values.MapValue())
		return in
	case p.any != nil && name == "@type":
		if fd := p.any.Fields().ByNumber(1); fd != nil {
			plain.spot = p.spot.field(fd)
		}
	case p.any != nil && p.md != nil && hasSpecialForm(p.md) && name == "value":
		// JSON writes this type as a single value
		in := place{spot: p.spot, types: p.types}
		in.describe(p.md)
		return in
	case p.md != nil:
		if fd := p.types.FieldNamed(p.md, name); fd != nil {
			in := place{spot: p.spot.field(fd), types: p.types}
			in.spot.open = append(slices.Clip(in.spot.open), plain.spot.open...)
			in.spot.hidden, in.spot.into = in.spot.hidden || plain.spot.hidden, in.spot.into || plain.spot.into
			in.value(fd)
			return in
		}
		if p.m.redacts || p.m.Mask != nil && len(p.m.Fields) > 0 { // the type does not know this field
			plain.spot.hidden = plain.spot.hidden || len(plain.spot.open) > 0
		}
	}
	return plain
}

// value records that the place holds a value of the field fd, which may be in a list.
func (p *place) value(fd protoreflect.FieldDescriptor) {
	if fd.IsMap() {
		p.values, p.object = fd, true
		return
	}
	p.bytes = fd.Kind() == protoreflect.BytesKind
	p.into = p.into && (p.bytes || fd.Kind() == protoreflect.StringKind || fd.Message() != nil)
	if md := fd.Message(); md != nil {
		p.describe(md)
	}
}

// describe records that the place holds messages of the given type.
func (p *place) describe(md protoreflect.MessageDescriptor) {
	p.spot = p.spot.inside(md)
	switch name := md.FullName(); {
	case name == "google.protobuf.Any":
		p.any, p.object = md, true
	case name == "google.protobuf.BytesValue":
		p.bytes = true
	case !hasSpecialForm(md):
		p.md, p.object = md, true
	case name == "google.protobuf.Struct", name == "google.protobuf.ListValue":
		p.object = true
	case !mayHoldText(md):
		p.into = false
	}
}
