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

// afterDecision returns the page that the reader returns to after a decision.
func afterDecision(r *http.Request, d *reply[deadletter.Decided]) string {
	return doneAt(backTo(r, "/triage"), d.Body)
}

// doneAt adds the id of a decision to the path of the page that the reader returns to.
func doneAt(path string, d deadletter.Decided) string {
	u, err := url.Parse(localPath(path))
	if err != nil {
		u = &url.URL{Path: "/triage"}
	}
	v := u.Query()
	v.Set("done", strconv.FormatInt(d.ID, 10))
	v.Del("left")
	if len(d.Skipped) > 0 {
		v.Set("left", strings.Join(each(d.Skipped, func(s deadletter.Skipped) string { return s.Group.String() }), ","))
	}
	u.RawQuery = v.Encode()
	return u.String()
}

// decideForm handles POST /triage. It records the decision of a form for the chosen groups.
func (w *Web) decideForm(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	d, err := w.formDecision(r)
	if err != nil {
		return "", err
	}
	if d.Groups, err = formGroups(r); err != nil {
		return "", err
	}
	done, err := w.decide(r.Context(), d)
	if err != nil {
		return "", err
	}
	return doneAt(backTo(r, "/triage"), done), nil
}

// formGroups returns the ticked groups of a form.
func formGroups(r *http.Request) ([]deadletter.GroupID, error) {
	if len(r.PostForm["id"]) == 0 {
		return nil, invalid("tick a group first")
	}
	return groupIDs(r.PostForm["id"])
}

func (w *Web) formDecision(r *http.Request) (deadletter.Decision, error) {
	var d deadletter.Decision
	value := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	switch do := value("do"); do {
	case "resolve":
		d.Resolve = &deadletter.Resolution{Version: value("version")}
	case "reopen":
		d.Reopen = true
	case "split":
		d.Split = true
	case "merge":
		into, err := deadletter.ParseGroupID(value("into"))
		if err != nil {
			return d, err
		}
		d.Into = into
	case "assign":
		owner := value("owner")
		d.Owner = &owner
	case "mine":
		d.Owner = new(principal(r.Context()).Name)
	case "snooze":
		return w.formSnooze(r)
	case "change":
		// The decision contains only values that the person has changed, because somebody else may
		// have changed the other values in the meantime.
		if owner := value("owner"); owner != value("was_owner") {
			d.Owner = &owner
		}
		if ticket := value("ticket"); ticket != value("was_ticket") {
			d.Ticket = &ticket
		}
		if severity := deadletter.Severity(value("severity")); string(severity) != value("was_severity") {
			d.Severity = &severity
		}
		d.Note = strings.ReplaceAll(value("note"), "\r\n", "\n")
	default:
		return d, invalid("no action was chosen for the groups")
	}
	return d, nil
}

// formSnooze parses the end of a snooze.
func (w *Web) formSnooze(r *http.Request) (deadletter.Decision, error) {
	s := &deadletter.Snooze{Queue: r.PostFormValue("another_queue") != ""}
	if text := strings.TrimSpace(r.PostFormValue("after_letters")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return deadletter.Decision{}, invalid("more letters must be a number, for example 20")
		}
		s.After = n
	}
	now := w.Now()
	switch text := r.PostFormValue("for"); text {
	case "":
	case "morning":
		s.Until = w.nextDigest(now)
	default:
		in, err := deadletter.ParseDuration(text)
		if err != nil {
			return deadletter.Decision{}, invalid(
				"%q is not a duration, for example 4h", deadletter.Visible(deadletter.Cut(text, 40)),
			)
		}
		s.Until = now.Add(in)
	}
	return deadletter.Decision{Snooze: s}, nil
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
			r.PostForm["action"], r.PostForm["id"] = []string{verb}, only
		}
	}
	groups, err := formGroups(r)
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
