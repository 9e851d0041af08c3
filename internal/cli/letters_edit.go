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

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type lettersEditCmd struct {
	actFlags
	paceFlags
	holdFlag
	restoredFlag
	Patch   string            `name:"patch" xor:"what" help:"A JSON patch (RFC 6902) of the decoded body, for each of the letters; @FILE reads it from a file."`
	JSON    string            `name:"json" xor:"what" help:"A file with the changed decoded body of one letter; - is standard input. 'dlo letters show -o json' prints the present one, with --reveal if something in it is masked."`
	Body    string            `name:"body" xor:"what" help:"The whole body of one letter, byte for byte, from a file."`
	Header  map[string]string `name:"header" help:"For one letter: set a header to a text, for example --header x-tenant=acme; an empty text removes the header."`
	Set     map[string]string `name:"property" help:"For one letter: set a property, for example --property type=acme.v1.X; an empty text removes the property."`
	Stored  bool              `name:"stored" help:"For one letter: store the edit, and do not requeue it."`
	FromOld bool              `name:"as-received" help:"For one letter: start from the letter as received, not from its newest revision."`
}

func (c lettersEditCmd) Run(p *Program) error {
	if c.Patch != "" && c.Header == nil && c.Set == nil {
		patch, err := flagText(p, c.Patch)
		if err != nil {
			return err
		}
		if !json.Valid(patch) {
			return fmt.Errorf(
				`%w: --patch is not JSON; it looks like '[{"op":"replace","path":"/template/name","value":"welcome_v2"}]'`,
				errUsage,
			)
		}
		request := lettersRequeueCmd{
			actFlags:     c.actFlags,
			paceFlags:    c.paceFlags,
			holdFlag:     c.holdFlag,
			restoredFlag: c.restoredFlag,
		}.pace()
		request.Patch = patch
		return c.act(p, deadletter.VerbEdit, request)
	}
	return c.editOne(p)
}

// editOne edits the one letter whose id is on the command line.
func (c lettersEditCmd) editOne(p *Program) error {
	if c.Query != nil || len(c.IDs) != 1 {
		return fmt.Errorf(
			"%w: --json, --body, --header and --property edit one letter: give its id; --patch edits many", errUsage,
		)
	}
	ids, err := c.ids(p)
	if err != nil {
		return err
	}
	request := api.RevisionRequest{
		Properties: c.Set,
		Headers:    map[string]json.RawMessage{},
		Reason:     c.Reason,
		DryRun:     c.DryRun,
		Requeue:    !c.Stored,
	}
	switch {
	case c.Patch != "":
		if request.Patch, err = flagText(p, c.Patch); err != nil {
			return err
		}
	case c.JSON != "":
		b, err := flagText(p, "@"+c.JSON)
		if err != nil {
			return err
		}
		text := string(b)
		request.Text = &text
	case c.Body != "":
		if request.Body, err = flagText(p, "@"+c.Body); err != nil {
			return err
		}
	case c.Header == nil && c.Set == nil:
		return fmt.Errorf("%w: say what to change: --json, --patch, --body, --header or --property", errUsage)
	}
	if c.FromOld {
		request.From = new(int)
	}
	for name, value := range c.Header {
		if value == "" {
			request.Headers[name] = json.RawMessage("null")
		} else if request.Headers[name], err = json.Marshal(value); err != nil {
			return err
		}
	}
	var a api.Edited
	if printed, err := c.fetch(
		p, http.MethodPost, "/letters/"+url.PathEscape(string(ids[0]))+"/revisions", request, &a, "Idempotency-Key",
		rand.Text(),
	); printed || err != nil {
		return err
	}
	printEdited(p.Stdout, &a)
	if c.Watch && a.Operation != 0 {
		return c.watch(p, a.Operation.String())
	}
	return nil
}

func printEdited(out io.Writer, a *api.Edited) {
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
	case a.Operation == 0:
		fmt.Fprintf(out, "revision %d is stored; a requeue sends it\n", a.Revision.Number)
	default:
		fmt.Fprintf(out, "revision %d is stored; %s requeues it\n", a.Revision.Number, a.Operation)
	}
}

// flagText returns the text that the value of a flag stands for. If the value begins with @, the
// rest is the name of a file that contains the text. The value @- stands for standard input. Any
// other value is the text itself.
func flagText(p *Program, text string) ([]byte, error) {
	name, is := strings.CutPrefix(text, "@")
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
