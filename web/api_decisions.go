package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
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
		d.Snooze = &deadletter.Snooze{Until: c.Snooze.Until.Time, After: c.Snooze.After, Queue: c.Snooze.Queue}
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

func groupsDecided(d deadletter.Decided) api.Decision {
	out := api.Decision{
		ID:     d.ID,
		Kind:   d.Kind,
		Detail: d.Detail,
		By:     d.By,
		At:     api.At(d.At),
		Groups: each(d.Groups, deadletter.GroupID.String),
	}
	for _, s := range d.Skipped {
		out.Skipped = append(out.Skipped, api.LeftAlone{Group: s.Group.String(), Why: s.Why})
	}
	out.Undone = api.IfKnown(d.UndoneAt)
	return out
}

// apiChangeGroup handles PATCH /groups/{id}.
func (w *Web) apiChangeGroup(r *http.Request) (any, error) {
	id, err := pathGroup(r)
	if err != nil {
		return nil, err
	}
	var in api.Change
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	return w.apiDecide(r, &in, []deadletter.GroupID{id})
}

// apiDecideGroups handles POST /groups/decisions {groups, …}. It makes one decision about several
// groups. One undo reverts the decision for all of them.
func (w *Web) apiDecideGroups(r *http.Request, in api.GroupsChange) (any, error) {
	groups, err := groupIDs(in.Groups)
	if err != nil {
		return nil, err
	}
	return w.apiDecide(r, &in.Change, groups)
}

const maxDecided = 1000 // maximum number of groups in one decision

// groupIDs parses group names such as G-418.
func groupIDs(names []string) ([]deadletter.GroupID, error) {
	if len(names) > maxDecided {
		return nil, invalid("at most %d groups can be decided on at once", maxDecided)
	}
	var ids []deadletter.GroupID
	for _, name := range names {
		id, err := deadletter.ParseGroupID(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (w *Web) apiDecide(r *http.Request, c *api.Change, groups []deadletter.GroupID) (any, error) {
	d, err := decisionOf(c, w.Now())
	if err != nil {
		return nil, err
	}
	d.Groups = groups
	if len(groups) == 1 {
		if d.Unchanged, err = ifMatchTime(r); err != nil {
			return nil, err
		}
	}
	done, err := w.decide(r, d)
	return groupsDecided(done), err
}

// apiMergeGroups handles POST /groups/{id}/merge {groups}. After that, the given groups are shown
// together with the group {id}, as one group.
func (w *Web) apiMergeGroups(r *http.Request) (any, error) {
	id, err := pathGroup(r)
	if err != nil {
		return nil, err
	}
	var in api.MergeRequest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	groups, err := groupIDs(in.Groups)
	if err != nil {
		return nil, err
	}
	done, err := w.decide(r, deadletter.Decision{Groups: groups, Into: id})
	return groupsDecided(done), err
}

// apiSplitGroup handles POST /groups/{id}/split. It separates a group from the group into which it
// was merged.
func (w *Web) apiSplitGroup(r *http.Request) (any, error) {
	id, err := pathGroup(r)
	if err != nil {
		return nil, err
	}
	done, err := w.decide(r, deadletter.Decision{Groups: []deadletter.GroupID{id}, Split: true})
	return groupsDecided(done), err
}

// decidedSince is how long decisions are listed.
const decidedSince = 7 * 24 * time.Hour

// apiDecisions handles GET /groups/decisions. It returns the decisions of the last seven days,
// newest first, at most 200.
func (w *Web) apiDecisions(r *http.Request) (any, error) {
	list, err := w.Store.Decisions(r.Context(), w.Now().Add(-decidedSince), 200)
	return api.Decisions{Decisions: each(list, groupsDecided)}, err
}

// apiUndo handles POST /groups/decisions/{id}/undo.
func (w *Web) apiUndo(r *http.Request) (any, error) {
	id, err := pathNumber(r, "decision")
	if err != nil {
		return nil, err
	}
	done, err := w.undo(r, id)
	return groupsDecided(done), err
}
