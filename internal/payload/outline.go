package payload

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const maxOutlined = 64 // keys or fields of an outline

// Outline says what of the form of a body tells one kind of message from another where no type
// does: of a JSON object its keys, sorted; of an unknown message its field numbers with their wire
// types, which are certain, while what Shape guesses from the values differs from one message of a
// type to the next. "" of a body with a type, and of all others. Keys are as they are shown, masked
// where masks say so.
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
