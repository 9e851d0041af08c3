package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

func lettersTable() command {
	facets := own("facets", "The values of each field among the letters of a query, with counts.", lettersFacetsCmd{})
	facets.answer, facets.note = api.Facets{}, "{{with .Sampled}}counted over the newest {{.}} letters of each{{end}}"
	take := act("import", "Take in letters that another dlo exported.", struct {
		callCmd
		File lineFile `arg:"" json:"*" help:"A file that dlo letters export wrote; - reads standard input."`
	}{}, "POST /letters/import", api.Import{},
		"{{.Imported}} letters imported, {{.AlreadyThere}} were already there, {{.SkippedCount}} lines left out")
	take.note = `{{template "skipped" .}}`
	take.failed = "{{if and .SkippedCount (not .Imported) (not .AlreadyThere)}}no letter was imported{{end}}"
	take.partly = "{{with .SkippedCount}}{{.}} lines were left out{{end}}"
	return noun("letters", groupLetters, "Find, show and act on the letters of a running server.",
		list("List letters, newest first.", struct {
			callCmd
			queryFlag
			limitFlag
			Order string `enum:",received,oldest,died,attempts,size,due" default:"" help:"The order; by default the order that the query sets with sort:, or else received. received: newest first; oldest; died: last died first; attempts: most first; size: largest first; due: next due first."`
		}{}, "GET /letters", "letters", api.Letters{},
			"id state received=received_at|age queue reason type attempts what=|letter"),
		command{
			name: "show", help: "Show one letter: why it died, its decoded body, its history.",
			args: struct {
				callCmd
				revealFlag
				ID letterArg `arg:"" name:"id" help:"The letter's id."`
			}{},
			route: "GET /letters/{id}", answer: api.Letter{},
			columns: "letter=id state why damaged error queue vhost reason exchange key=routing_key group type size " +
				"received=received_at|time due=due_at|time",
			parts: []command{
				{rows: "history", columns: "time=at|time what=kind who=actor detail"}, {text: `{{template "body" .}}`},
			},
		},
		own("body", "Write the stored bytes of one letter.", lettersBodyCmd{}),
		own("reveal", "Show one masked value of a letter; recorded in the audit log.", lettersRevealCmd{}),
		act("count", "Count the letters of a query, exactly.", struct {
			callCmd
			queryFlag
		}{}, "GET /letters/count?exact=1", api.Count{}, "{{.Count}}"),
		facets,
		own("requeue", "Put letters back at the tail of the queue they died in.", struct {
			verbCmd
			paceFlags
			holdFlag
			restoredFlag
		}{}),
		act("edit", "Change the bodies or headers of letters and requeue the edited copies; the originals are kept.",
			lettersEditCmd{}, "POST /letters/{id}/revisions", api.Edited{}, `{{template "edited" .}}`),
		own("hold", "Keep letters where they are until they are released.", verbCmd{}),
		own("release", "Release held letters to the state that they had.", struct {
			verbCmd
			restoredFlag
		}{}),
		own("discard", "Discard letters; they can be restored.", verbCmd{}),
		own("retry-now", "Make scheduled retries due now.", verbCmd{}),
		own("reschedule", "Give scheduled retries another time.", struct {
			verbCmd
			DueAt due `required:"" help:"When they are due: from now, for example 30m or 12h, or a time such as 2026-11-22T06:00:00Z."`
		}{}),
		own("restore", "Restore discarded letters.", verbCmd{}),
		own("purge", "Erase the content of letters for good; their history stays.", struct {
			verbCmd
			holdFlag
		}{}),
		own("export", "Write letters to a file, whole or as a table.", lettersExportCmd{}),
		act("type", "Set the type of a letter, its group or its queue.", struct {
			callCmd
			ID     letterArg `arg:"" name:"id" help:"The letter."`
			Type   string    `arg:"" help:"The full name of a registered message type."`
			For    string    `enum:"letter,group,binding" default:"letter" help:"letter: only this letter; group: its group; binding: its queue, for letters that do not name their type."`
			Path   string    `help:"With --for binding: only the member of JSON bodies that holds the message as base64, for example row.payload."`
			Reason string    `help:"Why; kept in the history."`
		}{}, "POST /letters/{id}/type", api.Pick{}, `{{template "pick" .}}`),
		take,
	)
}

// queryFlag is the flag --query, which selects letters.
type queryFlag struct {
	Query string `json:"q" short:"q" default:"" help:"Which letters, for example 'state:dead queue:sms,email'; without it, all letters. See docs/query.md."`
}

type limitFlag struct {
	Limit int `short:"n" default:"50" help:"How many at most; 0 = all."`
}

// revealFlag is the flag --reveal. It asks the server for masked values in plain text.
type revealFlag struct {
	Reveal bool `help:"Include masked values. This needs the right to reveal, and is recorded in the audit log."`
}

type lettersRevealCmd struct {
	serverFlags
	Header bool      `help:"The value to reveal is a header or a property."`
	ID     letterArg `arg:"" name:"id" help:"The letter's id."`
	Field  string    `arg:"" help:"The path of a masked field of the decoded body, for example customer.email; with --header the name of a header or property."`
}

// Run prints a masked value in plain text.
func (c lettersRevealCmd) Run(p *Program) error {
	what := api.RevealRequest{Field: c.Field}
	if c.Header {
		what = api.RevealRequest{Header: c.Field}
	}
	answer, _, err := fetch[api.Revealed](c.serverFlags, p, http.MethodPost, "/letters/"+string(c.ID)+"/reveal", what)
	if err != nil {
		return err
	}
	return p.write(answer.Value + "\n")
}

type lettersFacetsCmd struct {
	answerFlags
	queryFlag
	Fields []string `name:"field" help:"Show only these fields, for example queue,reason."`
}

// Run prints the values of each field, the fields in the order of the query language.
func (c lettersFacetsCmd) Run(p *Program, k *kong.Context) error {
	path := withQuery("/letters/facets", map[string]any{"q": c.Query})
	answer, raw, err := fetch[api.Facets](c.serverFlags, p, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	for _, f := range c.Fields {
		if _, ok := answer.Facets[f]; !ok {
			return fmt.Errorf("%w: there is no facet %q", errUsage, deadletter.Visible(f))
		}
	}
	facets := commandOf(k.Selected())
	if c.Output == "json" || c.Output == "jsonl" {
		return c.print(p, facets, raw)
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
	head := []string{"FIELD", "VALUE", "LETTERS"}
	return errors.Join(c.printSaying(p, facets, raw), c.printTable(p.Stdout, head, rows))
}

type lettersBodyCmd struct {
	serverFlags
	revealFlag
	ID  letterArg `arg:"" name:"id" json:"-" help:"The letter's id."`
	Out string    `type:"path" json:"-" help:"A file to write to, instead of standard output."`
}

// Run writes the bytes of a letter.
func (c lettersBodyCmd) Run(p *Program, k *kong.Context) error {
	if c.Out == "" && terminal(p.Stdout) {
		return fmt.Errorf(
			"%w: the bytes of a letter can control a terminal: write them to a file with --out, or pipe them to "+
				"another program. dlo letters show prints the letter safely",
			errUsage,
		)
	}
	return c.copyGiven(p, k, c.Out, "/letters/"+string(c.ID)+"/body")
}

type lettersExportCmd struct {
	serverFlags
	queryFlag
	revealFlag
	Format string `enum:"ndjson,csv" default:"ndjson" help:"ndjson: each letter in full, for dlo letters import; csv: the columns that lists show."`
	Out    string `type:"path" json:"-" help:"A new file to write to, instead of standard output."`
}

// Run writes letters in full.
func (c lettersExportCmd) Run(p *Program, k *kong.Context) error {
	return c.copyGiven(p, k, c.Out, "/letters/export")
}

type lettersEditCmd struct {
	actFlags
	paceFlags
	holdFlag
	restoredFlag
	Patch   patchArg          `xor:"what" help:"A JSON patch (RFC 6902) of the decoded body, for each of the letters; @FILE reads it from a file."`
	JSON    textFile          `name:"json" xor:"what" json:"text" help:"A file with the changed decoded body of one letter; - is standard input. 'dlo letters show --reveal' prints the present one."`
	Body    bytesFile         `xor:"what" help:"The whole body of one letter, byte for byte, from a file."`
	Header  map[string]string `json:"-" help:"For one letter: set a header to a text, for example --header x-tenant=acme; an empty text removes the header."`
	Set     map[string]string `name:"property" json:"properties" help:"For one letter: set a property, for example --property type=acme.v1.X; an empty text removes the property."`
	Stored  bool              `json:"-" help:"For one letter: store the edit, and do not requeue it."`
	FromOld bool              `name:"as-received" json:"-" help:"For one letter: start from the letter as received, not from its newest revision."`
}

// patchArg is a JSON patch. A value that begins with @ is the name of a file with it.
type patchArg string

func (a patchArg) content(p *Program) (any, error) {
	if name, is := strings.CutPrefix(string(a), "@"); is {
		return jsonFile(name).content(p)
	}
	if !json.Valid([]byte(a)) {
		return nil, fmt.Errorf(
			`%w: --patch is not JSON; it looks like '[{"op":"replace","path":"/template/name","value":"welcome_v2"}]'`,
			errUsage,
		)
	}
	return json.RawMessage(a), nil
}

// Run edits many letters with a patch, or one letter in any way.
func (c lettersEditCmd) Run(p *Program, k *kong.Context) error {
	one := c.Patch == "" || c.Header != nil || c.Set != nil
	switch {
	case one && (c.Query != nil || len(c.IDs) != 1):
		return fmt.Errorf(
			"%w: --json, --body, --header and --property edit one letter: give its id; --patch edits many", errUsage,
		)
	case c.Patch == "" && c.JSON == "" && c.Body == "" && c.Header == nil && c.Set == nil:
		return fmt.Errorf("%w: say what to change: --json, --patch, --body, --header or --property", errUsage)
	}
	ids, err := c.ids(p)
	if err != nil {
		return err
	}
	if !one {
		return c.act(p, k, ids, "")
	}
	values, err := given(p, k.Selected())
	if err != nil {
		return err
	}
	headers := map[string]any{}
	for name, value := range c.Header {
		if headers[name] = value; value == "" {
			headers[name] = nil // removes it
		}
	}
	request := map[string]any{"id": ids[0], "headers": headers, "requeue": !c.Stored}
	for _, name := range []string{"patch", "text", "body", "properties", "reason", "dry_run"} {
		if value, ok := values[name]; ok {
			request[name] = value
		}
	}
	if c.FromOld {
		request["from"] = 0
	}
	edit := commandOf(k.Selected())
	raw, err := c.request(p, edit, request)
	if err == nil {
		err = c.print(p, edit, raw)
	}
	operation := plainJSON(membersOf(raw)["operation"])
	if err != nil || !c.Watch || operation == "" || c.Output != "table" {
		return err
	}
	return c.watch(p, operation)
}
