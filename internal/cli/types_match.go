package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// bodyFlags are the flags that name a file with a body and set the properties of a letter.
type bodyFlags struct {
	answerFlags
	File            string `arg:"" name:"file" help:"The body; - reads it from the standard input."`
	ContentType     string `name:"content-type" help:"The content type."`
	ContentEncoding string `name:"content-encoding" help:"The content encoding, for example gzip."`
	Property        string `name:"property" help:"The type property."`
	Queue           string `name:"queue" help:"The queue, for bindings."`
	Key             string `name:"key" help:"The routing key, for bindings."`
}

// read asks the server which message type matches the body. If the response was printed as JSON,
// the result "printed" is true, and the caller has nothing more to print.
func (f bodyFlags) read(p *Program, as string) (a api.MatchAnswer, printed bool, err error) {
	in, err := openInput(p, f.File)
	if err != nil {
		return a, false, fmt.Errorf("%w: %w", errUsage, err)
	}
	defer in.Close()
	body, err := io.ReadAll(io.LimitReader(in, maxSchemaFile))
	if err != nil {
		return a, false, err
	}
	ask := api.MatchRequest{
		Body:            body,
		ContentType:     f.ContentType,
		ContentEncoding: f.ContentEncoding,
		Type:            f.Property,
		Queue:           f.Queue,
		Key:             f.Key,
		As:              as,
	}
	printed, err = f.fetch(p, http.MethodPost, "/types/match", ask, &a)
	return a, printed, err
}

type typesMatchCmd struct{ bodyFlags }

func (c typesMatchCmd) Run(p *Program) error {
	a, printed, err := c.read(p, "")
	if printed || err != nil {
		return err
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
	return printTable(p.Stdout, []string{"SCORE", "TYPE", "WHY"}, rows)
}

type typesDecodeCmd struct {
	bodyFlags
	Type string `name:"type" help:"Decode the body as this type, even if it matches another."`
}

func (c typesDecodeCmd) Run(p *Program) error {
	a, printed, err := c.read(p, c.Type)
	if printed || err != nil {
		return err
	}
	for _, s := range a.Steps {
		fmt.Fprintln(p.Stderr, deadletter.Visible(s.Text))
	}
	d := a.Decoded
	if d.Type != "" {
		fmt.Fprintln(
			p.Stderr,
			deadletter.Visible(fmt.Sprintf("%s by %s, set %s, %d unknown fields", d.Type, d.Chosen, d.Set, d.UnknownFields)),
		)
	}
	switch {
	case c.Type != "" && d.Type == "":
		return fmt.Errorf("it cannot be decoded as %s: %s", c.Type, d.Problem)
	case string(d.JSON) != "" && string(d.JSON) != "null":
		return printJSON(p.Stdout, d.JSON, true)
	case d.Kind == "text":
		_, err = fmt.Fprintln(p.Stdout, deadletter.VisibleLines(a.Text))
		return err
	case d.Kind == "empty":
		return nil
	}
	return errors.New(cmp.Or(d.Problem, a.Why, "no type can decode it"))
}
