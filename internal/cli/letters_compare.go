package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type lettersCompareCmd struct {
	answerFlags
	All bool   `name:"all" help:"Also show the fields that are the same."`
	A   string `arg:"" name:"a" help:"A letter's id, whole or short."`
	B   string `arg:"" name:"b" help:"The id of the other letter."`
}

func (c lettersCompareCmd) Run(p *Program) error {
	var answer api.Comparison
	if printed, err := c.fetch(
		p, http.MethodGet, "/letters/compare?"+url.Values{"a": {c.A}, "b": {c.B}}.Encode(), nil, &answer,
	); printed || err != nil {
		return err
	}
	side := func(value *string) string {
		if value == nil {
			return "(not there)"
		}
		return deadletter.Cut(*value, 80)
	}
	var rows [][]string
	for _, f := range answer.Fields {
		if c.All || f.Outcome != "same" {
			rows = append(rows, []string{f.Part, deadletter.Cut(f.Path, 80), f.Outcome, side(f.A), side(f.B)})
		}
	}
	if len(rows) > 0 {
		if err := printTable(p.Stdout, []string{
			"OF", "FIELD", "OUTCOME", "A " + answer.A.ID.Short(), "B " + answer.B.ID.Short(),
		}, rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.Stdout, "%s the same\n", deadletter.Plural(answer.Same, "field is", "fields are"))
	return err
}
