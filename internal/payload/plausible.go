package payload

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// If a body is matched only by its form, its true type may be another one. Therefore, dlo also
// hides the bytes that other types would hide. It looks at every type that is equally likely, and
// at every type that knows all of the body.
//
// To hide these bytes, dlo makes additional rules. Each of them identifies a field by the numbers
// of the fields on the way from the top of the body. The tree, the JSON, the hex view, the search
// and the editor apply these rules like the configured ones.

// maximum number of rules that other types give for one body; if there are more, everything is
// hidden
const maxPlaces = 200

// guess is called for a body whose type was found only by its form, so that its true type may be
// another one. guess adds rules to the spot of this body. They hide the fields that other plausible
// types hide.
func (r *reading) guess(at spot, def *descriptor.Type) spot {
	if r.Mask == revealed || at.hidden {
		return at
	}
	doc := r.doc
	paths := slices.Clip(r.hints.hidden)
	by := r.ranking(doc.Body)
	if by.Left > 0 && r.mayHideFields() { // it is unknown what these types hide
		at.hidden = true
		return at
	}
	asked := maxVisits / max(1, int(min(by.fields, maxVisits)))
	var hidden []Range
	for _, other := range by.plausible {
		if other.Desc == def.Desc || !r.mayHide(other) {
			continue
		}
		if asked--; asked < 0 {
			at.hidden = true
			return at
		}
		rules := &masking{redacts: redacting(other.Types)}
		if r.Mask != nil && len(r.Mask.Fields) > 0 {
			rules.Mask = &Mask{Fields: r.Mask.Fields}
		}
		walk, any := hiddenFields(doc.Body, other, spot{m: rules, open: r.outer.open})
		if any {
			walk(len(doc.Body), func(from, to int) { hidden = append(hidden, Range{from, to}) })
		}
	}
	if len(hidden) > 0 {
		p := &places{whole: cap(doc.Body), types: def.Types, hidden: mergeRanges(hidden)}
		p.message(doc.Body, def.Desc, nil)
		for _, path := range p.paths {
			if !slices.ContainsFunc(paths, func(old deadletter.FieldPath) bool { return slices.Equal(old, path) }) {
				paths = append(paths, path)
			}
		}
	}
	doc.plausible = paths
	if len(paths) > maxPlaces || len(paths) > 0 && hasSpecialForm(def.Desc) {
		at.hidden = true
		return at
	}
	at.open = append(slices.Clip(at.open), paths...)
	return at
}

// mayHideFields reports whether any field of messages may be hidden.
func (d *Decoder) mayHideFields() bool {
	return d.Mask != revealed && (d.Mask != nil && len(d.Mask.Fields) > 0 || d.Types.AnyVersion(redacting))
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
		return first[0] >= '0' && first[0] <= '9' || fields.ByName(protoreflect.Name(first)) != nil ||
			fields.ByJSONName(first) != nil
	})
}

// mergeRanges sorts ranges, and joins those that touch each other.
func mergeRanges(list []Range) []Range {
	slices.SortFunc(list, func(a, b Range) int { return a.From - b.From })
	out := list[:1]
	for _, r := range list[1:] {
		if last := &out[len(out)-1]; r.From <= last.To {
			last.To = max(last.To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// places finds the fields of a body that contain hidden bytes.
type places struct {
	whole  int // capacity of the slice of the whole body, as in hiding
	types  *descriptor.Resolver
	hidden []Range // sorted, and without ranges that touch each other
	paths  []deadletter.FieldPath
	seen   map[string]bool
}

// hiddenIn looks at a part of the body. The result "some" is true if any of its bytes are hidden,
// and the result "all" is true if all of them are hidden.
func (p *places) hiddenIn(from, to int) (some, all bool) {
	i, _ := slices.BinarySearchFunc(p.hidden, from, func(r Range, from int) int {
		if r.To <= from {
			return -1
		}
		return 1
	})
	if i == len(p.hidden) || p.hidden[i].From >= to {
		return false, false
	}
	return true, p.hidden[i].From <= from && p.hidden[i].To >= to
}

// message reads the well-formed bytes of a message, and reports whether it found a hidden field.
// The parameter "parent" is the path of field numbers to the message.
func (p *places) message(b []byte, md protoreflect.MessageDescriptor, parent deadletter.FieldPath) bool {
	found := false
	for len(b) > 0 && len(p.paths) <= maxPlaces {
		num, typ, n := protowire.ConsumeTag(b)
		m := protowire.ConsumeFieldValue(num, typ, b[max(n, 0):])
		if n < 0 || m < 0 {
			return found
		}
		from := p.whole - cap(b) + n
		value := b[n : n+m]
		b = b[n+m:]
		some, all := p.hiddenIn(from, from+m)
		if !some {
			continue
		}
		found = true
		here := append(slices.Clip(parent), strconv.Itoa(int(num)))
		fd := p.types.Field(md, num)
		if content, _ := protowire.ConsumeBytes(value); typ == protowire.BytesType && !all && fd != nil && fd.Kind() == protoreflect.MessageKind && !fd.IsMap() && !hasSpecialForm(fd.Message()) {
			start := p.whole - cap(content)
			if _, all := p.hiddenIn(start, start+len(content)); !all && p.message(content, fd.Message(), here) {
				continue
			}
		}
		if key := strings.Join(here, "."); !p.seen[key] {
			if p.seen == nil {
				p.seen = make(map[string]bool)
			}
			p.seen[key] = true
			p.paths = append(p.paths, here)
		}
	}
	return found
}
