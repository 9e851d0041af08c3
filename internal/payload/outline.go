package payload

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const maxOutlined = 64 // keys or fields in an outline

// Outline describes the form of a body without a type, to distinguish one kind of message from
// another. For a JSON object, it lists the sorted keys, masked where the masks apply. For an
// unknown message, it lists the field numbers with their wire types. Those are certain, while the
// guesses that Shape makes from values differ between messages of one type. Outline returns "" for
// every other body, including a body with a type.
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
