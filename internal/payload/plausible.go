package payload

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// guess is called for a body whose type was found only by its form, so that its true type may be
// another one. If a type that is equally likely, or that knows all of the body, hides any bytes
// that this type shows, guess hides the whole body.
func (r *reading) guess(at spot, def *descriptor.Type) spot {
	if r.Mask != revealed && !at.hidden {
		at.hidden = r.hints.hidden || r.othersHide(at, def)
		r.doc.doubtful = at.hidden
	}
	return at
}

// othersHide reports whether a type that is equally likely, or that knows all of the body, hides
// any bytes that the type "def" shows.
func (r *reading) othersHide(at spot, def *descriptor.Type) bool {
	body := r.doc.Body
	by := r.ranking(body)
	if by.Left > 0 && r.mayHideFields() { // it is unknown what these types hide
		return true
	}
	own := hiddenBytes(body, def, at)
	asked := maxVisits / max(1, int(min(by.fields, maxVisits)))
	for _, other := range by.plausible {
		if other.Desc == def.Desc || !r.mayHide(other) {
			continue
		}
		if asked--; asked < 0 {
			return true
		}
		rules := &masking{redacts: redacting(other.Types)}
		if r.Mask != nil && len(r.Mask.Fields) > 0 {
			rules.Mask = &Mask{Fields: r.Mask.Fields}
		}
		if hidesMore(body, own, other, spot{m: rules, open: r.outer.open}) {
			return true
		}
	}
	return false
}

// definitionsHide reports whether another definition of the type, which knows as much of the body
// as "def" does, hides any bytes that "def" shows.
func (r *reading) definitionsHide(at spot, def *descriptor.Type, s *descriptor.Scan, defs []*descriptor.Type) bool {
	if len(defs) < 2 || at.hidesNothing() {
		return false
	}
	body := r.doc.Body
	own := hiddenBytes(body, def, at)
	return slices.ContainsFunc(defs[:min(len(defs), descriptor.MaxDefinitions)], func(o *descriptor.Type) bool {
		other, err := r.scan(body, o)
		return o.Desc != def.Desc && err == nil && other.UnknownBytes <= s.UnknownBytes && hidesMore(body, own, o, at)
	})
}

// hiddenBytes returns which bytes of a message are hidden.
func hiddenBytes(body []byte, def *descriptor.Type, at spot) []bool {
	own := make([]bool, len(body))
	hiddenFields(body, def, at, func(from, to int) {
		for i := from; i < to; i++ {
			own[i] = true
		}
	})
	return own
}

// hidesMore reports whether a type hides any bytes of a body that are not among the given ones.
func hidesMore(body []byte, own []bool, other *descriptor.Type, at spot) (more bool) {
	hiddenFields(body, other, at.withoutUnknown(), func(from, to int) { more = more || slices.Contains(own[from:to], false) })
	return more
}

// mayHideFields reports whether any field of messages may be hidden.
func (d *Decoder) mayHideFields() bool {
	return d.Mask != revealed && (d.Mask != nil && len(d.Mask.Fields) > 0 || d.Types.AnyVersion(redactingKey{}, redacting))
}

// mayHide reports whether a body of the given type may contain hidden fields.
func (r *reading) mayHide(d *descriptor.Type) bool {
	if redacts(d) {
		return true
	}
	if r.Mask == nil || len(r.Mask.Fields) == 0 {
		return false
	}
	if len(r.outer.open) > 0 {
		return true
	}
	key := namerKey{r.Mask, d.Desc.FullName()}
	return d.Types.Memo(key, func() any { return r.Mask.appliesTo(d.Desc, map[protoreflect.FullName]bool{}) }).(bool)
}

// namerKey is the key under which the results of Mask.appliesTo are cached.
type namerKey struct {
	mask *Mask
	name protoreflect.FullName
}

// appliesTo reports whether a rule applies to a field of a message type, at any depth.
func (m *Mask) appliesTo(md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	name := md.FullName()
	if seen[name] {
		return false
	}
	seen[name] = true
	if name == "google.protobuf.Any" || md.ExtensionRanges().Len() > 0 || m.rulesFor(string(name)).mayMatch(md) {
		return true
	}
	for i := range md.Fields().Len() {
		if inner := md.Fields().Get(i).Message(); inner != nil && m.appliesTo(inner, seen) {
			return true
		}
	}
	return false
}

// mayMatch reports whether the rules of a type may apply to one of its fields.
func (b typeRules) mayMatch(md protoreflect.MessageDescriptor) bool {
	return b.all || slices.ContainsFunc(b.paths, func(path deadletter.FieldPath) bool {
		first := path[0]
		fields := md.Fields()
		for i := range fields.Len() {
			if deadletter.SameName(first, string(fields.Get(i).Name())) {
				return true
			}
		}
		return first[0] >= '0' && first[0] <= '9' || fields.ByJSONName(first) != nil
	})
}
