package payload

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Hex is the beginning of a body as rows of 16 bytes.
type Hex struct {
	Rows []HexRow
	Note string // "the first 4 KiB of 16 MiB", "" when it is all of the body
}

// HexRow is 16 bytes, fewer in the last row.
type HexRow struct {
	Offset string // "0010", more digits in bodies above 64 KiB
	Hex    string // "0a 0e 72 ...", a wider gap after 8; "••" for a masked byte
	ASCII  string // one rune a byte: "·" for what is not printable, "•" for a masked byte
	From   int
}

// Hexdump returns the first limit bytes of the peeled body. Bytes of masked values are not in it.
func (d *Document) Hexdump(limit int) Hex {
	b := d.Body[:min(len(d.Body), max(limit, 0))]
	hidden := make([]bool, len(b))
	hide := func(from, to int) {
		for i := max(from, 0); i < min(to, len(hidden)); i++ {
			hidden[i] = true
		}
	}
	if d.hideAll {
		hide(0, len(hidden))
	} else if d.mask != nil && d.hidden != nil {
		d.hidden(len(b), hide)
	}
	var h Hex
	if len(b) < len(d.Body) {
		h.Note = "the first " + bytesText(len(b)) + " of " + bytesText(len(d.Body))
	}
	width := 4
	for n := len(b); n > 1<<16 && n > 1<<(4*width); width++ {
	}
	for from := 0; from < len(b); from += 16 {
		var hex, ascii strings.Builder
		for i := from; i < min(from+16, len(b)); i++ {
			if i > from {
				hex.WriteByte(' ')
			}
			if i == from+8 {
				hex.WriteByte(' ')
			}
			switch c := b[i]; {
			case hidden[i]:
				hex.WriteString("••")
				ascii.WriteString("•")
			default:
				fmt.Fprintf(&hex, "%02x", c)
				if c < ' ' || c >= 0x7f {
					ascii.WriteString("·")
				} else {
					ascii.WriteByte(c)
				}
			}
		}
		h.Rows = append(h.Rows, HexRow{Offset: fmt.Sprintf("%0*x", width, from), Hex: hex.String(), ASCII: ascii.String(), From: from})
	}
	return h
}

// minRun is the shortest run of text in bytes that a mask is asked about.
const minRun = 4

// maskBinary finds what a pattern masks in the text inside of bytes that nothing could decode.
func (r *reading) maskBinary() {
	doc := r.doc
	if r.Mask == nil {
		return
	}
	if err := r.budget.takeMemory(int64(len(doc.Body))); err != nil {
		doc.tooLarge(err.Error())
		return
	}
	body, mask := doc.Body, r.Mask
	doc.hidden = func(limit int, hide func(from, to int)) {
		for from := 0; from < min(limit, len(body)); {
			to := from
			for to < len(body) && body[to] >= ' ' && body[to] != 0x7f {
				_, n := utf8.DecodeRune(body[to:])
				to += n
			}
			if to-from >= minRun {
				if _, masked := mask.apply("", string(body[from:to])); masked {
					hide(from, to)
				}
			}
			from = max(to, from+1)
		}
	}
	doc.hidden(len(body), func(int, int) { doc.Masked = true })
}
