package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// branch is a part of the letters that one index reads in order: the letters of one state, or of one group in one state.
type branch struct {
	state string
	group int64
}

// plan is a query made ready for SQL: everything that q asks is among the dims by which letters are counted, so the counters say which parts of which index hold
// matching letters, and a list is a merge of those parts. The conditions stand beside for what a part does not settle.
type plan struct {
	conditions []string
	args       []any
	byGroup    bool     // the branches are parts of letters_group, else of letters_state
	branches   []branch // nil: all letters
	empty      bool     // no letter matches
}

// maxBranches bounds how many parts of the index by group one list merges, at some 10 us each; a query that more groups match is read along its states instead.
const maxBranches = 2000

func (s *Store) plan(ctx context.Context, q query.Query) (*plan, error) {
	p := &plan{}
	for _, t := range q.Terms {
		column, values := s.resolve(t)
		if len(values) == 0 {
			return &plan{empty: true}, nil
		}
		p.conditions = append(p.conditions, fmt.Sprintf("l.%s IN (%s)", column, placeholders(len(p.args)+1, len(values))))
		p.args = append(p.args, values...)
		p.byGroup = p.byGroup || t.Field != query.State
	}
	if len(p.conditions) == 0 {
		return p, nil
	}
	where := strings.ReplaceAll(join(p.conditions), "l.", "")
	for {
		column := "0"
		if p.byGroup {
			column = "grp"
		}
		rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT state, `+column+` FROM counters WHERE n > 0 AND `+where+fmt.Sprintf(` LIMIT %d`, maxBranches+1), p.args...)
		if err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		p.branches = nil
		if err := scan(rows, func() error {
			var b branch
			err := rows.Scan(&b.state, &b.group)
			p.branches = append(p.branches, b)
			return err
		}); err != nil {
			return nil, err
		}
		if len(p.branches) <= maxBranches {
			break
		}
		p.byGroup = false
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

// page returns limit letters of a plan from a place on, in the order of the list, or against it when backwards.
func (s *Store) page(ctx context.Context, p *plan, order deadletter.Order, from cursor, backwards bool, limit int) ([]deadletter.Row, error) {
	if p.empty {
		return nil, nil
	}
	conditions, args := slices.Clone(p.conditions), slices.Clone(p.args)
	condition := func(text string, values ...any) {
		places := make([]any, len(values))
		for i := range values {
			places[i] = len(args) + 1 + i
		}
		conditions, args = append(conditions, fmt.Sprintf(text, places...)), append(args, values...)
	}
	sorted := "l.id DESC"
	if backwards {
		sorted = "l.id"
	}
	switch {
	case order == deadletter.OrderDue && backwards:
		sorted = "l.due_at DESC, l.id DESC"
	case order == deadletter.OrderDue:
		sorted = "l.due_at, l.id"
	}
	if order == deadletter.OrderDue {
		conditions = append(conditions, "l.due_at IS NOT NULL", "l.state IN ('scheduled', 'requeued')") // no others have one; so an index finds them
	}
	switch {
	case from.serial == 0:
	case order == deadletter.OrderDue && backwards:
		condition("(l.due_at, l.id) < ($%d, $%d)", from.due, from.serial)
	case order == deadletter.OrderDue:
		condition("(l.due_at, l.id) > ($%d, $%d)", from.due, from.serial)
	case backwards:
		condition("l.id > $%d", from.serial)
	default:
		condition("l.id < $%d", from.serial)
	}
	if p.branches == nil || order == deadletter.OrderDue {
		rows, err := s.read.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM letters l WHERE %s ORDER BY %s LIMIT %d`, rowColumns, join(conditions), sorted, limit), args...)
		if err != nil {
			return nil, err
		}
		return s.rows(rows)
	}
	serials, err := s.merge(ctx, p, conditions, args, backwards, limit)
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	args = args[:0]
	for _, serial := range serials {
		args = append(args, serial)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+rowColumns+` FROM letters l WHERE l.id IN (`+placeholders(1, len(args))+`) ORDER BY `+sorted, args...)
	if err != nil {
		return nil, err
	}
	return s.rows(rows)
}

// merge returns the serials of the first limit letters of all branches, newest first, or oldest first when backwards. Each branch is read along its index, and only as far as it can
// still better what is known: of many branches most give nothing.
func (s *Store) merge(ctx context.Context, p *plan, conditions []string, args []any, backwards bool, limit int) ([]int64, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	order, better, bound, compare := "l.id DESC", "l.id > $%d", int64(0), func(a, b int64) int { return cmp.Compare(b, a) }
	if backwards {
		order, better, bound, compare = "l.id", "l.id < $%d", math.MaxInt64, cmp.Compare[int64]
	}
	prepared := map[string]*sql.Stmt{}
	var serials []int64
	for _, b := range p.branches {
		index, part := "letters_state", "l.state = $%d AND l.grp = $%d" // letters without a group are few: received, or undecided
		switch {
		case !p.byGroup:
			part = "l.state = $%d AND $%d = 0"
		case b.group > 0:
			index, part = "letters_group", "l.state = $%d AND l.grp = $%d AND l.grp > 0"
		}
		stmt := prepared[part]
		if stmt == nil {
			n := len(args)
			if stmt, err = conn.PrepareContext(ctx, fmt.Sprintf(`SELECT l.id FROM letters l INDEXED BY %s WHERE %s AND %s AND %s ORDER BY %s LIMIT %d`,
				index, fmt.Sprintf(part, n+1, n+2), fmt.Sprintf(better, n+3), join(conditions), order, limit)); err != nil {
				return nil, err
			}
			defer stmt.Close()
			prepared[part] = stmt
		}
		rows, err := stmt.QueryContext(ctx, append(slices.Clone(args), b.state, b.group, bound)...)
		if err != nil {
			return nil, err
		}
		found := len(serials)
		if err := scan(rows, func() error {
			var serial int64
			err := rows.Scan(&serial)
			serials = append(serials, serial)
			return err
		}); err != nil {
			return nil, err
		}
		if len(serials) == found {
			continue
		}
		slices.SortFunc(serials, compare)
		if len(serials) >= limit {
			serials = serials[:limit]
			bound = serials[limit-1]
		}
	}
	return serials, nil
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
