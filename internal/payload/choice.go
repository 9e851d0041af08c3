package payload

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Binding ties queues to a type, from the configuration or by a person.
type Binding struct {
	Queue string // glob on the origin queue
	Key   string // glob on the routing key; "" is any
	Type  string // full name of a message type
}

// Fits says whether letters of a queue and routing key are bound.
func (b Binding) Fits(queue, key string) bool {
	return deadletter.Glob(b.Queue, queue, true) && (b.Key == "" || deadletter.Glob(b.Key, key, true))
}

// The sources of a type name, as pages say them.
const (
	sourceContentType = "the content type"
	sourceProperty    = "the type property"
	sourcePick        = "a person's pick"
)

// namedType is a name of a type, and where it stands, as pages say it: "the type of the
// CloudEvent".
type namedType struct{ name, source string }

// candidate is one type that a letter or a binding names.
type candidate struct {
	name   string // made visible: the full name where it is known
	told   string // name, as masks leave it
	source string // "the content type", "the type property", "the binding of email-queue"
	by     deadletter.Reading
	final  bool // the name is surely a protobuf type's: when it cannot be used, no later source may replace it
	defs   []*descriptor.Type
	others bool   // the name belongs to several types
	why    string // when there is no definition: "is not registered", "is ambiguous: A, B"
}

// candidates returns the types that are named for a letter, in the order in which they are tried:
// what a person picked, a parameter of the content type, the type property, the first binding that
// fits.
//
// A name that cannot be used is not skipped silently. One of the content type, or one that is
// written as a protobuf type URL, ends the list: the letter says what it is, so what a binding says
// instead would be a confident wrong answer. A type property that no registered type has may as
// well be the publisher's own word ("user.created"), so a binding is still tried, and the document
// says both.
//
// Inside an envelope, the names that it gives of the data come next to the content type of the
// data. They are the publisher's own words more often than not, so they are candidates only when a
// registered type has the name or the data is said to be protobuf.
//
// Matching a body against all registered types has its place at the end of this list, when no name
// ends it: reading.matched.
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
	if h.Type != "" {
		c := d.candidate(h.Type, sourceProperty, deadletter.ReadByProperty)
		c.hide(d.Mask, "type", h.Type, h.Type)
		c.final = len(c.defs) > 0 || strings.HasPrefix(h.Type, "type.googleapis.com/")
		list = append(list, c)
		if c.final {
			return list
		}
	}
	for _, b := range d.Bindings {
		if b.Type != "" && b.Fits(h.Queue, h.Key) {
			c := d.candidate(b.Type, "the binding of "+visible(b.Queue, ""), deadletter.ReadByBinding)
			c.final = true
			return append(list, c)
		}
	}
	return list
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
	c.told = d.Mask.said(c.name)
	return c
}

// hide leaves out of what is told a name that is masked in its property. The name of a registered
// type is told: it is that of the schema.
func (c *candidate) hide(m *Mask, property, value, name string) {
	if len(c.defs) == 0 && m.told(property, value, name) != name {
		c.told = Masked
	}
}
