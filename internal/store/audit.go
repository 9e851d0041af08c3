package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// actThrough is the SQL expression for the way of an act e of an operation o. Older versions did
// not record the way of an act. If dlo did such an act, it counts as automatic. If the act is the
// start of an operation, it has the way of the operation.
const actThrough = `CASE WHEN e.through <> '' THEN e.through WHEN e.actor = 'dlo' THEN 'dlo' WHEN e.kind = o.action AND e.actor = o.by THEN o.through ELSE '' END`

// actDone is the SQL expression for the number of letters, groups or things that an act completed.
// For the start of an operation, it is the number that the operation has completed so far.
const actDone = `CASE WHEN e.kind = o.action THEN (SELECT coalesce(sum(n), 0) FROM operation_counts WHERE operation = o.id AND result IN ('confirmed', 'quiet', 'unverified', 'came back', 'done')) ELSE e.done END`

// Audit returns up to limit acts that match an audit query, newest first, and the cursor of the
// next page. The cursor is "" on the last page. Events of single letters are not in the audit, but
// in the histories of the letters.
func (s *Store) Audit(ctx context.Context, q query.Query, after string, limit int) (list []deadletter.Act, next string, err error) {
	if limit <= 0 || limit > maxPage {
		return nil, "", fmt.Errorf("%w: a page has 1 to %d entries", deadletter.ErrInvalid, maxPage)
	}
	where, err := actsCondition(q)
	if err != nil {
		return nil, "", err
	}
	if after != "" {
		before, err := strconv.ParseInt(after, 36, 64)
		if err != nil {
			return nil, "", fmt.Errorf("%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid)
		}
		where = every(where, clause{"e.id < ?", []any{before}})
	}
	if list, err = s.actList(ctx, where, "DESC", limit+1); err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = strconv.FormatInt(list[limit-1].ID, 36)
	}
	return list, next, s.targets(ctx, list)
}

// ActsAfter returns up to limit acts that were recorded after the act with the given id, oldest
// first.
func (s *Store) ActsAfter(ctx context.Context, id int64, limit int) ([]deadletter.Act, error) {
	list, err := s.actList(ctx, clause{"e.letter IS NULL AND e.id > ?", []any{id}}, "ASC", limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, s.targets(ctx, list)
}

// actList returns acts by id, without their targets. order is ASC or DESC.
func (s *Store) actList(ctx context.Context, where clause, order string, limit int) (list []deadletter.Act, err error) {
	var a deadletter.Act
	var operation, asked, done sql.NullInt64
	wanted := columns{
		{`e.id`, &a.ID},
		{`e.at`, instant{&a.At}},
		{`e.kind`, &a.Kind},
		{`e.actor`, &a.Actor},
		{actThrough, &a.Through},
		{`e.address`, &a.Address},
		{`e.operation`, &operation},
		{`e.detail`, &a.Detail},
		{`CASE WHEN e.kind = o.action THEN o.total ELSE e.asked END`, &asked},
		{actDone, &done},
		{`coalesce(o.action, '')`, &a.Action},
		{`coalesce(o.query, '')`, &a.Query},
		{`coalesce(o.total, 0)`, &a.Total},
	}
	rows, err := s.read.QueryContext(ctx, numbered(`SELECT `+wanted.list()+` FROM events e INDEXED BY events_audit LEFT JOIN operations o ON o.id = e.operation
		WHERE `+where.text+` ORDER BY e.id `+order+` LIMIT ?`), append(where.args, limit)...)
	if err == nil {
		err = wanted.scan(rows, func() error {
			a.Operation, a.Asked, a.Done = deadletter.OperationID(operation.Int64), recorded(asked), recorded(done)
			list = append(list, a)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return list, nil
}

func recorded(n sql.NullInt64) int {
	if !n.Valid {
		return deadletter.Unrecorded
	}
	return int(n.Int64)
}

// targets fills in the targets of acts, with the titles of groups.
func (s *Store) targets(ctx context.Context, list []deadletter.Act) error {
	places := map[int64]int{}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i], places[list[i].ID] = list[i].ID, i
	}
	text, _ := json.Marshal(ids) // numbers always encode
	rows, err := s.ask(ctx, `SELECT t.event, t.kind, t.name, coalesce(g.title, '') FROM event_targets t LEFT JOIN groups g ON t.kind = 'group' AND g.id = CAST(substr(t.name, 3) AS INTEGER)
		WHERE t.event IN (SELECT value FROM json_each($1)) ORDER BY t.event, g.id, t.kind, t.name`, string(text))
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return scan(rows, func() error {
		var event int64
		var t deadletter.Target
		err := rows.Scan(&event, &t.Kind, &t.Name, &t.Title)
		a := &list[places[event]]
		a.Targets = append(a.Targets, t)
		return err
	})
}

// actsCondition builds the SQL condition for a query on events e and their operations o. The error
// wraps ErrInvalid.
func actsCondition(q query.Query) (clause, error) {
	all := []clause{{text: "e.letter IS NULL"}}
	for _, t := range q.Terms {
		c, err := actTermCondition(t)
		if err != nil {
			return clause{}, err
		}
		if t.Not {
			c = not(c)
		}
		all = append(all, c)
	}
	return every(all...), nil
}

// actTermCondition builds the SQL condition for one term, without its negation.
func actTermCondition(t query.Term) (clause, error) {
	switch t.Field {
	case query.Who:
		return text("e.actor", t.Values), nil
	case query.Action:
		kinds := slices.Clone(t.Values)
		for i := range kinds {
			kinds[i].Pattern = []string{strings.ReplaceAll(kinds[i].Raw, "-", " ")}
		}
		return text("e.kind", kinds), nil
	case query.Target:
		c := some(text("t.name", t.Values), text("t.kind", t.Values), text("CASE t.kind WHEN 'letter' THEN substr(t.name, -8) END", t.Values))
		return clause{"EXISTS (SELECT 1 FROM event_targets t WHERE t.event = e.id AND " + c.text + ")", c.args}, nil
	case query.Via:
		ways := slices.Clone(t.Values)
		for i := range ways {
			if ways[i].Raw == query.NotRecorded {
				ways[i].Pattern = []string{""}
			}
		}
		return text(actThrough, ways), nil
	case query.Since:
		return clause{"e.at >= ?", []any{t.Values[0].Time.UnixMilli()}}, nil
	case query.Until:
		return clause{"e.at < ?", []any{t.Values[0].Time.UnixMilli()}}, nil
	case query.Words:
		part := []query.Value{{Pattern: []string{"", t.Values[0].Pattern[0], ""}}}
		named := text("t.name", part)
		return some(text("e.kind", part), text("e.actor", part), text("e.detail", part), text("coalesce(o.query, '')", part),
			clause{"EXISTS (SELECT 1 FROM event_targets t WHERE t.event = e.id AND " + named.text + ")", named.args}), nil
	}
	return clause{}, fmt.Errorf("%w: the audit has no field %q", deadletter.ErrInvalid, t.Field)
}
