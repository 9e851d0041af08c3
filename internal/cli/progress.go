package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// progress shows how far an operation has progressed. On a terminal it redraws a bar. Otherwise it
// prints a line for each change of state and for each further tenth of the letters.
type progress struct {
	out   io.Writer
	bar   bool
	width int    // length of the text that the bar's line shows now
	last  string // state, phase and reason that were printed last
	tenth int    // tenth of the letters that was printed last
}

func newProgress(out io.Writer) *progress { return &progress{out: out, bar: terminal(out), tenth: -1} }

const (
	barWidth  = 24
	lineWidth = 76 // in columns, without the ellipsis; a longer line could wrap, and a wrapped line cannot be redrawn
)

func (g *progress) show(o operation) {
	waiting := o.count(deadletter.ResultPending, deadletter.ResultReleased)
	gone := o.Total - waiting
	share := 1.0
	if o.Total > 0 {
		share = float64(gone) / float64(o.Total)
	}
	if !g.bar {
		tenth := int(share * 10)
		if now := string(o.State) + string(o.Phase) + o.Why; now != g.last || tenth != g.tenth {
			g.last, g.tenth = now, tenth
			fmt.Fprintf(g.out, "%s: %d of %d letters, %s\n", o.ID, gone, o.Total, o.words())
		}
		return
	}
	full := int(share * barWidth)
	line := deadletter.Cut(
		fmt.Sprintf(
			"%s [%s%s] %d of %d, %s", o.ID, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), gone,
			o.Total, o.words(),
		),
		lineWidth,
	)
	fmt.Fprintf(g.out, "\r%-*s", g.width, line)
	g.width = len(line)
}

// end moves the cursor to the line below the progress bar.
func (g *progress) end() {
	if g.bar && g.width > 0 {
		fmt.Fprintln(g.out)
	}
}
