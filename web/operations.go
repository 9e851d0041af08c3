package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// Operations is what the pages of operations need of the store.
type Operations interface {
	Operation(ctx context.Context, id deadletter.OperationID) (deadletter.Operation, error)
	Operations(ctx context.Context, before deadletter.OperationID, limit int) ([]deadletter.Operation, error) // newest first; before 0: from the newest
	// OperationLetters returns the letters of an operation with one of the results, and the cursor of the next page, "" at the end.
	OperationLetters(ctx context.Context, id deadletter.OperationID, results []deadletter.Result, after string, limit int) ([]deadletter.OperationLetter, string, error)
	RunningOperations(ctx context.Context) ([]deadletter.OperationID, error)
}

// troubled are the results that a person has to look at.
var troubled = []deadletter.Result{deadletter.ResultFailed, deadletter.ResultSkipped, deadletter.ResultCameBack}

const recentOperations = 5

// pathOperation reads the operation's id in the path; what is no id is not found.
func pathOperation(r *http.Request) (deadletter.OperationID, error) {
	id, err := deadletter.ParseOperationID(chi.URLParam(r, "id"))
	if err != nil {
		return 0, deadletter.ErrNotFound
	}
	return id, nil
}

// operation is GET /operations/{id}?after=.
func (w *Web) operation(r *http.Request) (templ.Component, error) {
	id, err := pathOperation(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	op, err := w.Store.Operation(ctx, id)
	if err != nil {
		return nil, err
	}
	p := view.OperationPage{Shell: w.shell(r, "Operation "+id.String(), view.SectionOperations), Operation: op, After: r.URL.Query().Get("after")}
	if p.Letters, p.Next, err = w.Store.OperationLetters(ctx, id, troubled, p.After, pageRows); err != nil {
		return nil, err
	}
	recent, err := w.Store.Operations(ctx, 0, recentOperations+1)
	if err != nil {
		return nil, err
	}
	for _, o := range recent {
		if o.ID != id && len(p.Recent) < recentOperations {
			p.Recent = append(p.Recent, o)
		}
	}
	return view.Operation(p), nil
}

// operations is GET /operations?before=.
func (w *Web) operations(r *http.Request) (templ.Component, error) {
	var before deadletter.OperationID
	if text := r.URL.Query().Get("before"); text != "" {
		var err error
		if before, err = deadletter.ParseOperationID(text); err != nil {
			return nil, err
		}
	}
	all, err := w.Store.Operations(r.Context(), before, pageRows+1)
	if err != nil {
		return nil, err
	}
	p := view.OperationsPage{Shell: w.shell(r, "Operations", view.SectionOperations), Operations: all, First: before == 0}
	if len(all) > pageRows {
		p.Operations = all[:pageRows]
		p.Older = all[pageRows-1].ID
	}
	return view.Operations(p), nil
}

// cancelOperation is POST /operations/{id}/cancel. An operation that is over meanwhile is shown as it is.
func (w *Web) cancelOperation(r *http.Request) (string, error) {
	id, err := pathOperation(r)
	if err != nil {
		return "", err
	}
	if w.draining() {
		return "", errStopping
	}
	return view.OperationURL(id), w.Desk.Cancel(r.Context(), principal(r), id)
}
