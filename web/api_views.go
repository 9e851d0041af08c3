package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// SavedViews stores named queries.
type SavedViews interface {
	// the views of a person and those for everybody, sorted by name
	Views(ctx context.Context, person string) ([]deadletter.View, error)
	// AddView sets the id and the time of the view. It returns ErrConflict if the name is in use.
	AddView(ctx context.Context, v deadletter.View) (deadletter.View, error)
	RemoveView(ctx context.Context, id int64, by string) error // ErrNotFound if it does not exist
}

const maxViewName = 100 // maximum length in bytes

// pathNumber parses the number in the path of a request. If it is not a number, the error says that
// there is no such object.
func pathNumber(r *http.Request, kind string) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil || n <= 0 {
		return 0, noSuch(kind, chi.URLParam(r, "id"))
	}
	return n, nil
}

// apiViews handles GET /views.
func (w *Web) apiViews(r *http.Request) (any, error) {
	list, err := w.Store.Views(r.Context(), principal(r).Name)
	return api.Views{Views: each(list, api.NewView)}, err
}

// apiAddView handles POST /views {name, query}. It checks the query, and stores it as it is
// written. If the same view exists already, it returns that view.
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
	owner, err := viewOwner(r, in.Mine)
	if err != nil {
		return nil, err
	}
	v, err := w.Store.AddView(r.Context(), deadletter.View{
		Name:  in.Name,
		Query: in.Query,
		Owner: owner,
		By:    principal(r).Name,
	})
	if errors.Is(err, deadletter.ErrConflict) {
		list, readErr := w.Store.Views(r.Context(), principal(r).Name)
		if readErr != nil {
			return nil, readErr
		}
		for _, known := range list {
			if known.Name == in.Name && known.Query == in.Query && known.Owner == owner {
				v, err = known, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return created{api.NewView(v), "/api/v1/views/" + strconv.FormatInt(v.ID, 10)}, nil
}

// viewOwner returns the owner of a new view. This is the person who saves the view, or "" for
// everybody. If the person may see only some queues, the person is always the owner.
func viewOwner(r *http.Request, mine bool) (string, error) {
	if mine || !deadletter.ScopeOf(r.Context()).Everywhere() {
		return principal(r).Name, nil
	}
	return "", deadletter.Allow(principal(r), deadletter.VerbViews, deadletter.Origin{})
}

// removeView removes a view. People may always remove views of their own.
func (w *Web) removeView(r *http.Request, id int64) error {
	list, err := w.Store.Views(r.Context(), principal(r).Name)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(list, func(v deadletter.View) bool { return v.ID == id }); i >= 0 && list[i].Owner == "" {
		if err := deadletter.Allow(principal(r), deadletter.VerbViews, deadletter.Origin{}); err != nil {
			return err
		}
	}
	return w.Store.RemoveView(r.Context(), id, principal(r).Name)
}

// apiRemoveView handles DELETE /views/{id}.
func (w *Web) apiRemoveView(r *http.Request) (any, error) {
	id, err := pathNumber(r, "view")
	if err != nil {
		return nil, err
	}
	if w.draining() {
		return nil, errStopping
	}
	return gone{}, w.removeView(r, id)
}
