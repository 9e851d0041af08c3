package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// answerFlags are the flags that select the server and the output format.
type answerFlags struct {
	serverFlags
	Output string `name:"output" short:"o" enum:"table,json,jsonl" default:"table" help:"How to print: table, json or jsonl."`
}

// fetch calls the server and decodes the response into the value that "into" points to. If --output
// asks for JSON, fetch prints the response instead, and the result "printed" is true.
func (f answerFlags) fetch(
	p *Program, method, path string, body, into any, headers ...string,
) (printed bool, err error) {
	var raw json.RawMessage
	if err := f.call(p, method, path, body, &raw, headers...); err != nil {
		return false, err
	}
	if f.Output != "table" {
		return true, printJSON(p.Stdout, raw, f.Output == "json")
	}
	return false, api.Unmarshal(raw, into)
}

// printFact prints a line with a name and its value. It prints nothing if the value is empty.
func printFact(out io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(out, "%-10s %s\n", name, deadletter.Visible(value))
	}
}

// openInput opens a file for reading. The name "-" stands for standard input.
func openInput(p *Program, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.Stdin), nil
	}
	return os.Open(name)
}

// askUser asks a question on the terminal. It returns an error unless the user answers yes.
func askUser(p *Program, question string) error {
	fmt.Fprint(p.Stderr, question, "? [y/N] ")
	answer, _ := bufio.NewReader(p.Stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// printTable prints a header and rows. It makes each cell safe for a terminal, because a letter may
// contain control characters.
func printTable(out io.Writer, head []string, rows [][]string) error {
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
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(out, deadletter.EscapeJSON(text.String()))
	return err
}

// printLines prints each JSON value of a response on its own line.
func printLines(out io.Writer, values []json.RawMessage) error {
	for _, v := range values {
		if err := printJSON(out, v, false); err != nil {
			return err
		}
	}
	return nil
}

// ago describes how far a time is from now, for example "5 min ago".
func ago(at time.Time, now time.Time) string {
	switch d := now.Sub(at); {
	case d < 0:
		return "in " + roughDuration(-d)
	case d < time.Second:
		return "now"
	default:
		return roughDuration(d) + " ago"
	}
}

func roughDuration(d time.Duration) string {
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

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // the null device is a character device too, but not a terminal
	return err != nil || !os.SameFile(info, null)
}

// joined returns the ids of groups, separated by spaces.
func joined(ids []deadletter.GroupID) string { return strings.Trim(fmt.Sprint(ids), "[]") }

// duration is a flag for a duration, such as 2m or 90d.
type duration time.Duration

// UnmarshalText parses a duration.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := deadletter.ParseDuration(string(text))
	*d = duration(v)
	return err
}
