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

// A producer may be one deployment ahead of the schemas. It then sends fields that its type does
// not have yet. dlo assumes such new fields under two conditions: all earlier letters in the queue
// had one type, and this type can decode everything in the body except the new fields. The document
// then lists the new fields.

const (
	maxWires  = 64             // maximum number of new fields of a body that are examined
	addedMost = 0.30           // maximum share of the bytes of a body that new fields may have
	driftBits = enoughBits - 8 // bits of evidence that are needed, as for a type that the queue had before
)

// drifted reports whether the body is probably a message of a newer version of the type, which has
// further top-level fields. All other fields must fit the type well. If the type does not know a
// field at a deeper level, drifted returns false, because the field around it may then contain
// something else than the type says.
func (e *evidence) drifted() bool {
	if e.unread == 0 || e.added != e.unread || float64(e.added) > addedMost*float64(e.bytes) {
		return false
	}
	known := *e
	known.unread = 0
	return known.score() >= matchedFrom && known.bits() >= driftBits
}

// drifted reports whether b is probably a message of the queue's only type, with new fields that
// this type does not have yet.
func (r *reading) drifted(b []byte) bool { return r.ranking(b).drifted }

// sayAdded records the new fields of a body: top-level fields that the type of the body does not
// have.
func (d *Document) sayAdded(def *descriptor.Type) {
	wires := map[protowire.Number]protowire.Type{}
	for b := d.Body; len(b) > 0; {
		num, wire, n := protowire.ConsumeField(b)
		if n < 0 {
			break // cannot happen, because the body was decoded before
		}
		if len(wires) < maxWires && def.Types.Field(def.Desc, num) == nil {
			wires[num] = wire
		}
		b = b[n:]
	}
	if len(wires) == 0 {
		return
	}
	looks := d.guessFields()
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

// guessFields guesses what the top-level fields of the body contain. It returns the guesses by
// field number.
func (d *Document) guessFields() map[int32]string {
	t, looks := &wireTree{}, map[int32]string{}
	if !t.read(d.Body, maxWireFields) {
		return nil
	}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		if n := &t.nodes[i]; looks[n.num] == "" {
			looks[n.num] = n.guessKind(d.Masked)
		}
	}
	return looks
}

// guessKind guesses the kind of a field. For a masked field, it returns the wire type.
func (n *wireNode) guessKind(masked bool) string {
	wire := protowire.Type(n.wire)
	switch {
	case masked, wire == protowire.StartGroupType:
		return wireName(wire)
	case wire == protowire.VarintType:
		return "int64?"
	case wire == protowire.Fixed32Type, wire == protowire.Fixed64Type:
		return wireName(wire) + "?"
	case n.length == 0:
		return "empty"
	case n.hasFlag(nodeText) && n.hasFlag(nodeLikely):
		return "string?"
	case n.hasFlag(nodeText):
		return "string"
	case n.hasFlag(nodeLikely):
		return "message"
	case n.hasFlag(nodeVarints):
		return "bytes?"
	}
	return "bytes"
}
