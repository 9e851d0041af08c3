package view

import "strings"

// Hex is the beginning of some bytes as rows of 16, with one range marked. Rows come with masked bytes already hidden.
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

// HexBytes is how many bytes a page can show: each row of 16 takes at most 190 bytes of HTML.
const HexBytes = 8 << 10

// dump returns the rows as text: offset, bytes, and the same bytes as ASCII.
func (h Hex) dump() []piece {
	var out []piece
	for _, row := range h.Rows[:min(len(h.Rows), HexBytes/16)] {
		out = append(out, piece{offset, row.Offset})
		out = appendPiece(out, plain, "  ")
		hex, ascii := []rune(row.Hex), []rune(row.ASCII)
		for i, c := range hex {
			// A byte is two characters and a gap, and after 8 bytes the gap is two wide. A gap is marked only between two marked bytes.
			at := i / 3
			if i >= 24 {
				at = (i - 1) / 3
			}
			look := h.look(row.From + at)
			if c == ' ' && h.look(row.From+at+1) == plain {
				look = plain
			}
			out = appendPiece(out, look, string(c))
		}
		out = appendPiece(out, plain, strings.Repeat(" ", max(48-len(hex), 0))+"  ")
		for i, c := range ascii {
			out = appendPiece(out, h.look(row.From+i), string(c))
		}
		out = appendPiece(out, plain, "\n")
	}
	return out
}

func (h Hex) look(at int) look {
	if at >= h.From && at < h.To {
		return marked
	}
	return plain
}
