package payload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// A producer that is one deploy ahead of the schemas sends fields that its type does not have yet.
// Where all letters of a queue were of one type, a body that this type reads but for such fields is
// of it, and says which fields are new.

const (
	maxWires  = 64             // new fields of one body that are looked at
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

// drifted reports whether b is of the only type of its queue but for new fields.
func (r *reading) drifted(b []byte) bool { return r.ranking(b).drifted }

// readDrifted fills the document when the body is of the only type of its queue but for new fields.
// That counts more than a type that knows all of the body: among thousands of types one often does
// by chance.
func (r *reading) readDrifted() bool {
	doc := r.doc
	if !r.drifted(doc.Body) {
		return false
	}
	before := doc.Problem
	if r.readProtobuf(r.candidate(r.hints.Only, "what the letters of its queue are", deadletter.ReadByMatch)) {
		return true
	}
	doc.Problem = before
	return false
}

// sayAdded notes which fields on the wire the type does not have, beside its own.
func (d *Document) sayAdded(def *descriptor.Type) {
	wires := map[protowire.Number]protowire.Type{}
	for b := d.Body; len(b) > 0; {
		num, wire, n := protowire.ConsumeField(b)
		if n < 0 {
			break // it was decoded, so this does not happen
		}
		if len(wires) < maxWires && def.Types.Field(def.Desc, num) == nil {
			wires[num] = wire
		}
		b = b[n:]
	}
	if len(wires) == 0 {
		return
	}
	looks := d.looks()
	var list []string
	for _, num := range slices.Sorted(maps.Keys(wires)) {
		if len(d.Added) == deadletter.MaxAdded {
			list = append(list, "…")
			break
		}
		wire := wireName(wires[num])
		d.Added = append(d.Added, deadletter.AddedField{Number: int32(num), Wire: wire})
		text := fmt.Sprintf("%d (%s", num, wire)
		if is := looks[int32(num)]; is != "" && is != wire {
			text += ", looks like " + is
		}
		list = append(list, text+")")
	}
	d.note(fmt.Sprintf("fields that are not in the registered %s: %s. The producer may be ahead of the schemas", d.Type, strings.Join(list, ", ")))
}

// looks guesses what the top fields of the body are, by number.
func (d *Document) looks() map[int32]string {
	t, looks := &wireTree{}, map[int32]string{}
	if !t.read(d.Body, maxWireFields) {
		return nil
	}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		if n := &t.nodes[i]; looks[n.num] == "" {
			looks[n.num] = n.looks(d.Masked)
		}
	}
	return looks
}
