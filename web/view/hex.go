package view

import "strings"

// Hex is the beginning of some bytes as rows of 16, with one range marked. Rows come with masked
// bytes already hidden.
type Hex struct {
	Title    string // of the field that is marked; "" = the bytes as a whole
	Rows     []HexRow
	Total    int    // bytes of the whole
	Note     string // "the first 4 KiB of 16 MiB"; "" when the rows are all of it
	From, To int    // marked range; equal = none
}

// HexRow is 16 bytes, fewer in the last row.
type HexRow struct {
	Offset string // "0010"
	Hex    string // "0a 0e 72 ...", two characters a byte, a wider gap after 8
	ASCII  string // one character a byte
	From   int    // offset of the first byte
}

// HexBytes is how many bytes a page can show: each row of 16 takes at most 190 bytes of HTML, and
// what links to nodes.
const HexBytes = 8 << 10

// dump returns the rows as text: offset, bytes, and the same bytes as ASCII. Bytes of a node lead
// to it.
func (h Hex) dump(nodes []TreeNode) []piece {
	var out []piece
	rows := h.Rows[:min(len(h.Rows), HexBytes/16)]
	owners, first := owned(rows, nodes), 0
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
			// A byte is two characters and a gap, and after 8 bytes the gap is two wide. A gap is
			// marked only between two marked bytes, and linked between two of a node.
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

// owned names the innermost node of each byte of the rows; "" where there is none, or it is hidden.
func owned(rows []HexRow, nodes []TreeNode) []string {
	if len(rows) == 0 || len(nodes) == 0 {
		return nil
	}
	first := rows[0].From
	owners := make([]string, 16*len(rows))
	var walk func(nodes []TreeNode)
	walk = func(nodes []TreeNode) {
		for _, n := range nodes {
			to := ""
			if n.linked() {
				to = n.At
			}
			for _, b := range n.Bytes {
				for i := max(b.From-first, 0); i < min(b.To-first, len(owners)); i++ {
					owners[i] = to
				}
			}
			walk(n.Children)
		}
	}
	walk(nodes)
	return owners
}

func (h Hex) look(at int) look {
	if at >= h.From && at < h.To {
		return marked
	}
	return plain
}
