package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

func apiGroupOf(g deadletter.GroupRow) api.Group {
	out := api.Group{
		ID:        g.ID,
		Title:     g.Title,
		Broker:    g.Broker,
		VHost:     g.VHost,
		Queue:     g.Queue,
		Type:      g.Type,
		Reason:    g.Reason,
		Error:     g.Error,
		Severity:  string(g.Severity),
		Chosen:    g.Chosen,
		Status:    string(g.Status),
		Owner:     g.Owner,
		Ticket:    g.Ticket,
		Note:      g.Note,
		Count:     g.Count,
		Waiting:   g.Waiting,
		Overdue:   g.Overdue,
		Failing:   g.Failing,
		FirstSeen: g.FirstAt,
		LastSeen:  g.LastAt,
		Hours:     g.Spark,
	}
	if g.Note == "" || g.NoteBy != "" {
		out.NoteBy = &g.NoteBy
	}
	if g.Status == deadletter.GroupSnoozed {
		out.Snooze = &api.Snooze{
			Until: g.Snooze.Until,
			After: g.Snooze.After,
			Queue: g.Snooze.Queue,
			By:    g.Snooze.By,
		}
	}
	if !g.Resolved.At.IsZero() {
		out.Resolved = &api.Resolution{At: g.Resolved.At, By: g.Resolved.By, Version: g.Resolved.Version}
	}
	return out
}

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
	return answer(api.Groups{Groups: each(list, apiGroupOf), Next: next}, err)
}

// getGroup returns a group, with all that is known of it. It has the counts by state, the queues,
// sample letters, what distinguishes its letters, and its history.
func (w *Web) getGroup(ctx context.Context, in *GroupPath) (*tagged[api.GroupDetail], error) {
	g, err := w.group(ctx, *in)
	if err != nil {
		return nil, err
	}
	out := api.GroupDetail{
		Group:      apiGroupOf(g.GroupRow),
		MergedInto: g.Head,
		Merged:     each(g.Merged, apiGroupOf),
		Letters:    g.Letters,
		Rules:      g.Rules,
		Paused:     g.Paused,
		Operations: each(g.Operations, api.NewOperation),
		Deploys:    g.Deploys,
		History:    g.History,
		Suspect:    g.Suspect,
	}
	v, err := w.shared(ctx, &g.GroupRow, true)
	out.Shared, out.Sampled = each(v.Shared, func(s view.Shared) api.Shared { return api.Shared(s) }), v.Sampled
	out.Different, out.Quiet = each(
		v.Different, func(d view.Different) api.Different { return api.Different(d) },
	), v.Quiet
	return &tagged[api.GroupDetail]{groupTag(g.ChangedAt), out}, err
}
