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

	"github.com/deadletteroffice/dlo/internal/api"
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
	p, err := w.openEditor(r, r.URL.Query().Get("from"), "")
	if err != nil {
		return nil, err
	}
	p.Key = newKey()
	return view.Edit(p), nil
}

// openEditor returns the page of the editor. It shows masked values, and records that in the audit.
func (w *Web) openEditor(r *http.Request, from, key string) (view.EditPage, error) {
	l, basis, err := w.editBasis(r.Context(), letterIn(r), from, key)
	if err != nil {
		return view.EditPage{}, err
	}
	p, err := w.editPage(r, &l, &basis)
	if err == nil && p.Masked {
		err = w.record(r.Context(), &l, "the editor")
	}
	return p, err
}

// editPage returns the page on which a person edits a letter, with what has been typed there. The
// caller records in the audit that the page shows masked values.
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
		Refusal:  w.noEdit(l),
	}
	if p.Refusal != "" {
		return p, nil
	}
	if l.Group != 0 {
		if err := w.groupOf(ctx, l, &p); err != nil {
			return p, err
		}
	}
	properties, body := basis.Current()
	var e payload.Editable
	var refused error
	if err := w.runHeavy(
		ctx, func() { e, refused = w.Decoder().Editable(body, w.Decoder().HintsOf(basis), nil) },
	); err != nil {
		return p, err
	}
	p.Masked = w.editFields(&p, basis) || e.Masked
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
	if r.Method == http.MethodPost {
		p.Text, p.Reason, p.Key = r.PostForm.Get("text"), r.PostForm.Get("reason"), r.PostForm.Get("key")
		typedFields(r.PostForm, &p, properties, &api.RevisionRequest{})
	}
	return p, nil
}

// noEdit says why no part of a letter can be edited. It returns "" if it can be edited.
func (w *Web) noEdit(l *deadletter.Letter) string {
	if deadletter.VerbEdit.May(l.State) && !l.InBroker(w.Now()) {
		return ""
	}
	return "the letter is " + string(l.State) + ", and only a letter that can be requeued can be edited"
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

// readEdit reads the form of the editor. The field "do" is "check", "format", "send" or "group".
// Only "send" edits the letter. If it is "group", showEdited shows what the same change would do to
// the other letters of the letter's group.
func (w *Web) readEdit(r *http.Request, in *reviseIn) error {
	form := r.PostForm
	in.Key, in.Body.Requeue, in.Body.DryRun = form.Get("key"), true, form.Get("do") != "send"
	l, basis, err := w.editBasis(r.Context(), in.LetterPath, form.Get("from"), in.Key)
	if err != nil {
		return err
	}
	if form.Get("newest") != strconv.Itoa(l.Revision) {
		return errEdited
	}
	if why := w.noEdit(&l); why != "" {
		return fmt.Errorf("%w: %s", deadletter.ErrConflict, why)
	}
	p := view.EditPage{Mistakes: map[string]string{}}
	w.editFields(&p, &basis)
	properties, _ := basis.Current()
	if refused := typedFields(form, &p, properties, &in.Body); refused != nil {
		return refused
	}
	return nil
}

// showEdited goes to the operation that sends an edited letter. If nothing was stored, it returns
// the editor, with what the edit would change.
func (w *Web) showEdited(r *http.Request, out *revised) (templ.Component, error) {
	if out.Body.Operation != 0 {
		return nil, movedError{view.OperationURL(out.Body.Operation)}
	}
	p, err := w.editPage(r, &out.letter, &out.basis)
	if err != nil {
		return nil, err
	}
	e := out.edited
	p.Checked, p.Checks, p.Diff, p.Changed = true, e.Checks, fitDiff(e.Diff, diffOfOne), len(e.Changed)
	switch r.PostForm.Get("do") {
	case "format":
		var b bytes.Buffer
		if json.Indent(&b, []byte(p.Text), "", "  ") == nil {
			p.Text = b.String()
		}
	case "group":
		if p.Bytes == "" {
			return w.sameChange(r, &out.letter, &out.basis, p)
		}
	}
	return view.Edit(p), nil
}

// editAgain shows the editor with the mistakes of an edit.
func (w *Web) editAgain(r *http.Request, wrong error) (templ.Component, error) {
	p, err := w.openEditor(r, r.PostForm.Get("from"), r.PostForm.Get("key"))
	if err != nil {
		return nil, err
	}
	refused, fields := errors.AsType[deadletter.FieldErrors](wrong)
	fieldMistakes(&p, refused)
	mistake, text := errors.AsType[*payload.EditError](wrong)
	p.Mistake = mistake
	switch {
	case !text && !fields:
		p.Problem = "Nothing was sent: " + sentence(wrong, statusOf(wrong)) + "."
	case r.PostForm.Get("do") == "send":
		p.Problem = "Nothing was sent: see the marked field."
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

// sameChange shows what the same change would do to the other letters of the group.
func (w *Web) sameChange(
	r *http.Request, l, basis *deadletter.Letter, p view.EditPage,
) (templ.Component, error) {
	var patch []byte
	var refused error
	_, body := basis.Current()
	if err := w.runHeavy(r.Context(), func() {
		patch, refused = w.Decoder().Difference(body, w.Decoder().HintsOf(basis), p.Text, nil)
	}); err != nil {
		return nil, err
	}
	if refused != nil {
		return w.editAgain(r, refused)
	}
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
