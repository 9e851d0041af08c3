package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// listGroups returns failure groups, the most urgent first. Those whose letters need people, unless
// tab says otherwise. A query asks for what groups have (queue, type, reason, error, severity,
// status, owner, group, vhost, broker, since, before, age, words); what only letters have is an
// error.
func (w *Web) listGroups(ctx context.Context, in *struct {
	Queried
	Tab   string `query:"tab" enum:"inbox,snoozed,resolved,all" default:"inbox"`
	Order string `query:"order" enum:"urgency,letters,last,first"` // urgency, or when resolved
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
	values, err := w.shared(ctx, &g.GroupRow, true)
	return &tagged[api.GroupDetail]{groupTag(g.ChangedAt), api.GroupDetail{
		Group: g, Operations: each(g.Operations, api.NewOperation), GroupValues: values,
	}}, err
}
