package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	groupEvents     = 100
	groupOperations = 10
	groupsAlike     = 10
	groupDeploys    = 20
	groupRules      = 100 // number of newest letters whose rules are listed
)

// Group returns a group with all its details. It returns ErrNotFound if no group has that id. For a
// merged group, it returns the merged group itself, with the id of its head.
func (s *Store) Group(ctx context.Context, id deadletter.GroupID) (deadletter.Group, error) {
	g, err := s.group(ctx, id)
	if err != nil {
		return g, fmt.Errorf("group %s: %w", id, err)
	}
	return g, nil
}

func (s *Store) group(ctx context.Context, id deadletter.GroupID) (deadletter.Group, error) {
	g := deadletter.Group{Letters: map[deadletter.State]int{}}
	var row listedGroup
	var head, mergedInto sql.NullInt64
	wanted := append(row.columns(), column{`g.head`, &mergedInto})
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+` FROM groups g WHERE g.id = $1 OR g.head = $1
		ORDER BY g.id = $1 DESC, g.id`, int64(id))
	if err != nil {
		return g, err
	}
	var all []deadletter.GroupRow
	if err := wanted.scan(rows, func() error {
		if len(all) == 0 {
			head = mergedInto
		}
		all = append(all, row.row(&s.names))
		return nil
	}); err != nil {
		return g, err
	}
	if len(all) == 0 {
		return g, deadletter.NoSuch("group %s", id)
	}
	alone := all[:1] // row of the group itself; its numbers include the groups merged into it
	if err := s.addRecent(ctx, alone); err != nil {
		return g, err
	}
	if err := s.addSparks(ctx, all[1:]); err != nil {
		return g, err
	}
	g.GroupRow, g.Merged, g.Head = alone[0], all[1:], deadletter.GroupID(head.Int64)
	family := []any{int64(id)}
	for i := range g.Merged {
		family = append(family, int64(g.Merged[i].ID))
	}
	of := placeholders(1, len(family))
	rows, err = s.read.QueryContext(
		ctx, `SELECT grp, state, sum(n) FROM counters WHERE grp IN (`+of+`) GROUP BY 1, 2`, family...,
	)
	if err != nil {
		return g, err
	}
	if err := scan(rows, func() error {
		var group int64
		var state deadletter.State
		var n int
		err := rows.Scan(&group, &state, &n)
		g.Letters[state] += n
		counted := groupRow(&g, group)
		switch state {
		case deadletter.StateDead, deadletter.StateHeld:
			counted.Count += n
		case deadletter.StateScheduled:
			counted.Waiting += n
		}
		return err
	}); err != nil {
		return g, err
	}
	rows, err = s.read.QueryContext(ctx, `SELECT grp, n FROM overdue WHERE grp IN (`+of+`)`, family...)
	if err != nil {
		return g, err
	}
	if err := scan(rows, func() error {
		var group int64
		var n int
		err := rows.Scan(&group, &n)
		groupRow(&g, group).Overdue += n
		return err
	}); err != nil {
		return g, err
	}
	for _, m := range g.Merged {
		g.Count, g.Waiting, g.Overdue = g.Count+m.Count, g.Waiting+m.Waiting, g.Overdue+m.Overdue
	}
	g.Failing = g.Failing || g.Overdue > 0
	if err := s.read.QueryRowContext(
		ctx, `SELECT EXISTS (SELECT 1 FROM pauses WHERE grp IN (`+of+`))`, family...,
	).Scan(&g.Paused); err != nil {
		return g, err
	}
	if g.History, err = s.groupHistory(ctx, of, family); err != nil {
		return g, err
	}
	if g.Rules, err = s.groupRules(ctx, of, family); err != nil {
		return g, err
	}
	if g.Operations, err = s.operations(ctx, `WHERE id IN (SELECT operation FROM operation_groups
		WHERE grp IN (`+of+`)) ORDER BY id DESC LIMIT `+fmt.Sprint(groupOperations), family...); err != nil {
		return g, err
	}
	if g.Alike, err = s.sameErrorGroups(ctx, id); err != nil {
		return g, err
	}
	if err := s.findFix(ctx, &g); err != nil {
		return g, err
	}
	return g, s.findSuspect(ctx, &g)
}

// sameErrorGroups returns the other groups that lists show and that have the same error in the same
// queue.
func (s *Store) sameErrorGroups(ctx context.Context, id deadletter.GroupID) (list []deadletter.GroupRow, err error) {
	var row listedGroup
	wanted := row.countColumns(groupDead, groupOverdue)
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+` FROM groups m JOIN groups g ON g.cause = m.cause
		AND g.origin = m.origin
		WHERE m.id = $1 AND m.cause <> x'' AND m.head IS NULL AND g.id <> m.id AND g.head IS NULL ORDER BY g.id DESC
		LIMIT `+fmt.Sprint(groupsAlike), int64(id))
	if err != nil {
		return nil, err
	}
	err = wanted.scan(rows, func() error {
		list = append(list, row.row(&s.names))
		return nil
	})
	return list, err
}

// groupRow finds a row by its id. The row may be that of the group, or that of a group merged into
// it.
func groupRow(g *deadletter.Group, id int64) *deadletter.GroupRow {
	for i := range g.Merged {
		if int64(g.Merged[i].ID) == id {
			return &g.Merged[i]
		}
	}
	return &g.GroupRow
}

func (s *Store) groupHistory(ctx context.Context, target string, family []any) ([]deadletter.Event, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT at, kind, actor, detail FROM events WHERE id IN (SELECT event
		FROM event_targets WHERE kind = 'group' AND name IN (SELECT 'G-' || id FROM groups WHERE id IN (`+target+`)))
		ORDER BY id DESC LIMIT `+fmt.Sprint(groupEvents), family...)
	if err != nil {
		return nil, err
	}
	var list []deadletter.Event
	err = scan(rows, func() error {
		var e deadletter.Event
		var at int64
		err := rows.Scan(&at, &e.Kind, &e.Actor, &e.Detail)
		e.At = time.UnixMilli(at).UTC()
		list = append(list, e)
		return err
	})
	return list, err
}

// groupRules returns the names of the rules that decided on the newest waiting, dead or held
// letters of the given groups.
func (s *Store) groupRules(ctx context.Context, target string, family []any) ([]string, error) {
	return values[string](s.read.QueryContext(ctx, `SELECT DISTINCT rule FROM (SELECT rule FROM letters
		INDEXED BY letters_group WHERE grp IN (`+target+`) AND grp > 0
		AND state IN ('scheduled', 'dead', 'held') ORDER BY id DESC
		LIMIT `+fmt.Sprint(groupRules)+`) WHERE rule <> '' ORDER BY rule`, family...))
}

// findSuspect finds the deploys around the start of a group. One of them is the suspect, which may
// have caused the failure. This is the last deploy shortly before the group began or came back.
func (s *Store) findSuspect(ctx context.Context, g *deadletter.Group) error {
	began := g.Began()
	var err error
	if g.Deploys, err = s.Deploys(ctx, began.Add(-24*time.Hour), s.now().Add(time.Minute), groupDeploys); err != nil {
		return err
	}
	last, err := s.Deploys(ctx, began.Add(-deadletter.SuspectWithin), began.Add(time.Millisecond), 1)
	if errors.Is(err, sql.ErrNoRows) || len(last) == 0 {
		return nil
	}
	g.Suspect = &last[0]
	return err
}

// findFix finds the first deploy after the last death of a group that is now quiet.
func (s *Store) findFix(ctx context.Context, g *deadletter.Group) (err error) {
	if !g.Failing {
		g.Fix, err = s.DeployAfter(ctx, g.LastAt)
	}
	return err
}
