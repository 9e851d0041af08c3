package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// outputFlag chooses how results are printed.
type outputFlag struct {
	Output string `name:"output" short:"o" enum:"table,json,jsonl" default:"table" help:"How to print: table, json or jsonl."`
}

// table prints rows under a head. Cells are made safe for a terminal: letters are hostile.
func table(out io.Writer, head []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = deadletter.Visible(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func printJSON(out io.Writer, v any, indent bool) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// ago is a time as people say it.
func ago(at, now time.Time) string {
	switch d := now.Sub(at); {
	case d < 0:
		return "in " + short(-d)
	case d < time.Second:
		return "now"
	default:
		return short(d) + " ago"
	}
}

func short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// terminal says whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
