package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type lettersEditCmd struct {
	actFlags
	paceFlags
	holdFlag
	Patch   string            `name:"patch" xor:"what" help:"A JSON patch (RFC 6902) of the decoded body, for each of the letters; @FILE reads it from a file."`
	JSON    string            `name:"json" xor:"what" help:"The decoded body of one letter, changed, from a file; - is standard input. 'dlo letters show' prints what it is now."`
	Body    string            `name:"body" xor:"what" help:"The whole body of one letter, byte for byte, from a file."`
	Header  map[string]string `name:"header" help:"Of one letter: set a header to a text, such as --header x-tenant=acme; an empty one is taken away."`
	Set     map[string]string `name:"property" help:"Of one letter: set a property, such as --property type=acme.v1.X; an empty one is taken away."`
	Stored  bool              `name:"stored" help:"Of one letter: store the edit, and do not requeue it."`
	FromOld bool              `name:"as-received" help:"Of one letter: begin with what was received, not with its newest revision."`
}

func (c lettersEditCmd) Run(p *Program) error {
	if c.Patch != "" && c.Header == nil && c.Set == nil {
		patch, err := given(p, c.Patch, "@")
		if err != nil {
			return err
		}
		if !json.Valid(patch) {
			return fmt.Errorf(`%w: --patch is no JSON; it looks like '[{"op":"replace","path":"/template/name","value":"welcome_v2"}]'`, errUsage)
		}
		more := lettersRequeueCmd{c.actFlags, c.paceFlags, c.holdFlag}.pace()
		more["patch"] = json.RawMessage(patch)
		return c.act(p, deadletter.VerbEdit, more)
	}
	return c.one(p)
}

// one edits a single letter.
func (c lettersEditCmd) one(p *Program) error {
	if c.Query != nil || len(c.IDs) != 1 {
		return fmt.Errorf("%w: --json, --body, --header and --property edit one letter: give its id; --patch edits many", errUsage)
	}
	api, err := c.client(p)
	if err != nil {
		return err
	}
	ids, err := c.ids(p)
	if err != nil {
		return err
	}
	request := map[string]any{"reason": c.Reason, "dry_run": c.DryRun, "requeue": !c.Stored}
	switch {
	case c.Patch != "":
		patch, err := given(p, c.Patch, "@")
		if err != nil {
			return err
		}
		request["patch"] = json.RawMessage(patch)
	case c.JSON != "":
		text, err := given(p, "@"+c.JSON, "@")
		if err != nil {
			return err
		}
		request["text"] = string(text)
	case c.Body != "":
		body, err := given(p, "@"+c.Body, "@")
		if err != nil {
			return err
		}
		request["body"] = body
	case c.Header == nil && c.Set == nil:
		return fmt.Errorf("%w: say what is to be changed: --json, --patch, --body, --header or --property", errUsage)
	}
	if c.FromOld {
		request["from"] = 0
	}
	headers := map[string]any{}
	for name, value := range c.Header {
		if headers[name] = value; value == "" {
			headers[name] = nil
		}
	}
	request["headers"], request["properties"] = headers, c.Set
	var raw json.RawMessage
	if err := api.call(p.Ctx, http.MethodPost, "/letters/"+url.PathEscape(string(ids[0]))+"/revisions", request, &raw, "Idempotency-Key", rand.Text()); err != nil {
		return err
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	var a editAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	a.print(p.Stdout)
	if c.Watch && a.Operation != "" {
		return c.watch(p, api, a.Operation, c.outputFlag)
	}
	return nil
}

// editAnswer is what POST /letters/{id}/revisions answers.
type editAnswer struct {
	Revision *struct {
		Number int `json:"number"`
	} `json:"revision"`
	Operation string   `json:"operation"`
	Diff      []string `json:"diff"`
	Changed   []string `json:"changed"`
	Checks    []struct {
		OK   bool   `json:"ok"`
		Text string `json:"text"`
	} `json:"checks"`
}

func (a editAnswer) print(out io.Writer) {
	for _, line := range a.Diff {
		fmt.Fprintln(out, deadletter.Visible(line))
	}
	for _, c := range a.Checks {
		word := "ok"
		if !c.OK {
			word = "note"
		}
		fmt.Fprintf(out, "%s: %s\n", word, deadletter.Visible(c.Text))
	}
	if len(a.Changed) > 0 {
		fmt.Fprintf(out, "changed: %s\n", deadletter.Visible(strings.Join(a.Changed, "; ")))
	}
	switch {
	case a.Revision == nil:
		fmt.Fprintln(out, "nothing was stored")
	case a.Operation == "":
		fmt.Fprintf(out, "revision %d is stored; a requeue sends it\n", a.Revision.Number)
	default:
		fmt.Fprintf(out, "revision %d is stored; %s requeues it\n", a.Revision.Number, a.Operation)
	}
}

// given is the text of a flag, or of the file that it names after the mark; - is standard input.
func given(p *Program, text, mark string) ([]byte, error) {
	name, is := strings.CutPrefix(text, mark)
	switch {
	case !is:
		return []byte(text), nil
	case name == "-":
		return io.ReadAll(io.LimitReader(p.Stdin, maxGiven))
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return b, nil
}

const maxGiven = 32 << 20 // bytes
