package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const maxViewName = 100 // maximum length in bytes

// NumberPath is the number of an object in the path of a request.
type NumberPath struct {
	ID string `path:"id"`
}

// number parses the number. If it is none, the error says that there is no such object.
func (p NumberPath) number(kind string) (int64, error) {
	n, err := strconv.ParseInt(p.ID, 10, 64)
	if err != nil || n <= 0 {
		return 0, noSuch(kind, p.ID)
	}
	return n, nil
}

// listViews returns the saved queries, by name. A view is for everybody, or for the person who
// saved it. Relative times in its query stay relative.
func (w *Web) listViews(ctx context.Context, _ *struct{}) (*reply[api.Views], error) {
	list, err := w.Store.Views(ctx, principal(ctx).Name)
	return answer(api.Views{Views: list}, err)
}

// addView saves a query under a name. It is kept as it is written, so relative times stay relative.
// The same view again is the same view; 409 when the name has another query.
func (w *Web) addView(ctx context.Context, r *struct{ Body api.ViewRequest }) (*created[deadletter.View], error) {
	in := &r.Body
	in.Name, in.Query = strings.TrimSpace(in.Name), strings.TrimSpace(in.Query)
	if in.Name == "" || len(in.Name) > maxViewName {
		return nil, invalid("a view has a name of 1 to %d bytes", maxViewName)
	}
	if _, err := query.Parse(in.Query, w.lookOptions()); err != nil {
		return nil, err
	}
	// people who may see only some queues have only views of their own
	in.Mine = in.Mine || !deadletter.ScopeOf(ctx).Everywhere()
	by := principal(ctx)
	if err := deadletter.Allow(by, deadletter.VerbViews, deadletter.Origin{}); err != nil && !in.Mine {
		return nil, err
	}
	v, err := w.Store.AddView(ctx, deadletter.View{Name: in.Name, Query: in.Query, Mine: in.Mine, By: by.Name})
	if errors.Is(err, deadletter.ErrConflict) {
		list, readErr := w.Store.Views(ctx, by.Name)
		if readErr != nil {
			return nil, readErr
		}
		for _, known := range list {
			if known.Name == in.Name && known.Query == in.Query && known.Mine == in.Mine {
				v, err = known, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return &created[deadletter.View]{fmt.Sprint("/api/v1/views/", v.ID), v}, nil
}

// readView reads what the names of the fields of a form do not say. The query is that of the list,
// and a view without a name is named after it.
func readView(r *http.Request, in *struct{ Body api.ViewRequest }) error {
	in.Body.Query = strings.TrimSpace(r.PostForm.Get("q"))
	in.Body.Name = cmp.Or(strings.TrimSpace(in.Body.Name), deadletter.Cut(in.Body.Query, maxViewName), "All letters")
	return nil
}

// afterView returns the list of the letters of a new view.
func afterView(r *http.Request, _ *created[deadletter.View]) string {
	return view.LettersURL(r.PostForm.Get("q"), "", "")
}

// removeView removes a saved query. No letter is changed. People may always remove views of their
// own.
func (w *Web) removeView(ctx context.Context, in *NumberPath) (*none, error) {
	id, err := in.number("view")
	if err != nil {
		return nil, err
	}
	list, err := w.Store.Views(ctx, principal(ctx).Name)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(list, func(v deadletter.View) bool { return v.ID == id }); i >= 0 && !list[i].Mine {
		if err := deadletter.Allow(principal(ctx), deadletter.VerbViews, deadletter.Origin{}); err != nil {
			return nil, err
		}
	}
	return nil, w.Store.RemoveView(ctx, id, principal(ctx).Name)
}
