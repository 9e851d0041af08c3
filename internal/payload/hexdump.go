package payload

import (
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Hex shows a part of a body as rows of 16 bytes.
type Hex struct {
	Rows []HexRow
	Note string // for example "the first 4 KiB of 16 MiB"; "" = the rows are the whole body
}

// HexRow shows 16 bytes, or fewer in the last row.
type HexRow struct {
	Offset string // for example "0010"; more digits in bodies above 64 KiB
	Hex    string // for example "0a 0e 72 ...", with a wider gap after 8 bytes
	ASCII  string // one character per byte; "·" = not printable
	From   int
}

// Hexdump returns the first bytes of the body after its layers are removed. It returns at most
// "limit" bytes, and none if anything in the body is masked: nobody can see in bytes where a value
// ends.
func (d *Document) Hexdump(limit int) Hex { return d.HexdumpAt(0, limit) }

// HexdumpAt does the same as Hexdump, but begins with the row that contains the byte at the index
// "start".
func (d *Document) HexdumpAt(start, limit int) Hex {
	if d.Masked {
		return Hex{}
	}
	start = min(max(start, 0), max(len(d.Body)-1, 0)) / 16 * 16
	b := d.Body[:min(len(d.Body), start+max(limit, 0))]
	var h Hex
	switch {
	case start > 0:
		h.Note = fmt.Sprintf(
			"%s from byte %s on, of %s", deadletter.Bytes(len(b)-start), deadletter.Count(start),
			deadletter.Bytes(len(d.Body)),
		)
	case len(b) < len(d.Body):
		h.Note = "the first " + deadletter.Bytes(len(b)) + " of " + deadletter.Bytes(len(d.Body))
	}
	width := 4
	for n := len(b); n > 1<<16 && n > 1<<(4*width); width++ {
	}
	for from := start; from < len(b); from += 16 {
		var hex, ascii strings.Builder
		for i := from; i < min(from+16, len(b)); i++ {
			if i > from {
				hex.WriteByte(' ')
			}
			if i == from+8 {
				hex.WriteByte(' ')
			}
			fmt.Fprintf(&hex, "%02x", b[i])
			if b[i] < ' ' || b[i] >= 0x7f {
				ascii.WriteString("·")
			} else {
				ascii.WriteByte(b[i])
			}
		}
		h.Rows = append(h.Rows, HexRow{
			Offset: fmt.Sprintf("%0*x", width, from),
			Hex:    hex.String(),
			ASCII:  ascii.String(),
			From:   from,
		})
	}
	return h
}
