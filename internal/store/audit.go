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

// actThrough is an SQL expression for the way in which an act e was requested: page, API or command
// line. Older versions did not record this way. If one of their acts was done by dlo itself, it
// counts as automatic. If one of their acts started an operation o, it has the way of the
// operation.
const actThrough = `CASE WHEN e.through <> '' THEN e.through WHEN e.actor = 'dlo' THEN 'dlo' WHEN e.kind = o.action
	AND e.actor = o.by THEN o.through ELSE '' END`

// actDone is an SQL expression for the number of letters, groups or other things that an act
// completed. For an act that started an operation, it is the number of letters that the operation
// has completed so far.
const actDone = `CASE WHEN e.kind = o.action THEN (SELECT coalesce(sum(n), 0) FROM operation_counts
	WHERE operation = o.id AND result IN ('confirmed', 'quiet', 'unverified', 'came back', 'done')) ELSE e.done END`

// Audit returns the acts that match an audit query, newest first. The parameter "limit" is the
// maximum number of acts on a page. Audit also returns the cursor of the next page, which is "" on
// the last page. Events of single letters are not in the audit, but in the histories of the
// letters.
func (s *Store) Audit(
	ctx context.Context, q query.Query, after string, limit int,
) (list []deadletter.Act, next string, err error) {
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
			return nil, "", fmt.Errorf(
				"%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid,
			)
		}
		where = allOf(where, clause{"e.id < ?", []any{before}})
	}
	if list, err = s.actList(ctx, where, "DESC", limit+1); err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = strconv.FormatInt(list[limit-1].ID, 36)
	}
	return list, next, s.addTargets(ctx, list)
}

// ActsAfter returns the acts that were recorded after the act with the given id, oldest first. The
// parameter "limit" is the maximum number of acts.
func (s *Store) ActsAfter(ctx context.Context, id int64, limit int) ([]deadletter.Act, error) {
	list, err := s.actList(ctx, clause{"e.letter IS NULL AND e.id > ?", []any{id}}, "ASC", limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, s.addTargets(ctx, list)
}

// actList returns acts without their targets, sorted by id. The parameter "order" is ASC or DESC.
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
	rows, err := s.read.QueryContext(ctx, numberPlaceholders(`SELECT `+wanted.list()+` FROM events e
		INDEXED BY events_audit LEFT JOIN operations o ON o.id = e.operation
		WHERE `+where.text+` ORDER BY e.id `+order+` LIMIT ?`), append(where.args, limit)...)
	if err == nil {
		err = wanted.scan(rows, func() error {
			a.Operation, a.Asked, a.Done = deadletter.OperationID(operation.Int64), countFrom(asked), countFrom(done)
			list = append(list, a)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return list, nil
}

func countFrom(n sql.NullInt64) deadletter.Amount {
	if !n.Valid {
		return deadletter.UnknownAmount
	}
	return deadletter.Amount(n.Int64)
}

// addTargets adds the targets to the acts in a list. The target of an act on a group includes the
// title of the group.
func (s *Store) addTargets(ctx context.Context, list []deadletter.Act) error {
	places := map[int64]int{}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i], places[list[i].ID] = list[i].ID, i
	}
	text, _ := json.Marshal(ids) // json.Marshal cannot fail, because the list contains only numbers
	rows, err := s.ask(ctx, `SELECT t.event, t.kind, t.name, coalesce(g.title, '') FROM event_targets t
		LEFT JOIN groups g ON t.kind = 'group' AND g.id = CAST(substr(t.name, 3) AS INTEGER)
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

// actsCondition converts an audit query to an SQL condition. In the condition, e is the table
// events, and o is the table operations. If the query is not valid for the audit, the error wraps
// ErrInvalid.
func actsCondition(q query.Query) (clause, error) {
	all := []clause{{text: "e.letter IS NULL"}}
	for _, t := range q.Terms {
		c, err := actTermCondition(t)
		if err != nil {
			return clause{}, err
		}
		if t.Not {
			c = negated(c)
		}
		all = append(all, c)
	}
	return allOf(all...), nil
}

// actTermCondition converts one term of an audit query to an SQL condition. It ignores the negation
// of the term.
func actTermCondition(t query.Term) (clause, error) {
	switch t.Field {
	case query.Who:
		return textClause("e.actor", t.Values), nil
	case query.Action:
		kinds := slices.Clone(t.Values)
		for i := range kinds {
			kinds[i].Pattern = []string{strings.ReplaceAll(kinds[i].Raw, "-", " ")}
		}
		return textClause("e.kind", kinds), nil
	case query.Target:
		c := anyOf(
			textClause("t.name", t.Values), textClause("t.kind", t.Values),
			textClause("CASE t.kind WHEN 'letter' THEN substr(t.name, -8) END", t.Values),
		)
		return clause{"EXISTS (SELECT 1 FROM event_targets t WHERE t.event = e.id AND " + c.text + ")", c.args}, nil
	case query.Via:
		ways := slices.Clone(t.Values)
		for i := range ways {
			if ways[i].Raw == query.NotRecorded {
				ways[i].Pattern = []string{""}
			}
		}
		return textClause(actThrough, ways), nil
	case query.Since:
		return clause{"e.at >= ?", []any{t.Values[0].Time.UnixMilli()}}, nil
	case query.Until:
		return clause{"e.at < ?", []any{t.Values[0].Time.UnixMilli()}}, nil
	case query.Words:
		part := []query.Value{{Pattern: []string{"", t.Values[0].Pattern[0], ""}}}
		named := textClause("t.name", part)
		return anyOf(
			textClause("e.kind", part), textClause("e.actor", part), textClause("e.detail", part),
			textClause("coalesce(o.query, '')", part),
			clause{
				"EXISTS (SELECT 1 FROM event_targets t WHERE t.event = e.id AND " + named.text + ")", named.args,
			},
		), nil
	}
	return clause{}, fmt.Errorf("%w: the audit has no field %q", deadletter.ErrInvalid, t.Field)
}
