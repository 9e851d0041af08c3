package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// jump is GET /jump?to=: the page of what has that name, else the letters that it selects as a
// query. Whoever types G-9 here means a group, and is told where there is none.
func (w *Web) jump(r *http.Request) (string, error) {
	to := strings.TrimSpace(r.URL.Query().Get("to"))
	if id, ok := groupWritten(to); ok {
		return view.GroupURL(id), nil
	}
	if id, ok := operationWritten(to); ok {
		return view.OperationURL(id), nil
	}
	page, found, err := w.named(r.Context(), to)
	if err != nil || found {
		return page, err
	}
	return view.LettersURL(to, "", ""), nil
}

// groupWritten reads a group that is written G-418.
func groupWritten(text string) (deadletter.GroupID, bool) {
	id, err := deadletter.ParseGroupID(text)
	return id, err == nil && strings.EqualFold(text, id.String())
}

// operationWritten reads an operation that is written O-77.
func operationWritten(text string) (deadletter.OperationID, bool) {
	id, err := deadletter.ParseOperationID(text)
	return id, err == nil && strings.EqualFold(text, id.String())
}

// named returns the page of what a text names: a letter by its id, whole or short, a group or an
// operation. A short id that several letters have is their list. What is not there has no page.
func (w *Web) named(ctx context.Context, text string) (page string, found bool, err error) {
	text = strings.TrimSpace(text)
	if id, ok := groupWritten(text); ok {
		_, err := w.Store.GroupTitle(ctx, id)
		return there(view.GroupURL(id), err)
	}
	if id, ok := operationWritten(text); ok {
		_, err := w.Store.Operation(ctx, id)
		return there(view.OperationURL(id), err)
	}
	q, err := query.Parse("id:"+text, query.Options{})
	if err != nil || len(q.Terms) != 1 || len(q.Terms[0].Values) != 1 { // it is no id
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

// there is a page, unless what it shows was not found.
func there(page string, err error) (string, bool, error) {
	if errors.Is(err, deadletter.ErrNotFound) {
		return "", false, nil
	}
	return page, err == nil, err
}
