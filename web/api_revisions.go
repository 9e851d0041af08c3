package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

func apiRevisionOf(r deadletter.Revision) api.Revision {
	return api.Revision{
		Number:    r.Number,
		By:        r.By,
		Reason:    r.Reason,
		Changes:   r.Changes,
		At:        api.At(r.At),
		Size:      len(r.Body),
		Operation: operationName(r.Operation),
	}
}

// apiRevise handles POST /letters/{id}/revisions.
func (w *Web) apiRevise(r *http.Request, in api.RevisionRequest) (any, error) {
	from := ""
	if in.From != nil {
		from = strconv.Itoa(*in.From)
	}
	l, basis, err := w.editBasis(r, from, r.Header.Get("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	properties, body := basis.Current()
	e, err := w.apiEdit(r, &l, &basis, &in, body)
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
	edited, changed, err := properties.Edit(change)
	if err != nil {
		return nil, err
	}
	changed = append(slices.Clone(e.Changed), w.maskedNames(changed)...)
	check := func(c payload.Check) api.EditCheck {
		return api.EditCheck{OK: c.Level == payload.LevelOK, Text: c.Text}
	}
	out := api.Edited{
		Changed: append([]string{}, changed...),
		Diff:    each(e.Diff, plainDiff),
		Checks:  each(e.Checks, check),
		Size:    len(e.Body),
	}
	if json.Valid([]byte(e.JSON)) {
		out.JSON = json.RawMessage(e.JSON)
	}
	if in.DryRun {
		return out, nil
	}
	if w.draining() {
		return nil, errStopping
	}
	revision, op, err := w.Desk.Edit(r.Context(), principal(r), &l, deadletter.Revision{
		Number:     l.Revision + 1,
		Properties: edited,
		Body:       e.Body,
		Changes:    strings.Join(changed, "; "),
		Reason:     in.Reason,
		Key:        r.Header.Get("Idempotency-Key"),
	}, in.Requeue)
	if err != nil {
		return nil, err
	}
	v := apiRevisionOf(revision)
	out.Revision, out.Operation = &v, operationName(op)
	return created{out, "/api/v1/letters/" + string(l.ID)}, nil
}

// apiEdit applies the edit in a request, and returns the new body.
func (w *Web) apiEdit(
	r *http.Request, l, basis *deadletter.Letter, in *api.RevisionRequest, body []byte,
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
	properties, _ := basis.Current()
	masked := w.hide(&deadletter.Letter{Properties: properties, Arrived: basis.Properties})
	if waited := w.runHeavy(r.Context(), func() {
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
			e = &payload.Edited{Body: body}
		}
	}); waited != nil {
		return nil, waited
	}
	if masked {
		if refused := w.record(r, l, "an edit"); refused != nil {
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

// editPlace returns the position of a mistake in the text of an edit. The result "ok" is false if
// err is not such a mistake.
func editPlace(err error) (line, column int, path string, ok bool) {
	var m *payload.EditError
	if !errors.As(err, &m) {
		return 0, 0, "", false
	}
	return m.Line, m.Column, m.Path, true
}
