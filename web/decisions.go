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

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

func decisionOf(c *api.Change, now time.Time) (deadletter.Decision, error) {
	d := deadletter.Decision{
		Owner:    c.Owner,
		Severity: c.Severity,
		Ticket:   c.Ticket,
		Note:     strings.TrimSpace(c.Note),
		Reopen:   c.Reopen,
	}
	if c.Snooze != nil {
		d.Snooze = &deadletter.Snooze{Until: c.Snooze.Until, After: c.Snooze.After, Queue: c.Snooze.Queue}
		if c.Snooze.For != "" {
			if !c.Snooze.Until.IsZero() {
				return d, invalid("a snooze has until or for, not both")
			}
			in, err := deadletter.ParseDuration(c.Snooze.For)
			if err != nil {
				return d, invalid(
					"%q is not a duration, for example 2h or 90m", deadletter.Visible(deadletter.Cut(c.Snooze.For, 40)),
				)
			}
			d.Snooze.Until = now.Add(in)
		}
	}
	if c.Resolve != nil {
		d.Resolve = &deadletter.Resolution{Version: strings.TrimSpace(c.Resolve.Version)}
	}
	return d, nil
}

// changeGroup decides about a group. Snooze, resolve and reopen go one at a time. 409 for a group
// that is merged into another.
func (w *Web) changeGroup(ctx context.Context, in *struct {
	GroupPath
	Matching
	Body api.Change
},
) (*reply[deadletter.Decided], error) {
	id, err := in.group()
	if err != nil {
		return nil, err
	}
	return w.decideAs(ctx, &in.Body, []deadletter.GroupID{id}, in.Matching)
}

type groupsIn struct {
	Matching
	Body api.GroupsChange
}

// decideGroups decides about several groups at once. As PATCH /groups/{id}; one undo takes all of
// it back. 404 changes nothing; a group that the decision does not fit is skipped.
func (w *Web) decideGroups(ctx context.Context, in *groupsIn) (*reply[deadletter.Decided], error) {
	groups, err := groupIDs(in.Body.Groups)
	if err != nil {
		return nil, err
	}
	return w.decideAs(ctx, &in.Body.Change, groups, in.Matching)
}

const maxDecided = 1000 // maximum number of groups in one decision

// groupIDs parses group names such as G-418.
func groupIDs(names []string) ([]deadletter.GroupID, error) {
	if len(names) > maxDecided {
		return nil, invalid("at most %d groups can be decided on at once", maxDecided)
	}
	return idsOf(names, deadletter.ParseGroupID)
}

func (w *Web) decideAs(
	ctx context.Context, c *api.Change, groups []deadletter.GroupID, known Matching,
) (*reply[deadletter.Decided], error) {
	d, err := decisionOf(c, w.Now())
	if err != nil {
		return nil, err
	}
	d.Groups = groups
	if len(groups) == 1 {
		if d.Unchanged, err = known.time(); err != nil {
			return nil, err
		}
	}
	return answer(w.decide(ctx, d))
}

type mergeIn struct {
	GroupPath
	Body api.MergeRequest
}

// mergeGroups shows other groups as this one. Their letters are counted and found here; new ones of
// theirs too. Split, or the undo of the decision, makes them groups again.
func (w *Web) mergeGroups(ctx context.Context, in *mergeIn) (*reply[deadletter.Decided], error) {
	id, err := in.group()
	if err != nil {
		return nil, err
	}
	groups, err := groupIDs(in.Body.Groups)
	if err != nil {
		return nil, err
	}
	return answer(w.decide(ctx, deadletter.Decision{Groups: groups, Into: id}))
}

// readMerge reads a form that merges groups. If the form does not name the group that stays, the
// others are merged into the first one, as in the list of Triage.
func readMerge(_ *http.Request, in *mergeIn) error {
	if in.ID != "" {
		return nil
	}
	if len(in.Body.Groups) < 2 {
		return invalid("tick two or more groups to merge them")
	}
	in.ID, in.Body.Groups = in.Body.Groups[0], in.Body.Groups[1:]
	return nil
}

// splitGroup splits a group off again that was merged into another. Groups that were merged into it
// are on their own again.
func (w *Web) splitGroup(ctx context.Context, in *GroupPath) (*reply[deadletter.Decided], error) {
	id, err := in.group()
	if err != nil {
		return nil, err
	}
	return answer(w.decide(ctx, deadletter.Decision{Groups: []deadletter.GroupID{id}, Split: true}))
}

// decidedSince is how long decisions are listed.
const decidedSince = 7 * 24 * time.Hour

// listDecisions returns what was decided on groups in the last seven days. The newest comes first;
// at most 200 are returned.
func (w *Web) listDecisions(ctx context.Context, _ *struct{}) (*reply[api.Decisions], error) {
	list, err := w.Store.Decisions(ctx, w.Now().Add(-decidedSince), 200)
	return answer(api.Decisions{Decisions: list}, err)
}

// undoDecision takes a decision back. For those of its groups that have not changed since; 409 when
// none is left, or it was undone already.
func (w *Web) undoDecision(ctx context.Context, in *NumberPath) (*reply[deadletter.Decided], error) {
	id, err := in.number("decision")
	if err != nil {
		return nil, err
	}
	d, err := w.Store.Decision(ctx, id)
	if err == nil {
		err = w.mayDecide(ctx, d.Groups)
	}
	if err != nil {
		return nil, err
	}
	return answer(w.Store.Undo(ctx, id, principal(ctx).Name))
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

// readDecision reads the action that the button of a form names, and its fields. Such a form may
// have the fields of other actions too. Not all of them have the names of members.
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
		if at, err := time.Parse(time.RFC3339, c.Snooze.For); err == nil {
			c.Snooze.For, c.Snooze.Until = "", at
		}
		if text := form.Get("until"); text != "" {
			at, err := time.Parse("2006-01-02T15:04", text)
			if err != nil {
				return invalid("the end of the snooze is a day and a time such as 2026-11-30T08:30")
			}
			c.Snooze.For, c.Snooze.Until = "", at
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

// hideDecision masks the title of a decision.
func (w *Web) hideDecision(d *deadletter.Decided) { d.Title, _ = w.Header("", d.Title) }

// decisions returns recent decisions, masked.
func (w *Web) decisions(ctx context.Context, since time.Time, n int) ([]deadletter.Decided, error) {
	list, err := w.Store.Decisions(ctx, since, n)
	for i := range list {
		w.hideDecision(&list[i])
	}
	return list, err
}

// decide records a decision of a person about groups.
func (w *Web) decide(ctx context.Context, d deadletter.Decision) (deadletter.Decided, error) {
	groups := d.Groups
	if d.Into != 0 {
		groups = append(slices.Clone(groups), d.Into)
	}
	if err := w.mayDecide(ctx, groups); err != nil {
		return deadletter.Decided{}, err
	}
	d.By = principal(ctx).Name
	return w.Store.Decide(ctx, d)
}

// mayDecide returns an error if the caller may not decide on the given groups, or on a group that
// is merged with one of them.
func (w *Web) mayDecide(ctx context.Context, groups []deadletter.GroupID) error {
	by := principal(ctx)
	if by.MayToAll(deadletter.VerbTriage) {
		return nil
	}
	places, err := w.Store.GroupPlaces(ctx, groups...)
	if err != nil {
		return err
	}
	for _, o := range places {
		if err := deadletter.Allow(by, deadletter.VerbTriage, o); err != nil {
			return err
		}
	}
	return nil
}
