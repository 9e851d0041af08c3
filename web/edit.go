package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// maxEdit is the maximum size of a request that edits a letter, in bytes. Such a request contains
// the edited body as text or as base64.
const maxEdit = 24 << 20

// editURL reports whether a path is the URL at which a letter is edited.
func editURL(path string) bool {
	return strings.HasPrefix(path, "/letters/") && strings.HasSuffix(path, "/edit") ||
		strings.HasPrefix(path, "/api/v1/letters/") && strings.HasSuffix(path, "/revisions")
}

// editBasis returns the letter in a request, and the version on which the edit is based. This is
// the newest revision. If the parameter "revision" is "0", it is the letter as received. editBasis
// returns an error if the principal may not edit the letter.
//
// If a request with the same key has already made a revision, editBasis returns the letter and the
// version as they were before that revision. A repeated request therefore has the same result.
func (w *Web) editBasis(
	ctx context.Context, in LetterPath, revision, key string,
) (l, basis deadletter.Letter, err error) {
	if l, err = w.readLetter(ctx, in); err != nil {
		return l, l, err
	}
	if err := deadletter.Allow(principal(ctx), deadletter.VerbEdit, l.Place()); err != nil {
		return l, l, err
	}
	if err := w.rewind(ctx, &l, key); err != nil {
		return l, l, err
	}
	basis = l
	switch {
	case revision == "" || revision == strconv.Itoa(l.Revision):
	case revision == "0":
		basis.Revision, basis.Revised = 0, nil
	default:
		return l, l, errEdited
	}
	return l, basis, nil
}

// rewind puts the letter l back into the state that it had before the revision with a given
// idempotency key was made. It removes this revision and all later revisions from l. If there is no
// such revision, it changes nothing.
func (w *Web) rewind(ctx context.Context, l *deadletter.Letter, key string) error {
	if key == "" || l.Revision == 0 {
		return nil
	}
	list, err := w.Store.Revisions(ctx, l.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(
		list, func(made deadletter.Revision) bool { return made.Key == key && made.By == principal(ctx).Name },
	)
	if i < 0 {
		return nil
	}
	l.State, l.WaitsIn = deadletter.StateDead, ""
	if l.Revision, l.Revised = i, nil; i > 0 {
		l.Revised = &list[i-1]
	}
	return nil
}

var errEdited = fmt.Errorf(
	"%w: someone else has edited the letter meanwhile; look at the newest revision first", deadletter.ErrConflict,
)

// runHeavy runs work that handles bodies. At most maxHeavy such calls run at the same time. Others
// wait for their turn, or until ctx ends.
func (w *Web) runHeavy(ctx context.Context, work func()) error {
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return err
	}
	defer done()
	work()
	return nil
}

// edit handles GET /letters/{id}/edit?q=&from=.
func (w *Web) edit(r *http.Request) (templ.Component, error) {
	l, basis, err := w.editBasis(r.Context(), letterIn(r), r.URL.Query().Get("from"), "")
	if err != nil {
		return nil, err
	}
	p, err := w.editPage(r, &l, &basis)
	if err != nil {
		return nil, err
	}
	p.Key = newKey()
	return view.Edit(p), nil
}

// editPage returns the page on which a person begins an edit. It shows masked values, and records
// that in the audit.
func (w *Web) editPage(r *http.Request, l, basis *deadletter.Letter) (view.EditPage, error) {
	ctx := r.Context()
	p := view.EditPage{
		Shell:    w.shell(r, "Edit "+l.ID.Short(), view.SectionLetters),
		Letter:   l.ID,
		Query:    r.URL.Query().Get("q"),
		Group:    l.Group,
		Queue:    l.Queue,
		Revision: basis.Revision,
		Newest:   l.Revision,
		Mistakes: map[string]string{},
	}
	if !deadletter.VerbEdit.May(l.State) || l.InBroker(w.Now()) {
		p.Refusal = "the letter is " + string(l.State) + ", and only a letter that can be requeued can be edited"
		return p, nil
	}
	if l.Group != 0 {
		if err := w.groupOf(ctx, l, &p); err != nil {
			return p, err
		}
	}
	_, body := basis.Current()
	var e payload.Editable
	var refused error
	if err := w.runHeavy(
		ctx, func() { e, refused = w.Decoder().Editable(body, w.Decoder().HintsOf(basis), nil) },
	); err != nil {
		return p, err
	}
	p.Masked = w.editFields(&p, basis) || e.Masked
	if p.Masked {
		if err := w.record(r.Context(), l, "the editor"); err != nil {
			return p, err
		}
	}
	attempts, err := w.Store.Attempts(ctx, l.ID)
	if err != nil {
		return p, err
	}
	p.Restored = l.Doubt == deadletter.DoubtRestored
	p.Doubt = len(attempts) > 0 && attempts[len(attempts)-1].Outcome == deadletter.OutcomeInDoubt
	p.Type, p.Syntax, p.Text, p.Wrapped = e.Type, syntax(e.Syntax), e.Text, e.Wrapping
	if refused != nil {
		p.Bytes = refused.Error()
	}
	return p, nil
}

func syntax(k payload.Kind) string {
	if k == payload.Text {
		return "text"
	}
	return "JSON"
}

// groupOf adds to the page the group of a letter, and says how many other letters of the group can
// be requeued.
func (w *Web) groupOf(ctx context.Context, l *deadletter.Letter, p *view.EditPage) error {
	title, err := w.Store.GroupTitle(ctx, l.Group)
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return err
	}
	p.GroupTitle, _ = w.Header("", title)
	q, err := query.Parse(othersOf(l), w.queryOptions())
	if err != nil {
		return err
	}
	n, _, err := w.Store.Count(ctx, q, 0)
	p.Others = max(0, n-1)
	return err
}

// othersOf returns the query for the other letters of a letter's group. The same edit can be
// applied to them.
func othersOf(l *deadletter.Letter) string {
	return "group:" + l.Group.String() + " state:dead,held,scheduled"
}

// sendEdit handles POST /letters/{id}/edit. The field "do" of the form is "check", "format", "send"
// or "group". If it is "group", sendEdit shows what the same change would do to the other letters
// of the letter's group.
func (w *Web) sendEdit(r *http.Request) (templ.Component, error) {
	if err := r.ParseForm(); err != nil {
		return nil, formError(err)
	}
	l, basis, err := w.editBasis(r.Context(), letterIn(r), r.PostFormValue("revision"), r.PostFormValue("key"))
	if err != nil {
		return nil, err
	}
	p, err := w.editPage(r, &l, &basis)
	if err != nil || p.Refusal != "" {
		return view.Edit(p), err
	}
	p.Text, p.Reason, p.Key = strings.ReplaceAll(
		r.PostFormValue("text"), "\r\n", "\n",
	), strings.TrimSpace(r.PostFormValue("reason")), r.PostFormValue("key")
	properties, body := basis.Current()
	change, kept := w.typedFields(r, &p, properties)
	var e *payload.Edited
	var patch []byte
	var mistake error
	if err := w.runHeavy(r.Context(), func() {
		if p.Bytes != "" {
			e = &payload.Edited{
				Body:   body,
				Checks: []payload.Check{{OK: true, Text: "The body is sent unchanged"}},
			}
			return
		}
		d := w.Decoder()
		h := d.HintsOf(&basis)
		e, mistake = d.Edit(body, h, p.Text, nil)
		if mistake == nil && r.PostFormValue("do") == "group" {
			patch, mistake = d.Difference(body, h, p.Text, nil)
		}
	}); err != nil {
		return nil, err
	}
	if mistake != nil {
		e, p.Mistake = &payload.Edited{}, mistakeOf(mistake)
	}
	p.Checked, p.Checks, p.Diff, p.Changed = true, e.Checks, fitDiff(e.Diff, diffOfOne), len(e.Changed)
	var revision deadletter.Revision
	if kept {
		var refused deadletter.FieldErrors
		if revision, _, err = w.newRevision(&l, &basis, e, change); errors.As(err, &refused) {
			fieldMistakes(&p, refused)
		} else if err != nil {
			return nil, err
		}
	}
	wrong := p.Mistake != nil || err != nil || !kept
	switch r.PostFormValue("do") {
	case "format":
		var b bytes.Buffer
		if p.Mistake == nil && json.Indent(&b, []byte(p.Text), "", "  ") == nil {
			p.Text = b.String()
		}
		return view.Edit(p), nil
	case "group":
		if wrong || p.Bytes != "" {
			break
		}
		return w.sameChange(r, &l, &p, patch)
	case "send":
		return w.storeEdit(r, &l, p, revision, wrong)
	}
	return view.Edit(p), nil
}

// newRevision returns the next revision of a letter, with the given body and a change of the
// properties of its basis. It also returns the names of what changed, as everybody may see them.
func (w *Web) newRevision(
	l, basis *deadletter.Letter, e *payload.Edited, change deadletter.PropertyEdit,
) (deadletter.Revision, []string, error) {
	properties, _ := basis.Current()
	edited, names, err := properties.Edit(change)
	changed := append([]string{}, e.Changed...)
	for _, name := range names {
		shown, _ := w.Header("", name)
		changed = append(changed, shown)
	}
	return deadletter.Revision{
		Number:     l.Revision + 1,
		Properties: edited,
		Body:       e.Body,
		Changes:    strings.Join(changed, "; "),
	}, changed, err
}

// storeEdit handles an edit that has no mistakes. It stores the edit, requeues the letter, and
// redirects the reader to the operation.
func (w *Web) storeEdit(
	r *http.Request, l *deadletter.Letter, p view.EditPage, revision deadletter.Revision, wrong bool,
) (templ.Component, error) {
	if p.Reason == "" {
		p.Mistakes["reason"] = "Say why, so that the next person understands the change."
		wrong = true
	}
	newest, err := strconv.Atoi(r.PostFormValue("newest"))
	switch {
	case wrong:
		p.Problem = "Nothing was sent: see the marked field."
		return view.Edit(p), invalid("the form has a mistake")
	case w.draining():
		return nil, errStopping
	case err != nil || newest != l.Revision:
		return nil, errEdited
	}
	revision.Reason, revision.Key = p.Reason, p.Key
	_, op, err := w.Desk.Edit(r.Context(), principal(r.Context()), l, revision, true)
	if errors.Is(err, deadletter.ErrInvalid) || errors.Is(err, deadletter.ErrConflict) {
		p.Problem = "Nothing was sent: " + sentence(err, statusOf(err)) + "."
		return view.Edit(p), err
	}
	if err != nil {
		return nil, err
	}
	return nil, movedError{view.OperationURL(op)}
}

// sameChange shows what the same change would do to the other letters of the group.
func (w *Web) sameChange(
	r *http.Request, l *deadletter.Letter, p *view.EditPage, patch []byte,
) (templ.Component, error) {
	r.PostForm = url.Values{
		"action": {string(deadletter.VerbEdit)},
		"scope":  {"all"},
		"q":      {othersOf(l)},
		"until":  {w.Now().UTC().Format(time.RFC3339Nano)},
		"patch":  {string(patch)},
		"reason": {p.Reason},
		"return": {view.EditURL(l.ID, p.Query, false)},
	}
	return w.confirm(r)
}

func mistakeOf(err error) *payload.EditError {
	if m, ok := errors.AsType[*payload.EditError](err); ok {
		return m
	}
	return &payload.EditError{Message: err.Error()}
}

// These constants limit the bytes of a diff on a page. The constant diffOfOne is for the diff in
// the editor of one letter. The constant diffOfMany is for each of the diffs of several letters,
// and for the diff above the history of a letter.
const (
	diffOfOne  = 100_000
	diffOfMany = 10_000
)

// fitDiff returns as much of a diff as fits into a number of bytes.
func fitDiff(lines []payload.DiffLine, most int) []payload.DiffLine {
	size := 0
	for i, l := range lines {
		for _, s := range l.Spans {
			size += len(s.Text) + 30
		}
		if size > most {
			return append(slices.Clip(lines[:i]), payload.DiffLine{Op: payload.LeftOut, Left: len(lines) - i})
		}
	}
	return lines
}
