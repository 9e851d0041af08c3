package view

import (
	"fmt"
	"strings"
)

// Hex is a dump of bytes, 16 a line, with one range marked.
type Hex struct {
	Title    string // of what these bytes are; "" = the whole
	Data     []byte // from the start of the body; may be cut
	Total    int    // bytes of the whole
	From, To int    // marked range; equal = none
}

// hexShown is how many bytes a dump shows: each line of 16 takes at most 190 bytes of HTML.
const hexShown = 8 << 10

// shown returns the bytes that the dump shows.
func (h Hex) shown() []byte { return h.Data[:min(len(h.Data), hexShown)] }

func (h Hex) left() int { return max(h.Total, len(h.Data)) - len(h.shown()) }

// dump returns the lines of the dump: offset, bytes, and the same bytes as ASCII.
func (h Hex) dump() []piece {
	data := h.shown()
	var out []piece
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		out = append(out, piece{offset, fmt.Sprintf("%04x", at)})
		out = appendPiece(out, plain, "  ")
		var ascii []piece
		width := 0
		for i, b := range row {
			look := plain
			if at+i >= h.From && at+i < h.To {
				look = marked
			}
			gap := ""
			if i > 0 {
				gap = " "
			}
			if i == 8 {
				gap = "  "
			}
			// The gap is marked only between two marked bytes.
			if look == marked && at+i-1 >= h.From {
				out = appendPiece(out, marked, gap)
			} else {
				out = appendPiece(out, plain, gap)
			}
			out = appendPiece(out, look, fmt.Sprintf("%02x", b))
			width += len(gap) + 2
			c := "·"
			if b >= 0x20 && b < 0x7f {
				c = string(rune(b))
			}
			ascii = appendPiece(ascii, look, c)
		}
		out = appendPiece(out, plain, strings.Repeat(" ", 48-width)+"  ")
		for _, p := range ascii {
			out = appendPiece(out, p.Look, p.Text)
		}
		out = appendPiece(out, plain, "\n")
	}
	return out
}
