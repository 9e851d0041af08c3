package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

func apiGroupOf(g deadletter.GroupRow) api.Group {
	out := api.Group{
		ID:        g.ID.String(),
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
		FirstSeen: api.At(g.FirstAt),
		LastSeen:  api.At(g.LastAt),
		Hours:     g.Spark,
	}
	if g.Note == "" || g.NoteBy != "" {
		out.NoteBy = &g.NoteBy
	}
	if g.Status == deadletter.GroupSnoozed {
		out.Snooze = &api.Snooze{
			Until: api.At(g.Snooze.Until),
			After: g.Snooze.After,
			Queue: g.Snooze.Queue,
			By:    g.Snooze.By,
		}
	}
	if !g.Resolved.At.IsZero() {
		out.Resolved = &api.Resolution{At: api.At(g.Resolved.At), By: g.Resolved.By, Version: g.Resolved.Version}
	}
	return out
}

// apiGroups handles GET /groups?q=&tab=&order=&limit=&after=.
func (w *Web) apiGroups(r *http.Request) (any, error) {
	form, err := parameters(r, "q", "tab", "order", "limit", "after")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(form)
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.queryOptions())
	if err != nil {
		return nil, err
	}
	list, next, err := w.groups(r.Context(), q, deadletter.GroupPage{
		Tab:   deadletter.GroupTab(form.Get("tab")),
		Order: deadletter.GroupOrder(form.Get("order")),
		After: form.Get("after"),
		Limit: limit,
	})
	return api.Groups{Groups: each(list, apiGroupOf), Next: next}, err
}

// apiGroup handles GET /groups/{id}.
func (w *Web) apiGroup(r *http.Request) (any, error) {
	g, err := w.group(r)
	if err != nil {
		return nil, err
	}
	out := api.GroupDetail{
		Group:      apiGroupOf(g.GroupRow),
		MergedInto: groupName(g.Head),
		Merged:     each(g.Merged, apiGroupOf),
		Letters:    map[string]int{},
		Rules:      append([]string{}, g.Rules...),
		Paused:     g.Paused,
		Operations: each(g.Operations, apiOperationOf),
		Deploys:    each(g.Deploys, apiDeployOf),
		History: each(g.History, func(e deadletter.Event) api.GroupEvent {
			return api.GroupEvent{At: api.At(e.At), Kind: e.Kind, By: e.Actor, Detail: e.Detail}
		}),
	}
	for state, n := range g.Letters {
		out.Letters[string(state)] = n
	}
	if g.Suspect != nil {
		suspect := apiDeployOf(*g.Suspect)
		out.Suspect = &suspect
	}
	v, err := w.shared(r, &g.GroupRow, true)
	out.Shared, out.Sampled = each(v.Shared, func(s view.Shared) api.Shared { return api.Shared(s) }), v.Sampled
	out.Different, out.Quiet = each(
		v.Different, func(d view.Different) api.Different { return api.Different(d) },
	), v.Quiet
	return tagged{out, groupTag(g.ChangedAt)}, err
}
