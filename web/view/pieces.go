package view

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// piece is a run of text inside a <pre>. The whole run has one look: it is plain, in a <mark>, or
// in a span of a syntax class.
type piece struct {
	Look look
	Text string
	Node string // name of the node that the text links to; "" = none
}

type look string

const (
	plain   look = ""
	marked  look = "mark"
	offset  look = "o"
	keyText look = "t"
	strText look = "s"
	numText look = "n"
)

// pieces writes runs of text one after the other and escapes each. It is not a templ component
// because templ puts white space between nodes, which a <pre> would show.
func pieces(all []piece) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		named := false
		for _, p := range all {
			text := templ.EscapeString(p.Text)
			if p.Node != "" {
				node := templ.EscapeString(p.Node)
				text = `<a href="#n` + node + `" data-n="` + node + `">` + text + "</a>"
			}
			switch p.Look {
			case plain:
				b.WriteString(text)
			case marked:
				id := ""
				if !named { // target of a link that leads to the marked bytes
					id, named = ` id="at"`, true
				}
				b.WriteString("<mark" + id + ">" + text + "</mark>")
			default:
				b.WriteString(`<span class="` + templ.EscapeString(string(p.Look)) + `">` + text + "</span>")
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// appendPiece adds text to the last piece if that piece has the same look.
func appendPiece(all []piece, look look, text string) []piece {
	if text == "" {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Look == look && all[n-1].Node == "" {
		all[n-1].Text += text
		return all
	}
	return append(all, piece{Look: look, Text: text})
}

// appendLinked works like appendPiece, for text that links to a node.
func appendLinked(all []piece, look look, node, text string) []piece {
	if n := len(all); n > 0 && all[n-1].Look == look && all[n-1].Node == node {
		all[n-1].Text += text
		return all
	}
	return append(all, piece{look, text, node})
}
