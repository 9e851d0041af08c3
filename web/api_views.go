package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// SavedViews keeps queries under names.
type SavedViews interface {
	Views(ctx context.Context) ([]deadletter.View, error) // by name
	// AddView fills in id and time; ErrConflict when the name is taken.
	AddView(ctx context.Context, v deadletter.View) (deadletter.View, error)
	RemoveView(ctx context.Context, id int64, by string) error // ErrNotFound when there is none
}

const maxViewName = 100 // bytes

// pathNumber reads the number in the path; what is no number is not found.
func pathNumber(r *http.Request, kind string) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil || n <= 0 {
		return 0, noSuch(kind, chi.URLParam(r, "id"))
	}
	return n, nil
}

// apiViews is GET /views.
func (w *Web) apiViews(r *http.Request) (any, error) {
	list, err := w.Store.Views(r.Context())
	return api.Views{Views: each(list, func(v deadletter.View) api.View { return api.View(v) })}, err
}

// apiAddView is POST /views {name, query}: the query is checked, and kept as it is written. The
// same view again is the same view.
func (w *Web) apiAddView(r *http.Request, in api.ViewRequest) (any, error) {
	if w.draining() {
		return nil, errStopping
	}
	in.Name, in.Query = strings.TrimSpace(in.Name), strings.TrimSpace(in.Query)
	if in.Name == "" || len(in.Name) > maxViewName {
		return nil, invalid("a view has a name of 1 to %d bytes", maxViewName)
	}
	if _, err := query.Parse(in.Query, w.lookOptions()); err != nil {
		return nil, err
	}
	v, err := w.Store.AddView(r.Context(), deadletter.View{Name: in.Name, Query: in.Query, By: principal(r).Name})
	if errors.Is(err, deadletter.ErrConflict) {
		list, readErr := w.Store.Views(r.Context())
		if readErr != nil {
			return nil, readErr
		}
		for _, known := range list {
			if known.Name == in.Name && known.Query == in.Query {
				v, err = known, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return created{api.View(v), "/api/v1/views/" + strconv.FormatInt(v.ID, 10)}, nil
}

// apiRemoveView is DELETE /views/{id}.
func (w *Web) apiRemoveView(r *http.Request) (any, error) {
	id, err := pathNumber(r, "view")
	if err != nil {
		return nil, err
	}
	if w.draining() {
		return nil, errStopping
	}
	return gone{}, w.Store.RemoveView(r.Context(), id, principal(r).Name)
}
