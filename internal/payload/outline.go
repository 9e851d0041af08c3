package payload

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const maxOutlined = 64 // maximum number of keys or fields in an outline

// Outline describes the form of a body without a type. It is used to tell one kind of message from
// another. For a JSON object, Outline lists the sorted keys, and masks the keys that a mask hides.
// For an unknown message, it lists the field numbers and their wire types. It does not guess the
// kinds of the fields from their values, as Shape does, because these guesses would differ between
// messages of one type. For every other body, and for a body with a type, it returns "".
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
