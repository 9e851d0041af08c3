package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// queryFlag is the flag --query, which selects letters.
type queryFlag struct {
	Query string `name:"query" short:"q" default:"" help:"Which letters, for example 'state:dead queue:sms,email'; without it, all letters. See docs/query.md."`
}

type lettersCountCmd struct {
	answerFlags
	queryFlag
}

func (c lettersCountCmd) Run(p *Program) error {
	var answer api.Count
	if printed, err := c.fetch(
		p, http.MethodGet, "/letters/count?"+url.Values{"q": {c.Query}, "exact": {"1"}}.Encode(), nil, &answer,
	); printed || err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Stdout, answer.Count)
	return err
}

type lettersFacetsCmd struct {
	answerFlags
	queryFlag
	Fields []string `name:"field" help:"Show only these fields, for example queue,reason."`
}

func (c lettersFacetsCmd) Run(p *Program) error {
	var raw json.RawMessage
	if err := c.call(p, http.MethodGet, "/letters/facets?"+url.Values{"q": {c.Query}}.Encode(), nil, &raw); err != nil {
		return err
	}
	var answer api.Facets
	if err := api.Unmarshal(raw, &answer); err != nil {
		return err
	}
	for _, f := range c.Fields {
		if _, ok := answer.Facets[f]; !ok {
			return fmt.Errorf("%w: there is no facet %q", errUsage, deadletter.Visible(f))
		}
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	var rows [][]string
	for _, f := range query.Fields {
		if len(c.Fields) > 0 && !slices.Contains(c.Fields, string(f)) {
			continue
		}
		for _, v := range answer.Facets[string(f)] {
			rows = append(rows, []string{string(f), v.Value, strconv.Itoa(v.Count)})
		}
	}
	if answer.Sampled > 0 {
		fmt.Fprintf(p.Stderr, "counted over the newest %d letters of each\n", answer.Sampled)
	}
	return printTable(p.Stdout, []string{"FIELD", "VALUE", "LETTERS"}, rows)
}

type lettersBodyCmd struct {
	serverFlags
	revealFlag
	ID  string `arg:"" name:"id" help:"The letter's id."`
	Out string `name:"out" type:"path" help:"A file to write to, instead of standard output."`
}

func (c lettersBodyCmd) Run(p *Program) error {
	if _, err := deadletter.ParseID(c.ID); err != nil {
		return err
	}
	if c.Out == "" && terminal(p.Stdout) {
		return fmt.Errorf(
			"%w: the bytes of a letter can control a terminal: write them to a file with --out, or pipe them to another program. dlo letters show prints the letter safely",
			errUsage,
		)
	}
	answer, err := c.send(p, 0, http.MethodGet, "/letters/"+url.PathEscape(c.ID)+"/body"+c.query(), nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	return writeTo(p, c.Out, func(out io.Writer) error { return copyAnswer(out, answer) })
}

// writeTo creates a file that has the given name, and calls "write" with that file. If the name is
// empty, it calls "write" with standard output instead. It deletes the file if an error occurs.
func writeTo(p *Program, name string, write func(io.Writer) error) error {
	if name == "" {
		return write(p.Stdout)
	}
	// only the user may read it, because it contains letters
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}

func copyAnswer(out io.Writer, in io.Reader) error {
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("the answer was cut off: %w", err)
	}
	return nil
}

type lettersExportCmd struct {
	serverFlags
	queryFlag
	revealFlag
	Format string `name:"format" enum:"ndjson,csv" default:"ndjson" help:"ndjson: each letter in full, for dlo letters import; csv: the columns that lists show."`
	Out    string `name:"out" type:"path" help:"A new file to write to, instead of standard output."`
}

func (c lettersExportCmd) Run(p *Program) error {
	values := url.Values{"q": {c.Query}, "format": {c.Format}}
	if c.Reveal {
		values.Set("reveal", "1")
	}
	answer, err := c.send(p, 0, http.MethodGet, "/letters/export?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	return writeTo(p, c.Out, func(out io.Writer) error {
		if c.Format == "csv" || !terminal(out) {
			return copyAnswer(out, answer)
		}
		lines := bufio.NewReader(answer)
		for {
			line, err := lines.ReadString('\n')
			if _, err := io.WriteString(out, deadletter.EscapeJSON(line)); err != nil {
				return err
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("the answer was cut off: %w", err)
			}
		}
	})
}

type lettersImportCmd struct {
	answerFlags
	File string `arg:"" name:"file" help:"A file that dlo letters export wrote; - reads standard input."`
}

func (c lettersImportCmd) Run(p *Program) error {
	in, err := openInput(p, c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	answer, err := c.send(p, 0, http.MethodPost, "/letters/import", in, "Content-Type", "application/x-ndjson")
	if err != nil {
		return err
	}
	defer answer.Close()
	var raw json.RawMessage
	if err := c.decode(answer, &raw); err != nil {
		return err
	}
	var out api.Import
	if err := api.Unmarshal(raw, &out); err != nil {
		return err
	}
	if c.Output != "table" {
		err = printJSON(p.Stdout, raw, c.Output == "json")
	} else {
		for _, s := range out.Skipped {
			fmt.Fprintf(
				p.Stderr, "line %d left out: %s\n", s.Line,
				deadletter.Visible(strings.TrimSpace(s.Letter+" "+s.Reason)),
			)
		}
		if more := out.SkippedCount - len(out.Skipped); more > 0 {
			fmt.Fprintf(p.Stderr, "and %d further lines\n", more)
		}
		_, err = fmt.Fprintf(
			p.Stdout, "%d letters imported, %d were already there, %d lines left out\n", out.Imported, out.AlreadyThere,
			out.SkippedCount,
		)
	}
	switch {
	case err != nil:
		return err
	case out.SkippedCount > 0 && out.Imported+out.AlreadyThere == 0:
		return errors.New("no letter was imported")
	case out.SkippedCount > 0:
		return fmt.Errorf("%w: %d lines were left out", errPartly, out.SkippedCount)
	}
	return nil
}
