package payload

import (
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// A producer that is one deploy ahead of the schemas sends fields that its type does not have yet.
// Where all letters of a queue were of one type, a body that this type reads but for such fields is
// of it, and says which fields are new.

const (
	addedMost = 0.30           // share of the bytes that new fields may have
	driftBits = enoughBits - 8 // of evidence: as for a type that was there before
)

// drifted reports whether the type reads the body well but for fields of numbers that it does not
// have, beside its own: what is new inside of a field may as well be another kind of field.
func (e *evidence) drifted() bool {
	if e.unread == 0 || e.added != e.unread || float64(e.added) > addedMost*float64(e.bytes) {
		return false
	}
	known := *e
	known.unread = 0
	return known.score() >= matchedFrom && known.bits() >= driftBits
}

// drifted reports whether b is of the only type of its queue, or of the type that it matched
// before, but for new fields. Where a type knows all of b, nothing speaks for new fields.
func (r *reading) drifted(b []byte) bool {
	by := r.ranking(b)
	return by.drifted != "" && !by.whole && !by.Partial
}

// readDrifted fills the document when the body is of a type but for new fields.
func (r *reading) readDrifted() bool {
	doc := r.doc
	if !r.drifted(doc.Body) {
		return false
	}
	before := doc.Problem
	if !r.readProtobuf(r.candidate(r.ranking(doc.Body).drifted, "what the letters of its queue are", deadletter.ReadByMatch)) {
		doc.Problem = before
		return false
	}
	return true
}

// sayAdded notes which fields on the wire the type does not have, beside its own.
func (d *Document) sayAdded() {
	t := &wireTree{}
	if !t.read(d.Body, maxWireFields) {
		return
	}
	looks := map[int32]string{}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		if n := &t.nodes[i]; looks[n.num] == "" {
			looks[n.num] = n.looks(d.Masked)
		}
	}
	var list []string
	for i := range d.Fields {
		n := &d.Fields[i]
		if !n.Unknown {
			continue
		}
		if len(d.Added) == deadletter.MaxAdded {
			list = append(list, "…")
			break
		}
		d.Added = append(d.Added, deadletter.AddedField{Number: n.Number, Wire: n.Type})
		text := fmt.Sprintf("%d (%s", n.Number, n.Type)
		if is := looks[n.Number]; is != "" && is != n.Type {
			text += ", looks like " + is
		}
		list = append(list, text+")")
	}
	if len(d.Added) > 0 {
		d.note(fmt.Sprintf("fields that are not in the registered %s: %s. The producer may be ahead of the schemas", d.Type, strings.Join(list, ", ")))
	}
}
