package payload

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const maxOutlined = 64 // maximum number of keys or fields in an outline

// Outline describes the form of a body without a type, so that one kind of message can be told from
// another. For a JSON object, it lists the sorted keys, which are masked where a mask applies. For
// an unknown message, it lists the field numbers with their wire types, which are certain. Guesses
// from values, as Shape makes them, would differ between messages of one type. Outline returns ""
// for every other body, and for a body with a type.
func (d *Document) Outline() string {
	var parts []string
	switch {
	case d.Type != "":
	case d.Kind == JSON:
		for i := range d.Fields {
			if n := &d.Fields[i]; n.Kind != More && n.Name != "" && n.Name[0] != '[' {
				parts = append(parts, n.Key())
			}
		}
	case d.Kind == Binary && len(d.Body) > 0:
		t := &wireTree{}
		if !t.read(d.Body, maxWireFields) {
			return ""
		}
		for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
			parts = append(parts, fmt.Sprintf("%d:%s", t.nodes[i].num, wireName(protowire.Type(t.nodes[i].wire))))
		}
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	return strings.Join(parts[:min(len(parts), maxOutlined)], ",")
}
