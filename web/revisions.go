package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// reviseLetter edits a letter. The edit is stored as a revision, which is sent from then on instead
// of the letter; what was received stays, and is not sent as well. One of json, text, patch and
// body, or none where only properties and headers change. A message is encoded again with what was
// changed; all else stays, unknown fields too, and the body keeps its envelopes. A mistake has its
// line and column, a refused property or header its name in fields. A letter with masked values is
// edited only with the right to reveal; that is audited as a reveal, and the answer shows them.
// With dry_run, the status is 200, and nothing is stored.
func (w *Web) reviseLetter(ctx context.Context, r *reviseIn) (*revised, error) {
	in, from := &r.Body, ""
	if in.From != nil {
		from = strconv.Itoa(*in.From)
	}
	l, basis, err := w.editBasis(ctx, r.LetterPath, from, r.Key)
	if err != nil {
		return nil, err
	}
	e, err := w.applyEdit(ctx, &l, &basis, in)
	if err != nil {
		return nil, err
	}
	change := deadletter.PropertyEdit{
		Properties: in.Properties,
		Headers:    map[string]any{},
		Revised:    basis.Revised != nil,
	}
	for name, raw := range in.Headers {
		if change.Headers[name], err = deadletter.HeaderJSON(raw); err != nil {
			return nil, invalid("header %s: %s", deadletter.Visible(name), err)
		}
	}
	revision, changed, err := w.newRevision(&l, &basis, e, change)
	if err != nil {
		return nil, err
	}
	out := api.Edited{
		Changed: changed,
		Diff:    each(e.Diff, plainDiff),
		Checks:  e.Checks,
		Size:    len(e.Body),
	}
	if json.Valid([]byte(e.JSON)) {
		out.JSON = json.RawMessage(e.JSON)
	}
	if in.DryRun {
		return &revised{http.StatusOK, "", out, l, basis, e}, nil
	}
	revision.Reason, revision.Key = in.Reason, r.Key
	revision, op, err := w.Desk.Edit(ctx, principal(ctx), &l, revision, in.Requeue)
	if err != nil {
		return nil, err
	}
	v := api.NewRevision(revision)
	out.Revision, out.Operation = &v, op
	return &revised{http.StatusCreated, "/api/v1/letters/" + string(l.ID), out, l, basis, e}, nil
}

type reviseIn struct {
	LetterPath
	Keyed
	Body api.RevisionRequest
}

// revised is the response to an edit: 201 with the address of the letter, or 200 for a dry run. The
// other fields are for the page of the editor.
type revised struct {
	Status        int
	Location      string `header:"Location"`
	Body          api.Edited
	letter, basis deadletter.Letter
	edited        *payload.Edited
}

func (revised) status() int { return http.StatusCreated }

// applyEdit applies the edit in a request, and returns the new body.
func (w *Web) applyEdit(
	ctx context.Context, l, basis *deadletter.Letter, in *api.RevisionRequest,
) (e *payload.Edited, err error) {
	given := 0
	for _, is := range []bool{in.JSON != nil, in.Text != nil, in.Body != nil, in.Patch != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, invalid("give one of json, text, body and patch")
	case given+len(in.Properties)+len(in.Headers) == 0:
		return nil, invalid("say what to change: one of json, text, body and patch, or properties or headers")
	}
	d := w.Decoder()
	properties, body := basis.Current()
	masked := w.hide(&deadletter.Letter{Properties: properties, Arrived: basis.Properties})
	if waited := w.runHeavy(ctx, func() {
		h := d.HintsOf(basis)
		masked = masked || w.bytesMasked(d.Letter(basis))
		switch {
		case in.JSON != nil:
			e, err = d.Edit(body, h, string(in.JSON), nil)
		case in.Text != nil:
			e, err = d.Edit(body, h, *in.Text, nil)
		case in.Patch != nil:
			e, err = d.Patch(body, h, in.Patch, nil)
		case in.Body != nil:
			e, err = d.Replace(body, h, in.Body, nil)
		default:
			e = &payload.Edited{Body: body, Checks: []payload.Check{{OK: true, Text: "The body is sent unchanged"}}}
		}
	}); waited != nil {
		return nil, waited
	}
	if masked {
		if refused := w.record(ctx, l, "an edit"); refused != nil {
			return nil, refused
		}
	}
	return e, err
}

// plainDiff returns a line of a diff as text that begins with "+ ", "- " or two spaces.
func plainDiff(l payload.DiffLine) string {
	text := map[payload.DiffOp]string{
		payload.Removed: "- ", payload.Added: "+ ", payload.LeftOut: "… " + strconv.Itoa(l.Left) + " lines",
	}[l.Op]
	if text == "" {
		text = "  "
	}
	for _, s := range l.Spans {
		text += s.Text
	}
	return text
}
