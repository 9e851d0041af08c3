package web

import (
	"context"
	"errors"
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
	if id, ok := groupWritten(to); ok {
		return nil, movedError{view.GroupURL(id)}
	}
	if id, ok := operationWritten(to); ok {
		return nil, movedError{view.OperationURL(id)}
	}
	page, found, err := w.pageOf(r.Context(), to)
	switch {
	case err != nil:
		return nil, err
	case found:
		return nil, movedError{page}
	}
	return nil, movedError{view.LettersURL(to, "", "")}
}

// groupWritten parses the name of a group, such as G-418.
func groupWritten(text string) (deadletter.GroupID, bool) {
	id, err := deadletter.ParseGroupID(text)
	return id, err == nil && strings.EqualFold(text, id.String())
}

// operationWritten parses the name of an operation, such as O-77.
func operationWritten(text string) (deadletter.OperationID, bool) {
	id, err := deadletter.ParseOperationID(text)
	return id, err == nil && strings.EqualFold(text, id.String())
}

// pageOf returns the page of the object that a text names. The text may be the full or short id of
// a letter, a group or an operation. If several letters have the same short id, the page is a list
// of them. If there is no such object, found is false.
func (w *Web) pageOf(ctx context.Context, text string) (page string, found bool, err error) {
	text = strings.TrimSpace(text)
	if id, ok := groupWritten(text); ok {
		_, err := w.Store.GroupTitle(ctx, id)
		return pageIfFound(view.GroupURL(id), err)
	}
	if id, ok := operationWritten(text); ok {
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

// pageIfFound returns the page and true. If err says that the object of the page does not exist, it
// returns false.
func pageIfFound(page string, err error) (string, bool, error) {
	if errors.Is(err, deadletter.ErrNotFound) {
		return "", false, nil
	}
	return page, err == nil, err
}
