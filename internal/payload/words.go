package payload

import "strings"

// MaxWords limits how much text of a body is put into the search index, in bytes.
const MaxWords = 16 << 10

// Words returns a body's values as text for the search index, at most MaxWords bytes. It omits
// field names, everything masked, and defaults that are not on the wire.
func Words(d *Document) string {
	if d == nil {
		return ""
	}
	if d.Kind == Text {
		text, _ := cut(d.Text, MaxWords)
		return text
	}
	var w strings.Builder
	writeWords(d.Fields, &w)
	return w.String()
}

func writeWords(nodes []Node, w *strings.Builder) {
	for i := range nodes {
		n := &nodes[i]
		if n.Default {
			continue
		}
		switch n.Kind {
		case String, Number, Bool, Enum, Timestamp, Duration:
			if n.Masked {
				break
			}
			text := n.guess()
			if w.Len()+len(text) >= MaxWords {
				return
			}
			w.WriteString(text)
			w.WriteByte(' ')
		}
		writeWords(n.Children, w)
	}
}
