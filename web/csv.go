package web

import (
	"bufio"
	"io"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// csvWriter writes rows of RFC 4180 that are safe to open: no cell is a formula to a spreadsheet,
// and nothing in it acts on a terminal.
type csvWriter struct{ out *bufio.Writer }

func newCSV(out io.Writer) *csvWriter { return &csvWriter{bufio.NewWriter(out)} }

// row buffers a row; errors wait for flush.
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

// csvCell quotes a cell where it needs it. A spreadsheet takes a cell that begins with =, +, -, @,
// a tab or a line break for a formula, quoted or not; an apostrophe before it makes it text (OWASP,
// CSV injection).
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
