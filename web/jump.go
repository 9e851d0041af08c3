package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// jump handles GET /jump?to=. It redirects to the page of the object that the text names. If the
// text names no object, jump treats it as a query and redirects to the letters that match. A text
// such as G-9 always means a group, even if that group does not exist.
func (w *Web) jump(r *http.Request) (templ.Component, error) {
	to := strings.TrimSpace(r.URL.Query().Get("to"))
	page, _, err := w.pageOf(r.Context(), to)
	if err != nil {
		return nil, err
	}
	return nil, movedError{cmp.Or(page, view.LettersURL(to, "", ""))}
}

// written parses the name of a group or an operation, such as G-418 or O-77.
func written[ID fmt.Stringer](parse func(string) (ID, error), text string) (ID, bool) {
	id, err := parse(text)
	return id, err == nil && strings.EqualFold(text, id.String())
}

// pageOf returns the page of the object that a text names, and whether the object exists. The text
// may be the full or short id of a letter, a group or an operation. If several letters have the
// same short id, the page is a list of them. If the text is no such id, or if no letter has it, the
// page is "".
func (w *Web) pageOf(ctx context.Context, text string) (page string, exists bool, err error) {
	text = strings.TrimSpace(text)
	if id, ok := written(deadletter.ParseGroupID, text); ok {
		_, err := w.Store.GroupTitle(ctx, id)
		return pageIfFound(view.GroupURL(id), err)
	}
	if id, ok := written(deadletter.ParseOperationID, text); ok {
		_, err := w.Store.Operation(ctx, id)
		return pageIfFound(view.OperationURL(id), err)
	}
	q, err := query.Parse("id:"+text, query.Options{})
	if err != nil || len(q.Terms) != 1 || len(q.Terms[0].Values) != 1 { // the text is not an id
		return "", false, nil
	}
	rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: 2})
	switch {
	case err != nil || len(rows) == 0:
		return "", false, err
	case len(rows) == 1:
		return view.LetterURL(rows[0].ID, "", ""), true, nil
	}
	return view.LettersURL(q.String(), "", ""), true, nil
}

// pageIfFound returns the page of an object, and whether the object exists. The error says so.
func pageIfFound(page string, err error) (string, bool, error) {
	if errors.Is(err, deadletter.ErrNotFound) {
		return page, false, nil
	}
	return page, err == nil, err
}
