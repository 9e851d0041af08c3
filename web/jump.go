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
	if page, ok := numbered(to); ok {
		return page, nil
	}
	page, found, err := w.named(r.Context(), to)
	if err != nil || found {
		return page, err
	}
	return view.LettersURL(to, "", ""), nil
}

// numbered is the page of a group or an operation that is written G-418 or O-77.
func numbered(text string) (string, bool) {
	if id, err := deadletter.ParseGroupID(text); err == nil && strings.EqualFold(text, id.String()) {
		return view.GroupURL(id), true
	}
	if id, err := deadletter.ParseOperationID(text); err == nil && strings.EqualFold(text, id.String()) {
		return view.OperationURL(id), true
	}
	return "", false
}

// named returns the page of what a text names: a letter by its id, whole or short, a group or an
// operation. A short id that several letters have is their list. What is not there has no page.
func (w *Web) named(ctx context.Context, text string) (page string, found bool, err error) {
	text = strings.TrimSpace(text)
	if page, ok := numbered(text); ok {
		if id, no := deadletter.ParseGroupID(text); no == nil {
			_, err = w.Store.GroupTitle(ctx, id)
		} else if id, no := deadletter.ParseOperationID(text); no == nil {
			_, err = w.Store.Operation(ctx, id)
		}
		if errors.Is(err, deadletter.ErrNotFound) {
			return "", false, nil
		}
		return page, err == nil, err
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
