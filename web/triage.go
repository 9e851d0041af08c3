package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	triageRows   = 100 // the maximum number of groups on a page
	settledShown = 6   // the maximum number of operations and decisions shown since the last digest
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
	p.Peek = &peek
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

// justDecided returns the decision that the reader has just made. The URL contains only the id of
// the decision. The text comes from the store.
func (w *Web) justDecided(r *http.Request) (*view.Done, error) {
	form := r.URL.Query()
	id, err := strconv.ParseInt(form.Get("done"), 10, 64)
	if err != nil {
		return nil, nil
	}
	d, err := w.Store.Decision(r.Context(), id)
	w.hideDecision(&d)
	if errors.Is(err, deadletter.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range strings.SplitN(form.Get("left"), ",", triageRows+1) {
		if id, err := deadletter.ParseGroupID(name); err == nil {
			d.Skipped = append(d.Skipped, deadletter.Skipped{Group: id})
			// the undo left this group unchanged
			d.Groups = slices.DeleteFunc(d.Groups, func(g deadletter.GroupID) bool { return g == id })
		}
	}
	if len(d.Groups) == 0 {
		return nil, nil
	}
	if !d.UndoneAt.IsZero() {
		return &view.Done{
			Text:   "Undone: " + view.DecidedWords(d),
			Undone: strings.Join(each(d.Groups, deadletter.GroupID.String), " "),
		}, nil
	}
	done := &view.Done{Decision: id, Text: view.DecidedWords(d)}
	if d.Kind == deadletter.ActResolved {
		q := (query.Query{}).With(
			query.State, string(deadletter.StateDead), string(deadletter.StateHeld),
		).With(query.Group, each(d.Groups, deadletter.GroupID.String)...)
		n, _, err := w.Store.Count(r.Context(), q, 0)
		if err != nil {
			return nil, err
		}
		done.Text += view.StayWords(n)
	}
	return done, nil
}

// afterDecision returns the page that the reader returns to after a decision, with the id of the
// decision in its URL.
func afterDecision(r *http.Request, d *reply[deadletter.Decided]) string {
	u, err := url.Parse(localPath(backTo(r, "/triage")))
	if err != nil {
		u = &url.URL{Path: "/triage"}
	}
	v := u.Query()
	v.Set("done", strconv.FormatInt(d.Body.ID, 10))
	v.Del("left")
	if left := d.Body.Skipped; len(left) > 0 {
		v.Set("left", strings.Join(each(left, func(s deadletter.Skipped) string { return s.Group.String() }), ","))
	}
	u.RawQuery = v.Encode()
	return u.String()
}

// readDecision reads the action that the button of a form names, and its fields. Such a form may have
// the fields of other actions too. Not all of them have the names of members.
func (w *Web) readDecision(r *http.Request, in *groupsIn) error {
	form, typed, c := r.PostForm, in.Body.Change, &in.Body.Change
	for _, text := range []*string{typed.Owner, typed.Ticket} {
		if text != nil {
			*text = strings.TrimSpace(*text)
		}
	}
	*c = api.Change{}
	switch form.Get("do") {
	case "resolve":
		c.Resolve = &api.ResolveChange{Version: form.Get("version")}
	case "reopen":
		c.Reopen = true
	case "assign":
		c.Owner = typed.Owner
	case "mine":
		c.Owner = new(principal(r.Context()).Name)
	case "snooze":
		c.Snooze = &api.SnoozeChange{For: form.Get("for"), Queue: form.Get("another_queue") != ""}
		if c.Snooze.For == "morning" {
			c.Snooze.For, c.Snooze.Until = "", w.nextDigest(w.Now())
		}
		if text := strings.TrimSpace(form.Get("after_letters")); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return invalid("more letters must be a number, for example 20")
			}
			c.Snooze.After = n
		}
	case "change":
		*c = typed
	default:
		return invalid("no action was chosen for the groups")
	}
	return nil
}

// nextDigest returns the time at which the next digest is due. If no digest is configured, it
// returns half past eight tomorrow in UTC.
func (w *Web) nextDigest(now time.Time) time.Time {
	if at, _ := w.Digests.Next(); !at.IsZero() {
		return at
	}
	y, m, d := now.UTC().Date()
	return time.Date(y, m, d+1, 8, 30, 0, 0, time.UTC)
}

// confirmGroups handles POST /triage/confirm. It shows the plan of an action on the letters of the
// chosen groups. The plan covers all letters of these groups that wait for a decision of a person.
func (w *Web) confirmGroups(r *http.Request) (templ.Component, error) {
	if err := r.ParseForm(); err != nil {
		return nil, formError(err)
	}
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
