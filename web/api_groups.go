package web

import (
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// apiGroupRow is a failure group in lists.
type apiGroupRow struct {
	ID        string         `json:"id"`
	Title     string         `json:"title"`
	Broker    string         `json:"broker"`
	VHost     string         `json:"vhost"`
	Queue     string         `json:"queue"`
	Type      string         `json:"type"`
	Reason    string         `json:"reason"`
	Error     string         `json:"error"`
	Severity  string         `json:"severity"`
	Chosen    bool           `json:"severity_chosen"` // by a person
	Status    string         `json:"status"`
	Owner     string         `json:"owner"`
	Ticket    string         `json:"ticket"`
	Note      string         `json:"note"`
	Snooze    *apiSnooze     `json:"snooze,omitempty"`
	Resolved  *apiResolution `json:"resolved,omitempty"`
	Count     int            `json:"count"` // letters now dead or held
	Waiting   int            `json:"waiting"`
	FirstSeen time.Time      `json:"first_seen"`
	LastSeen  time.Time      `json:"last_seen"`
	Hours     []int          `json:"hours"` // letters received in each of the last 24 hours, oldest first
}

type apiSnooze struct {
	Until time.Time `json:"until"`
	After int       `json:"after,omitempty"`
	Queue bool      `json:"queue,omitempty"`
	By    string    `json:"by"`
}

type apiResolution struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Version string    `json:"version,omitempty"`
}

func apiGroupOf(g deadletter.GroupRow) apiGroupRow {
	out := apiGroupRow{
		ID: g.ID.String(), Title: g.Title, Broker: g.Broker, VHost: g.VHost, Queue: g.Queue, Type: g.Type, Reason: g.Reason, Error: g.Error, Severity: string(g.Severity), Chosen: g.Chosen,
		Status: string(g.Status), Owner: g.Owner, Ticket: g.Ticket, Note: g.Note, Count: g.Count, Waiting: g.Waiting, FirstSeen: g.FirstAt, LastSeen: g.LastAt, Hours: g.Spark,
	}
	if g.Status == deadletter.GroupSnoozed {
		out.Snooze = &apiSnooze{g.Snooze.Until, g.Snooze.After, g.Snooze.Queue, g.Snooze.By}
	}
	if !g.Resolved.At.IsZero() {
		out.Resolved = &apiResolution{g.Resolved.At, g.Resolved.By, g.Resolved.Version}
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
	out := struct {
		Groups []apiGroupRow `json:"groups"`
		Next   string        `json:"next,omitempty"`
	}{[]apiGroupRow{}, next}
	for _, g := range list {
		out.Groups = append(out.Groups, apiGroupOf(g))
	}
	return out, err
}

// apiGroupWhole is a group with all that is known of it.
type apiGroupWhole struct {
	apiGroupRow
	MergedInto string          `json:"merged_into,omitempty"`
	Merged     []apiGroupRow   `json:"merged"`
	Letters    map[string]int  `json:"letters"` // by state
	Rules      []string        `json:"rules"`
	Paused     bool            `json:"paused"`
	History    []apiGroupEvent `json:"history"`
	Operations []apiOperation  `json:"operations"`
	Deploys    []apiDeploy     `json:"deploys"`
	Suspect    *apiDeploy      `json:"suspect,omitempty"`
	Shared     []apiShared     `json:"shared"`
	Sampled    int             `json:"sampled"` // letters that shared was read from
}

type apiGroupEvent struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	By     string    `json:"by"`
	Detail string    `json:"detail"`
}

// apiShared is what letters of a group have in common: a header or a field of the body, and the value that most of them have.
type apiShared struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Letters int    `json:"letters"`
	Values  int    `json:"values"` // different ones
}

// apiGroup is GET /groups/{id}.
func (w *Web) apiGroup(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	g, err := w.group(r)
	if err != nil {
		return nil, err
	}
	out := apiGroupWhole{
		apiGroupRow: apiGroupOf(g.GroupRow), Merged: []apiGroupRow{}, Letters: map[string]int{}, Rules: append([]string{}, g.Rules...), Paused: g.Paused, History: []apiGroupEvent{},
		Operations: []apiOperation{}, Deploys: []apiDeploy{}, Shared: []apiShared{},
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
		out.History = append(out.History, apiGroupEvent{e.At, e.Kind, e.Actor, e.Detail})
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
		out.Shared = append(out.Shared, apiShared(s))
	}
	out.Sampled = sampled
	return out, err
}
