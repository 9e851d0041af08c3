package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// bodyFlags are a body and what a letter would say of it.
type bodyFlags struct {
	File            string `arg:"" name:"file" help:"The body; - reads it from the standard input."`
	ContentType     string `name:"content-type" help:"The content type."`
	ContentEncoding string `name:"content-encoding" help:"The content encoding, such as gzip."`
	Property        string `name:"property" help:"The type property."`
	Queue           string `name:"queue" help:"The queue, for bindings."`
	Key             string `name:"key" help:"The routing key, for bindings."`
}

// read asks the server about the body.
func (f bodyFlags) read(p *Program, server *client, as string) (a api.MatchAnswer, raw json.RawMessage, err error) {
	in := p.Stdin
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return a, nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		defer file.Close()
		in = file
	}
	body, err := io.ReadAll(io.LimitReader(in, maxSchemaFile))
	if err != nil {
		return a, nil, err
	}
	ask := api.MatchRequest{Body: body, ContentType: f.ContentType, ContentEncoding: f.ContentEncoding, Type: f.Property, Queue: f.Queue, Key: f.Key, As: as}
	if err := server.call(p.Ctx, http.MethodPost, "/types/match", ask, &raw); err != nil {
		return a, nil, err
	}
	return a, raw, json.Unmarshal(raw, &a)
}

type typesMatchCmd struct {
	serverFlags
	outputFlag
	bodyFlags
}

func (c typesMatchCmd) Run(p *Program) error {
	server, err := c.client(p)
	if err != nil {
		return err
	}
	a, raw, err := c.read(p, server, "")
	if err != nil {
		return err
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	rows := [][]string{}
	for _, m := range a.Matches {
		rows = append(rows, []string{fmt.Sprintf("%.2f", m.Score), m.Type, strings.Join(m.Reasons, ", ")})
	}
	text := fmt.Sprintf("%s, of %d types", a.Verdict, a.Types)
	if a.Why != "" {
		text += ": " + a.Why
	}
	fmt.Fprintln(p.Stderr, deadletter.Visible(text))
	return table(p.Stdout, []string{"SCORE", "TYPE", "WHY"}, rows)
}

type typesDecodeCmd struct {
	serverFlags
	outputFlag
	bodyFlags
	Type string `name:"type" help:"Read it as this type, whatever it matches."`
}

func (c typesDecodeCmd) Run(p *Program) error {
	server, err := c.client(p)
	if err != nil {
		return err
	}
	a, raw, err := c.read(p, server, c.Type)
	if err != nil {
		return err
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	for _, s := range a.Steps {
		fmt.Fprintln(p.Stderr, deadletter.Visible(s.Text))
	}
	d := a.Decoded
	if d.Type != "" {
		fmt.Fprintln(p.Stderr, deadletter.Visible(fmt.Sprintf("%s by %s, set %s, %d unknown fields", d.Type, d.Chosen, d.Set, d.UnknownFields)))
	}
	switch {
	case c.Type != "" && d.Type == "":
		return fmt.Errorf("it is not read as %s: %s", c.Type, d.Problem)
	case string(d.JSON) != "" && string(d.JSON) != "null":
		return printJSON(p.Stdout, d.JSON, true)
	case d.Kind == "text":
		_, err = fmt.Fprintln(p.Stdout, deadletter.VisibleLines(a.Text))
		return err
	case d.Kind == "empty":
		return nil
	}
	return errors.New(cmp.Or(d.Problem, a.Why, "no type reads it"))
}
