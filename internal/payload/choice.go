package payload

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// These constants name places from which dlo can take the name of a body's type. Pages show them to
// people.
const (
	sourceContentType = "the content type"
	sourceProperty    = "the type property"
	sourcePick        = "a person's pick"
)

// namedType is the name of a type and the source of this name, as pages show it: "the type of the
// CloudEvent".
type namedType struct{ name, source string }

// candidate is a type that the body of a letter may have, because the letter or a binding names
// this type.
type candidate struct {
	name   string // safe to print; the full name if the type is known
	told   string // the name after masking
	source string // for example "the content type", "the type property", "the binding of email-queue"
	by     deadletter.Reading
	final  bool // the name is certainly that of a protobuf type; if it cannot be used, no later source may replace it
	defs   []*descriptor.Type
	others bool   // several types have this name
	why    string // if there is no definition, the reason: "is not registered", "is ambiguous: A, B"
}

// candidates returns the types that are named for a letter, in the order in which they are tried:
// the type that a person picked, a parameter of the content type, the type property, a header, and
// the first binding that matches.
//
// A name that cannot be used is never skipped silently. If such a name comes from the content type
// or is written as a protobuf type URL, no later source is tried. The letter states its type, so
// the type of a binding would be a wrong answer that looks certain. A type property that matches no
// registered type may be the publisher's own word ("user.created"). In that case a binding is still
// tried, and the document mentions both.
//
// Inside an envelope, the content type of the data is tried first, and then the names that the
// envelope gives for the data. These names are usually the publisher's own words. They are
// therefore candidates only if a registered type has the name, or if the data is declared as
// protobuf.
//
// If no name can be used, the body is matched against all registered types: see reading.matched.
func (d *Decoder) candidates(h Hints, inside []namedType) []candidate {
	var list []candidate
	if h.Picked != "" {
		c := d.candidate(h.Picked, sourcePick, deadletter.ReadByPick)
		c.final = true
		return append(list, c)
	}
	media, params := mediaType(h.ContentType)
	for _, p := range []string{"messagetype", "proto", "type"} {
		if name := params[p]; name != "" && (p != "type" || isProtobuf(media) || strings.Contains(name, ".")) {
			c := d.candidate(name, sourceContentType, deadletter.ReadByContentType)
			c.hide(d.Mask, "content-type", h.ContentType, name)
			c.final = true
			return append(list, c)
		}
	}
	for _, n := range inside {
		if n.name == "" {
			continue
		}
		c := d.candidate(n.name, n.source, deadletter.ReadByEnvelope)
		if c.final = len(c.defs) > 0; c.final || isProtobuf(media) {
			list = append(list, c)
		}
		if c.final {
			return list
		}
	}
	if h.Type != "" && h.Type != amqpType {
		c := d.candidate(h.Type, sourceProperty, deadletter.ReadByProperty)
		c.hide(d.Mask, "type", h.Type, h.Type)
		c.final = len(c.defs) > 0 || strings.HasPrefix(h.Type, "type.googleapis.com/")
		list = append(list, c)
		if c.final {
			return list
		}
	}
	if name, typ := d.typeHeader(h.Headers); typ != "" {
		c := d.candidate(typ, "the header "+visible(name, ""), deadletter.ReadByHeader)
		c.hide(d.Mask, name, typ, typ)
		c.final = true
		return append(list, c)
	}
	for _, b := range d.Bindings {
		if b.Type != "" && b.Fits(h.Queue, h.Key) && b.Path == h.Path {
			c := d.candidate(b.Type, "the binding of "+visible(b.Queue, ""), deadletter.ReadByBinding)
			c.final = true
			return append(list, c)
		}
	}
	return list
}

// typeHeader returns the first header that has the full name of a registered type, and this name.
// Headers with other words are ignored, because their names are common words.
func (d *Decoder) typeHeader(headers deadletter.Table) (name, typ string) {
	for _, wanted := range d.TypeHeaders {
		for header, value := range headers {
			text, ok := value.(string)
			if !ok || !strings.EqualFold(header, wanted) || name != "" && header > name { // always the same one
				continue
			}
			defs, _ := d.Types.Lookup(text)
			if len(defs) > 0 && string(defs[0].Desc.FullName()) == descriptor.TypeName(text) {
				name, typ = header, text
			}
		}
		if typ != "" {
			break
		}
	}
	return name, typ
}

func (d *Decoder) candidate(name, source string, by deadletter.Reading) candidate {
	c := candidate{source: source, by: by}
	defs, others := d.Types.Lookup(name)
	switch {
	case len(others) > 0:
		c.others = true
		c.why = "is ambiguous: " + strings.Join(others, ", ")
	case len(defs) == 0:
		c.why = "is not registered"
	}
	c.defs = defs
	c.name, _ = cut(visible(descriptor.TypeName(name), ""), 200)
	if len(defs) > 0 {
		c.name = string(defs[0].Desc.FullName())
	}
	c.told = d.Mask.maskedText(c.name)
	return c
}

// hide masks the name of a candidate in texts for people, if the name comes from a masked property
// or header. A body that is of the type still shows it.
func (c *candidate) hide(m *Mask, property, value, name string) {
	if m.maskedPart(property, value, name) != name {
		c.told = Masked
	}
	if c.told != c.name && c.others {
		c.why = "is ambiguous"
	}
}
