package view

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/payload"
)

// Hex contains the first bytes of a body as rows of 16, with one range marked. It is shown only if
// nothing of the body is masked, or after a reveal.
type Hex struct {
	payload.Hex
	Title  string        // the title of the marked field; "" if no field is marked
	Total  int           // the total number of bytes
	Marked payload.Range // empty if both ends are equal
}

// HexBytes is the maximum number of bytes of a body that a page shows. Each row of 16 bytes takes
// at most 190 bytes of HTML, plus the links to nodes.
const HexBytes = 8 << 10

// dump returns the rows as text. Each row has the offset, the bytes in hexadecimal, and the bytes
// as ASCII. The bytes of a node link to that node.
func (h Hex) dump(nodes []treeNode) []piece {
	var out []piece
	rows := h.Rows[:min(len(h.Rows), HexBytes/16)]
	owners, first := nodesOfBytes(rows, nodes), 0
	if len(rows) > 0 {
		first = rows[0].From
	}
	owner := func(at int) string {
		if i := at - first; i >= 0 && i < len(owners) {
			return owners[i]
		}
		return ""
	}
	for _, row := range rows {
		out = append(out, piece{Look: offset, Text: row.Offset})
		out = appendPiece(out, plain, "  ")
		hex, ascii := []rune(row.Hex), []rune(row.ASCII)
		for i, c := range hex {
			// The code below finds the byte to which the character i belongs. A byte takes three
			// characters: two digits and a gap. After eight bytes, the gap is one character wider.
			// If the bytes on both sides of a gap are highlighted, the gap is highlighted too. If
			// both bytes belong to the same node, the gap is part of the link to this node.
			at := i / 3
			if i >= 24 {
				at = (i - 1) / 3
			}
			at += row.From
			look, to := h.look(at), owner(at)
			if c == ' ' && h.look(at+1) == plain {
				look = plain
			}
			if c == ' ' && owner(at+1) != to {
				to = ""
			}
			out = appendLinked(out, look, to, string(c))
		}
		out = appendPiece(out, plain, strings.Repeat(" ", max(48-len(hex), 0))+"  ")
		for i, c := range ascii {
			out = appendPiece(out, h.look(row.From+i), string(c))
		}
		out = appendPiece(out, plain, "\n")
	}
	return out
}

// nodesOfBytes returns the innermost node of each byte of the rows. It returns "" for a byte
// without a node.
func nodesOfBytes(rows []payload.HexRow, nodes []treeNode) []string {
	if len(rows) == 0 || len(nodes) == 0 {
		return nil
	}
	first := rows[0].From
	owners := make([]string, 16*len(rows))
	var walk func(nodes []treeNode)
	walk = func(nodes []treeNode) {
		for _, n := range nodes {
			to := ""
			if n.hasLink() {
				to = n.At
			}
			for _, b := range n.Ranges {
				for i := max(b.From-first, 0); i < min(b.To-first, len(owners)); i++ {
					owners[i] = to
				}
			}
			walk(n.Below)
		}
	}
	walk(nodes)
	return owners
}

func (h Hex) look(at int) look {
	if at >= h.Marked.From && at < h.Marked.To {
		return marked
	}
	return plain
}
