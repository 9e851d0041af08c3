package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// revealFlag is the flag --reveal. It asks the server for masked values in plain text.
type revealFlag struct {
	Reveal bool `name:"reveal" help:"Include masked values. This needs the right to reveal, and is recorded in the audit log."`
}

// query returns the query string that the flag adds to a request.
func (f revealFlag) query() string {
	if f.Reveal {
		return "?reveal=1"
	}
	return ""
}

type lettersRevealCmd struct {
	serverFlags
	Header bool   `name:"header" help:"The value to reveal is a header or a property."`
	ID     string `arg:"" name:"id" help:"The letter's id."`
	Field  string `arg:"" name:"field" help:"The path of a masked field of the decoded body, for example customer.email; with --header the name of a header or property."`
}

func (c lettersRevealCmd) Run(p *Program) error {
	if _, err := deadletter.ParseID(c.ID); err != nil {
		return err
	}
	what := api.RevealRequest{Field: c.Field}
	if c.Header {
		what = api.RevealRequest{Header: c.Field}
	}
	var answer api.Revealed
	if err := c.call(p, http.MethodPost, "/letters/"+url.PathEscape(c.ID)+"/reveal", what, &answer); err != nil {
		return err
	}
	value := answer.Value
	if terminal(p.Stdout) {
		value = deadletter.VisibleLines(value)
	}
	_, err := fmt.Fprintln(p.Stdout, value)
	return err
}
