package web

import (
	"bufio"
	"io"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// csvWriter writes CSV (RFC 4180) that is safe to open. No cell can control a terminal, and a
// spreadsheet treats no cell as a formula.
type csvWriter struct{ out *bufio.Writer }

func newCSV(out io.Writer) *csvWriter { return &csvWriter{bufio.NewWriter(out)} }

// row adds a row to the buffer. If this fails, the method "flush" returns the error.
func (c *csvWriter) row(cells ...string) {
	for i, cell := range cells {
		if i > 0 {
			c.out.WriteByte(',')
		}
		c.out.WriteString(csvCell(cell))
	}
	c.out.WriteString("\r\n")
}

func (c *csvWriter) flush() error { return c.out.Flush() }

// csvCell quotes a cell if necessary. A spreadsheet treats a cell as a formula if it begins with =,
// +, -, @, a tab or a line break, even if the cell is quoted. csvCell puts an apostrophe before
// such a cell, so that it is a text (OWASP, CSV injection).
func csvCell(text string) string {
	shown := deadletter.Visible(text)
	formula := text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(text)[0])
	if formula {
		shown = "'" + shown
	}
	if formula || strings.ContainsAny(shown, "\",;\t\r\n ") {
		return `"` + strings.ReplaceAll(shown, `"`, `""`) + `"`
	}
	return shown
}
