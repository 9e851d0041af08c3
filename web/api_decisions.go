package web

import (
	"context"
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

// mergeGroups shows other groups as this one. Their letters are counted and found here; new ones of
// theirs too. Split, or the undo of the decision, makes them groups again.
func (w *Web) mergeGroups(ctx context.Context, in *struct {
	GroupPath
	Body api.MergeRequest
},
) (*reply[deadletter.Decided], error) {
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
	return answer(w.undo(ctx, id))
}
