package payload

import "strings"

// MaxWords is how many bytes of a body's text search finds it by.
const MaxWords = 16 << 10

// Words returns the values of a body as text for the search index, at most MaxWords bytes: no names
// of fields, no defaults that are not on the wire, and nothing that is masked.
func Words(d *Document) string {
	if d == nil {
		return ""
	}
	if d.Kind == Text {
		text, _ := cut(d.Text, MaxWords)
		return text
	}
	var w strings.Builder
	words(d.Fields, &w)
	return w.String()
}

func words(nodes []Node, w *strings.Builder) {
	for i := range nodes {
		n := &nodes[i]
		if n.Masked || n.Default {
			continue
		}
		switch n.Kind {
		case String, Number, Bool, Enum, Timestamp, Duration:
			text := n.guess()
			if w.Len()+len(text) >= MaxWords {
				return
			}
			w.WriteString(text)
			w.WriteByte(' ')
		}
		words(n.Children, w)
	}
}
