package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	triageRows   = 50 // the maximum number of groups on a page
	settledShown = 6  // the maximum number of operations and decisions shown since the last digest
)

// triage handles GET /triage?tab=&q=&after=. After a decision, the URL also contains the parameters
// "done" and "left". After a digest was sent, it contains the parameter "sent".
func (w *Web) triage(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	ctx := r.Context()
	p := view.TriagePage{
		Shell: w.shell(r, "Triage", view.SectionTriage),
		Tab:   view.ParseTriageTab(form.Get("tab")),
		Query: strings.TrimSpace(form.Get("q")),
		After: form.Get("after"),
	}
	var err error
	if p.Done, err = w.justDecided(r); err != nil {
		return nil, err
	}
	q, err := query.Parse(p.Query, w.queryOptions())
	if errors.As(err, &p.QueryError) {
		return view.Triage(p), err
	}
	if p.Halted, err = w.Store.HaltedOperations(ctx); err != nil {
		return nil, err
	}
	if p.InRetry, err = w.inRetry(ctx); err != nil {
		return nil, err
	}
	if p.Tab == view.TriageDigest {
		return w.digestTab(r, p)
	}
	if p.DigestSize, err = w.Digests.Size(ctx); err != nil {
		return nil, err
	}
	page := deadletter.GroupPage{Limit: triageRows, After: p.After}
	switch p.Tab {
	case view.TriageMine:
		q = q.With(query.Owner, principal(r.Context()).Name)
	case view.TriageRetrying:
		page.Tab = deadletter.TabRetrying
	case view.TriageQuiet:
		page.Tab = deadletter.TabQuiet
	case view.TriageSnoozed:
		page.Tab = deadletter.TabSnoozed
	case view.TriageResolved:
		page.Tab = deadletter.TabResolved
	}
	if p.Rows, p.Next, err = w.groups(ctx, q, page); err != nil {
		return nil, err
	}
	if p.WorkedOn, err = w.Store.WorkedOn(ctx); err != nil {
		return nil, err
	}
	if len(p.Rows) == 0 {
		now := w.Now()
		p.Decisions, err = w.decisions(ctx, now.Add(-24*time.Hour), 20)
		return view.Triage(p), err
	}
	first, err := w.Store.Group(ctx, p.Rows[0].ID)
	if err != nil {
		return nil, err
	}
	peek, err := w.groupView(r, first, false)
	if err != nil {
		return nil, err
	}
	p.Peek, p.Morning = &peek, peek.Morning
	p.People, err = w.assignees(r)
	return view.Triage(p), err
}

// digestTab returns the tab with the digest. It shows the text that would be sent now.
func (w *Web) digestTab(r *http.Request, p view.TriagePage) (templ.Component, error) {
	d, err := w.digestNow(r.Context())
	if err != nil {
		return nil, err
	}
	p.DigestSize, p.Digest = d.Groups, &view.DigestView{Digest: d}
	if deadletter.ScopeOf(r.Context()).Everywhere() {
		p.Digest.Next, p.Digest.Channels = w.Digests.Next()
	}
	if p.Digest.Fixed, err = w.fixedByDeploys(r.Context(), d.Lines); err != nil {
		return nil, err
	}
	if r.URL.Query().Get("sent") != "" && len(p.Digest.Channels) > 0 {
		p.Done = &view.Done{Text: "The digest is on its way to " + strings.Join(p.Digest.Channels, ", ")}
	}
	if p.Digest.Sent, _, err = w.Digests.Last(r.Context()); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return nil, err
	}
	if p.Digest.Decisions, err = w.decisions(r.Context(), d.From, settledShown); err != nil {
		return nil, err
	}
	p.Digest.Operations, err = w.Store.Operations(r.Context(), 0, settledShown)
	p.Digest.Operations = slices.DeleteFunc(
		p.Digest.Operations, func(o deadletter.Operation) bool { return o.CreatedAt.Before(d.From) },
	)
	return view.Triage(p), err
}

// fixedByDeploys returns the quiet groups that a deploy may have fixed. For each group, it returns
// the first deploy after the last death in the group.
func (w *Web) fixedByDeploys(
	ctx context.Context, lines []deadletter.DigestLine,
) (map[deadletter.GroupID]deadletter.Deploy, error) {
	fixed := map[deadletter.GroupID]deadletter.Deploy{}
	for _, l := range lines {
		if l.Group.Failing {
			continue
		}
		deploy, err := w.Store.DeployEnding(ctx, l.Group.ID, l.Group.LastAt)
		if err != nil {
			return nil, err
		}
		if deploy != nil {
			fixed[l.Group.ID] = *deploy
		}
	}
	return fixed, nil
}

// confirmGroups handles POST /triage/confirm. It shows the plan of an action on the letters of the
// chosen groups. The plan covers all letters of these groups that wait for a decision of a person.
func (w *Web) confirmGroups(r *http.Request) (templ.Component, error) {
	for _, verb := range []string{string(deadletter.VerbRequeue), string(deadletter.VerbDiscard)} {
		// the button of a row acts on that row only, even if other rows are ticked
		if only := r.PostForm[verb]; only != nil {
			r.PostForm["action"], r.PostForm["groups"] = []string{verb}, only
		}
	}
	if len(r.PostForm["groups"]) == 0 {
		return nil, invalid("tick a group first")
	}
	groups, err := groupIDs(r.PostForm["groups"])
	if err != nil {
		return nil, err
	}
	q := (query.Query{}).With(
		query.State, string(deadletter.StateDead), string(deadletter.StateHeld),
	).With(query.Group, each(groups, deadletter.GroupID.String)...)
	r.PostForm = url.Values{
		"action": r.PostForm["action"],
		"return": r.PostForm["return"],
		"scope":  {"all"},
		"q":      {q.String()},
		"until":  {w.Store.AsOf(w.Now()).UTC().Format(time.RFC3339Nano)},
	}
	r.Form = r.PostForm
	return w.confirm(r)
}
