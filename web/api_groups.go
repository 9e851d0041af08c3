package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

func apiGroupOf(g deadletter.GroupRow) api.Group {
	out := api.Group{
		ID: g.ID.String(), Title: g.Title, Broker: g.Broker, VHost: g.VHost, Queue: g.Queue, Type: g.Type, Reason: g.Reason, Error: g.Error, Severity: string(g.Severity), Chosen: g.Chosen,
		Status: string(g.Status), Owner: g.Owner, Ticket: g.Ticket, Note: g.Note, Count: g.Count, Waiting: g.Waiting, FirstSeen: g.FirstAt, LastSeen: g.LastAt, Hours: g.Spark,
	}
	if g.Status == deadletter.GroupSnoozed {
		out.Snooze = &api.Snooze{Until: g.Snooze.Until, After: g.Snooze.After, Queue: g.Snooze.Queue, By: g.Snooze.By}
	}
	if !g.Resolved.At.IsZero() {
		out.Resolved = &api.Resolution{At: g.Resolved.At, By: g.Resolved.By, Version: g.Resolved.Version}
	}
	return out
}

// apiGroups is GET /groups?q=&tab=&order=&limit=&after=.
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
		Tab: deadletter.GroupTab(form.Get("tab")), Order: deadletter.GroupOrder(form.Get("order")), After: form.Get("after"), Limit: limit,
	})
	out := api.Groups{Groups: []api.Group{}, Next: next}
	for _, g := range list {
		out.Groups = append(out.Groups, apiGroupOf(g))
	}
	return out, err
}

// apiGroup is GET /groups/{id}.
func (w *Web) apiGroup(r *http.Request) (any, error) {
	g, err := w.group(r)
	if err != nil {
		return nil, err
	}
	out := api.GroupDetail{
		Group: apiGroupOf(g.GroupRow), Merged: []api.Group{}, Letters: map[string]int{}, Rules: append([]string{}, g.Rules...), Paused: g.Paused, History: []api.GroupEvent{},
		Operations: []api.Operation{}, Deploys: []api.Deploy{}, Shared: []api.Shared{},
	}
	if g.Head != 0 {
		out.MergedInto = g.Head.String()
	}
	for _, m := range g.Merged {
		out.Merged = append(out.Merged, apiGroupOf(m))
	}
	for state, n := range g.Letters {
		out.Letters[string(state)] = n
	}
	for _, e := range g.History {
		out.History = append(out.History, api.GroupEvent{At: e.At, Kind: e.Kind, By: e.Actor, Detail: e.Detail})
	}
	for i := range g.Operations {
		out.Operations = append(out.Operations, apiOperationOf(g.Operations[i]))
	}
	for _, d := range g.Deploys {
		out.Deploys = append(out.Deploys, apiDeployOf(d))
	}
	if g.Suspect != nil {
		suspect := apiDeployOf(*g.Suspect)
		out.Suspect = &suspect
	}
	shared, sampled, err := w.shared(r, g.ID)
	for _, s := range shared {
		out.Shared = append(out.Shared, api.Shared(s))
	}
	out.Sampled = sampled
	return out, err
}
