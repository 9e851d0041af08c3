package view

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// piece is a run of text inside a <pre> element. All of it looks the same: it is plain, inside
// <mark>, or inside a <span> with the class of a kind of token.
type piece struct {
	Look look
	Text string
	Node string // the name of the node to which the text links, or ""
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

// pieces returns a component that writes pieces of text one after another and escapes each. The
// component is not written in templ, because templ puts white space between nodes, which <pre>
// would show.
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
				if !named { // the target of the links that lead to the marked bytes
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

// appendPiece adds text to the last piece if both look the same. Otherwise, it appends a new piece.
func appendPiece(all []piece, look look, text string) []piece {
	if text == "" {
		return all
	}
	return appendLinked(all, look, "", text)
}

// appendLinked adds text that links to a node. If the last piece looks the same and links to the
// same node, the text is added to that piece. Otherwise appendLinked appends a new piece.
func appendLinked(all []piece, look look, node, text string) []piece {
	if n := len(all); n > 0 && all[n-1].Look == look && all[n-1].Node == node {
		all[n-1].Text += text
		return all
	}
	return append(all, piece{look, text, node})
}
