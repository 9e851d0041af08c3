package payload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const shapeShown = 12 // maximum number of fields in a shape

// Shape describes the top level of a body of unknown type: "1: string, 2: int64?, 3: repeated
// message, 7: bytes". The numbers are certain. The kinds are guessed from the bytes. A question
// mark means that other kinds fit as well. For a masked body, Shape returns only wire types. It
// returns "" if the body does not have the form of protobuf at all.
func (d *Document) Shape() string {
	t := &wireTree{}
	if d.Type != "" || d.Kind != Binary || len(d.Body) == 0 || !t.read(d.Body, maxWireFields) {
		return ""
	}
	looks := map[int32]string{}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		n := &t.nodes[i]
		is := n.guessKind(d.Masked)
		switch was, seen := looks[n.num]; {
		case !seen:
			looks[n.num] = is
		case strings.TrimPrefix(was, "repeated ") == is:
			looks[n.num] = "repeated " + is
		default:
			looks[n.num] = "repeated bytes?"
		}
	}
	var parts []string
	for _, number := range slices.Sorted(maps.Keys(looks)) {
		if len(parts) == shapeShown {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%d: %s", number, looks[number]))
	}
	return strings.Join(parts, ", ")
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
