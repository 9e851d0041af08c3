package web

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
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

// listGroups returns failure groups, the most urgent first. Those whose letters need people, unless
// tab says otherwise. A query asks for what groups have (queue, type, reason, error, severity,
// status, owner, group, vhost, broker, since, before, age, words); what only letters have is an
// error.
func (w *Web) listGroups(ctx context.Context, in *struct {
	Queried
	Tab   string `query:"tab" enum:"inbox,retrying,quiet,snoozed,resolved,all" default:"inbox"`
	Order string `query:"order" enum:"urgency,letters,last,first"` // urgency; quiet: last; resolved: when
	Paging
},
) (*reply[api.Groups], error) {
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	list, next, err := w.groups(ctx, q, deadletter.GroupPage{
		Tab:   deadletter.GroupTab(in.Tab),
		Order: deadletter.GroupOrder(in.Order),
		After: in.After,
		Limit: in.Limit,
	})
	return answer(api.Groups{Groups: list, Next: next}, err)
}

// getGroup returns a group, with all that is known of it. It has the counts by state, the queues,
// sample letters, what distinguishes its letters, and its history.
func (w *Web) getGroup(ctx context.Context, in *GroupPath) (*tagged[api.GroupDetail], error) {
	g, err := w.group(ctx, *in)
	if err != nil {
		return nil, err
	}
	values, err := w.shared(ctx, &g, true)
	return &tagged[api.GroupDetail]{groupTag(g.ChangedAt), api.GroupDetail{
		Group: g, Operations: each(g.Operations, api.NewOperation), GroupValues: values,
	}}, err
}
