package web

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// Digester makes digests, and sends them when a person requests it.
type Digester interface {
	// the digest for the time since the last one was due
	Now(ctx context.Context) (deadletter.Digest, error)
	// number of groups in that digest; may be slightly out of date
	Size(ctx context.Context) (groups int, err error)
	// sends the digest, even if it is not due
	Send(ctx context.Context, by deadletter.Principal) (channels []string, err error)
	// time and channels of the next digest; zero = there is none
	Next() (at time.Time, channels []string)
	// the last digest that was sent; ErrNotFound before the first one
	Last(ctx context.Context) (day string, d deadletter.Digest, err error)
}

// hideGroup masks the texts about a group.
func (w *Web) hideGroup(g *deadletter.GroupRow) {
	g.Title, _ = w.Header("", g.Title)
	g.Error, _ = w.Header("", g.Error)
}

// groups returns a page of groups, masked.
func (w *Web) groups(
	ctx context.Context, q query.Query, p deadletter.GroupPage,
) ([]deadletter.GroupRow, string, error) {
	list, next, err := w.Store.Groups(ctx, q, p)
	for i := range list {
		w.hideGroup(&list[i])
	}
	return list, next, err
}

// groupNames returns the titles of groups, without masked values. It omits groups that do not
// exist.
func (w *Web) groupNames(ctx context.Context, ids []string) ([]view.GroupName, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, _, err := w.groups(ctx, (query.Query{}).With(query.Group, ids...), deadletter.GroupPage{
		Tab:   deadletter.TabAll,
		Limit: triageRows,
	})
	return each(
		list, func(g deadletter.GroupRow) view.GroupName { return view.GroupName{ID: g.ID, Title: g.Title} },
	), err
}

// group returns the group whose id is in the path, without its masked values.
func (w *Web) group(ctx context.Context, in GroupPath) (deadletter.Group, error) {
	id, err := in.group()
	if err != nil {
		return deadletter.Group{}, err
	}
	g, err := w.Store.Group(ctx, id)
	w.hideGroup(&g.GroupRow)
	for i := range g.Merged {
		w.hideGroup(&g.Merged[i])
	}
	return g, err
}
