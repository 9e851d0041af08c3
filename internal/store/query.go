package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// branch is a part of the letters that one index reads in order: the letters of one state, or of one state and group or origin.
type branch struct {
	column string // "grp", "origin", or "" for the state alone
	value  int64
	state  string
}

// plan is a query made ready for SQL: everything that q asks is among the dims by which letters are counted, so the counters say which parts of which index hold
// the matching letters, and the list is a merge of those parts. Conditions stand beside for what an index part does not settle.
type plan struct {
	conditions []string
	args       []any
	branches   []branch // nil: all letters
	empty      bool     // no letter matches
}

// maxBranches bounds how many index parts one list merges.
const maxBranches = 64

func (s *Store) plan(ctx context.Context, q query.Query) (*plan, error) {
	p := &plan{}
	for _, t := range q.Terms {
		column, values := s.resolve(t)
		if len(values) == 0 {
			return &plan{empty: true}, nil
		}
		p.conditions = append(p.conditions, fmt.Sprintf("l.%s IN (%s)", column, placeholders(len(p.args)+1, len(values))))
		p.args = append(p.args, values...)
	}
	if len(p.conditions) == 0 {
		return p, nil
	}
	where := strings.ReplaceAll(join(p.conditions), "l.", "")
	for _, by := range []string{"grp", "origin", ""} {
		column := by
		if by == "" {
			column = "0"
		}
		rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT state, `+column+` FROM counters WHERE n > 0 AND `+where+fmt.Sprintf(` LIMIT %d`, maxBranches+1), p.args...)
		if err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		p.branches = nil
		if err := scan(rows, func() error {
			b := branch{column: by}
			err := rows.Scan(&b.state, &b.value)
			p.branches = append(p.branches, b)
			return err
		}); err != nil {
			return nil, err
		}
		if len(p.branches) <= maxBranches {
			break
		}
	}
	p.empty = len(p.branches) == 0
	return p, nil
}

// resolve returns the column of a term and the row values that its texts stand for; none when no letter can match.
func (s *Store) resolve(t query.Term) (column string, values []any) {
	switch t.Field {
	case query.State, query.Reason:
		for _, v := range t.Values {
			values = append(values, v)
		}
		return string(t.Field), values
	case query.Group:
		for _, v := range t.Values {
			id, err := deadletter.ParseGroupID(v)
			if err == nil {
				values = append(values, int64(id))
			}
		}
		return "grp", values
	case query.Queue:
		for _, id := range s.names.originsNamed(t.Values) {
			values = append(values, id)
		}
		return "origin", values
	case query.Type:
		names := slices.Clone(t.Values)
		if i := slices.Index(names, query.NoType); i >= 0 {
			names[i] = ""
		}
		for _, id := range s.names.typesNamed(names) {
			values = append(values, id)
		}
		return "type", values
	}
	return string(t.Field), nil
}

// list returns the statement for limit letters from a place on.
func (p *plan) list(order deadletter.Order, from cursor, backwards bool, limit int) (string, []any) {
	if p.empty {
		return `SELECT ` + rowColumns + ` FROM letters l WHERE 0`, nil
	}
	args := slices.Clone(p.args)
	conditions := slices.Clone(p.conditions)
	sorted := "l.id DESC"
	if order == deadletter.OrderDue {
		sorted = "l.due_at, l.id"
		conditions = append(conditions, "l.due_at IS NOT NULL")
		if backwards {
			sorted = "l.due_at DESC, l.id DESC"
		}
	} else if backwards {
		sorted = "l.id"
	}
	if from.serial != 0 {
		args = append(args, from.due, from.serial)
		due, id := len(args)-1, len(args)
		less := "<"
		if backwards != (order == deadletter.OrderDue) {
			less = ">"
		}
		if order == deadletter.OrderDue {
			conditions = append(conditions, fmt.Sprintf("(l.due_at, l.id) %s ($%d, $%d)", less, due, id))
		} else {
			conditions = append(conditions, fmt.Sprintf("l.id %s $%d AND $%d = 0", less, id, due))
		}
	}
	if len(p.branches) == 0 || order == deadletter.OrderDue {
		return fmt.Sprintf(`SELECT %s FROM letters l WHERE %s ORDER BY %s LIMIT %d`, rowColumns, join(conditions), sorted, limit), args
	}
	parts := make([]string, 0, len(p.branches))
	for _, b := range p.branches {
		args = append(args, b.state)
		in := fmt.Sprintf("l.state = $%d", len(args))
		index := "letters_state"
		if b.column != "" {
			args = append(args, b.value)
			in += fmt.Sprintf(" AND l.%s = $%d", b.column, len(args))
			index = map[string]string{"grp": "letters_group", "origin": "letters_origin"}[b.column]
		}
		parts = append(parts, fmt.Sprintf(`SELECT id FROM (SELECT l.id FROM letters l INDEXED BY %s WHERE %s AND %s ORDER BY %s LIMIT %d)`, index, in, join(conditions), sorted, limit))
	}
	return fmt.Sprintf(`SELECT %s FROM letters l WHERE l.id IN (%s) ORDER BY %s LIMIT %d`, rowColumns, strings.Join(parts, " UNION ALL "), sorted, limit), args
}

// Count returns how many letters q selects, from the counters; always exact.
func (s *Store) Count(ctx context.Context, q query.Query) (int, error) {
	conditions, args, empty := s.counted(q)
	if empty {
		return 0, nil
	}
	var n int
	err := s.read.QueryRowContext(ctx, `SELECT coalesce(sum(n), 0) FROM counters WHERE `+join(conditions), args...).Scan(&n)
	return n, err
}

func (s *Store) counted(q query.Query) (conditions []string, args []any, empty bool) {
	for _, t := range q.Terms {
		column, values := s.resolve(t)
		if len(values) == 0 {
			return nil, nil, true
		}
		conditions = append(conditions, fmt.Sprintf("%s IN (%s)", column, placeholders(len(args)+1, len(values))))
		args = append(args, values...)
	}
	return conditions, args, false
}

// Facets returns the values of each field among the letters that q selects and how many letters have each, most first, from the counters. The own terms of a field do
// not narrow its facet, so that more of its values can be chosen.
func (s *Store) Facets(ctx context.Context, q query.Query) (map[query.Field][]deadletter.FacetValue, error) {
	facets := map[query.Field][]deadletter.FacetValue{}
	for _, f := range query.Fields {
		column := map[query.Field]string{query.State: "state", query.Queue: "origin", query.Type: "type", query.Reason: "reason", query.Group: "grp"}[f]
		conditions, args, empty := s.counted(q.With(f))
		if empty {
			continue
		}
		rows, err := s.read.QueryContext(ctx, `SELECT `+column+`, sum(n) FROM counters WHERE `+join(conditions)+` GROUP BY 1 HAVING sum(n) > 0`, args...)
		if err != nil {
			return nil, fmt.Errorf("facet %s: %w", f, err)
		}
		counts := map[string]int{}
		if err := scan(rows, func() error {
			var raw any
			var n int
			if err := rows.Scan(&raw, &n); err != nil {
				return err
			}
			if value, ok := s.facetValue(f, raw); ok {
				counts[value] += n
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("facet %s: %w", f, err)
		}
		for value, n := range counts {
			facets[f] = append(facets[f], deadletter.FacetValue{Value: value, Count: n})
		}
		slices.SortFunc(facets[f], func(a, b deadletter.FacetValue) int {
			if a.Count != b.Count {
				return b.Count - a.Count
			}
			return strings.Compare(a.Value, b.Value)
		})
	}
	return facets, nil
}

func (s *Store) facetValue(f query.Field, raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		return v, v != "" || f != query.Reason
	case int64:
		switch f {
		case query.Queue:
			return s.names.origin(v).Queue, v != 0
		case query.Type:
			if v == 0 {
				return query.NoType, true
			}
			return s.names.typeName(v), true
		case query.Group:
			return deadletter.GroupID(v).String(), v != 0
		}
	}
	return "", false
}
