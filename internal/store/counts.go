package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Count returns the number of letters that match q. If the counters can answer q, the result is
// exact and immediate. If they cannot, Count reads letters, and stops when it has counted as many
// as "limit" says. If there are more letters, the result "exact" is false. If "limit" is 0, Count
// counts all letters.
func (s *Store) Count(ctx context.Context, q query.Query, limit int) (n int, exact bool, err error) {
	p, err := s.plan(ctx, q)
	if err != nil || p.empty {
		return 0, true, err
	}
	if p.countersSuffice() {
		dims := allOf(p.dims...)
		err = s.read.QueryRowContext(
			ctx, numberPlaceholders(`SELECT coalesce(sum(l.n), 0) FROM counters l WHERE `+dims.text), dims.args...,
		).Scan(&n)
		return n, true, err
	}
	sources, err := s.sources(ctx, s.read, p)
	if err != nil {
		return 0, false, err
	}
	for _, src := range sources {
		where := p.filter(src)
		text, args := `SELECT count(*) FROM `+src.from+` WHERE `+where.text, where.args
		if limit > 0 {
			text, args = `SELECT count(*) FROM (SELECT 1 FROM `+src.from+` WHERE `+where.text+` LIMIT ?)`, append(
				where.args, limit+1-n,
			)
		}
		var part int
		if err := s.read.QueryRowContext(ctx, numberPlaceholders(text), args...).Scan(&part); err != nil {
			return 0, false, fmt.Errorf("count: %w", err)
		}
		if n += part; limit > 0 && n > limit {
			return limit, false, nil
		}
	}
	return n, true, nil
}

// A facet lists the values of a field, with the number of letters for each value. The variable
// "faceted" lists the fields that have facets. For each field, it contains the column whose values
// are counted.
var faceted = []struct {
	field  query.Field
	column string
}{
	{query.State, "l.state"},
	{query.Queue, "l.origin"},
	{query.Type, "l.type"},
	{query.Reason, "l.reason"},
	{query.Severity, "l.severity"},
	{query.Group, "l.grp"},
	{query.VHost, "l.origin"},
	{query.Broker, "l.origin"},
}

// sampled is the maximum number of letters in a sample. A sample consists of the newest letters. It
// is used if the counters cannot answer a query.
const sampled = 1000

// Facets returns the values of each field among the letters that match q, with the number of
// letters that have each value. Values with the most letters come first. The facet of a field
// ignores the terms of q on that field, so that people can choose further values.
//
// If the store's counters cannot answer q, Facets counts only a sample of the newest letters.
// Sampled is then the size of the sample. The parameter "bodies" contains the paths of body fields
// that get facets too. These facets always use a sample.
func (s *Store) Facets(ctx context.Context, q query.Query, bodies ...string) (deadletter.Facets, error) {
	var facets deadletter.Facets
	samples := map[string][]deadletter.Row{}
	for _, f := range faceted {
		open := q.With(f.field)
		p, err := s.plan(ctx, open)
		if err != nil {
			return facets, err
		}
		counts, of := map[string]int{}, 0
		switch {
		case p.empty:
		case p.countersSuffice():
			dims := allOf(p.dims...)
			rows, err := s.read.QueryContext(
				ctx,
				numberPlaceholders(
					`SELECT `+f.column+`, sum(l.n) FROM counters l WHERE `+dims.text+` GROUP BY 1 HAVING sum(l.n) > 0`,
				),
				dims.args...,
			)
			if err != nil {
				return facets, fmt.Errorf("facet %s: %w", f.field, err)
			}
			if err := scan(rows, func() error {
				var raw any
				var n int
				if err := rows.Scan(&raw, &n); err != nil {
					return err
				}
				if value, ok := s.facetValue(f.field, raw); ok {
					counts[value] += n
				}
				return nil
			}); err != nil {
				return facets, fmt.Errorf("facet %s: %w", f.field, err)
			}
		default:
			key := open.String()
			sample, ok := samples[key]
			if !ok {
				if sample, err = s.sample(ctx, p); err != nil {
					return facets, fmt.Errorf("facet %s: %w", f.field, err)
				}
				samples[key] = sample
			}
			for i := range sample {
				if value, ok := rowValue(f.field, &sample[i]); ok {
					counts[value]++
				}
			}
			of = len(sample)
			facets.Sampled = max(facets.Sampled, of)
		}
		facet := facetOf(string(f.field), counts)
		facet.Sampled = of
		facets.Fields = append(facets.Fields, facet)
	}
	counted, err := s.BodyFacets(ctx, q, bodies...)
	for _, facet := range counted {
		facets.Fields, facets.Sampled = append(facets.Fields, facet), max(facets.Sampled, facet.Sampled)
	}
	return facets, err
}

// BodyFacets returns the facets of body fields among the letters that match q. It counts a sample
// of the newest letters.
func (s *Store) BodyFacets(ctx context.Context, q query.Query, paths ...string) ([]deadletter.Facet, error) {
	var list []deadletter.Facet
	for _, path := range paths {
		facet, n, err := s.bodyFacet(ctx, q, path)
		if err != nil {
			return nil, fmt.Errorf("facet body.%s: %w", path, err)
		}
		facet.Sampled = n
		list = append(list, facet)
	}
	return list, nil
}

func facetOf(field string, counts map[string]int) deadletter.Facet {
	facet := deadletter.Facet{Field: field}
	for value, n := range counts {
		facet.Values = append(facet.Values, deadletter.FacetValue{Value: value, Count: n})
	}
	slices.SortFunc(facet.Values, func(a, b deadletter.FacetValue) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Value, b.Value)
	})
	return facet
}

// bodyFacet counts the values of a body field in a sample of the newest letters.
func (s *Store) bodyFacet(ctx context.Context, q query.Query, path string) (deadletter.Facet, int, error) {
	field := string(query.Body) + "." + path
	if !deadletter.ScopeOf(ctx).ReadsAll() { // a value would reveal contents that the caller may not read
		return facetOf(field, nil), 0, nil
	}
	p, err := s.plan(ctx, q.With(query.Field(field)))
	if err != nil || p.empty {
		return facetOf(field, nil), 0, err
	}
	serials, err := s.newestSerials(ctx, s.read, p, 0, false, sampled)
	if err != nil {
		return facetOf(field, nil), 0, err
	}
	counts := map[string]int{}
	for chunk := range slices.Chunk(serials, 200) {
		args := []any{path}
		for _, serial := range chunk {
			args = append(args, serial)
		}
		found, err := values[string](s.ask(ctx, `SELECT value FROM body_fields WHERE field = $1
			AND letter IN (`+placeholders(2, len(chunk))+`)`, args...))
		if err != nil {
			return facetOf(field, nil), 0, err
		}
		for _, value := range found {
			counts[value]++
		}
	}
	return facetOf(field, counts), len(serials), nil
}

// sample returns the newest letters that match a plan, at most as many as a sample may contain.
func (s *Store) sample(ctx context.Context, p *plan) ([]deadletter.Row, error) {
	serials, err := s.newestSerials(ctx, s.read, p, 0, false, sampled)
	if err != nil {
		return nil, err
	}
	return s.rowsOf(ctx, serials)
}

func (s *Store) facetValue(f query.Field, raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		if f == query.State {
			return string(deadletter.StateNamed(v)), true
		}
		return v, v != ""
	case int64:
		switch f {
		case query.Queue:
			return s.names.origin(v).Queue, !unknownOrigin(v)
		case query.VHost:
			return s.names.origin(v).VHost, !unknownOrigin(v)
		case query.Broker:
			return s.names.origin(v).Broker, !unknownOrigin(v)
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

func rowValue(f query.Field, r *deadletter.Row) (string, bool) {
	switch f {
	case query.State:
		return string(r.State), true
	case query.Queue:
		return r.Queue, r.Queue != ""
	case query.VHost:
		return r.VHost, r.Queue != ""
	case query.Broker:
		return r.Broker, r.Queue != ""
	case query.Type:
		if r.Type == "" {
			return query.NoType, true
		}
		return r.Type, true
	case query.Reason:
		return r.Reason, r.Reason != ""
	case query.Severity:
		return string(r.Severity), r.Severity != ""
	case query.Group:
		return r.Group.String(), r.Group != 0
	}
	return "", false
}

const (
	rollupStep   = rollupMillis * time.Millisecond
	minuteMillis = 60 * 1000
	minutely     = 50_000 // maximum number of letters in the period of a histogram that counts them by the minute
)

// Histogram returns how many letters that match q were received in each interval between two times.
// It returns at most "bars" intervals. If both times are zero, the histogram covers the whole
// period in which letters were received. An interval is a multiple of 15 minutes, or of a minute if
// the period is short, not too many letters were received in it, and the request has no scope. If
// the rollups cannot answer q, Histogram counts only a sample of the newest letters, and Sampled is
// the size of the sample.
func (s *Store) Histogram(
	ctx context.Context, q query.Query, from, to time.Time, bars int,
) (deadletter.Histogram, error) {
	h := deadletter.Histogram{}
	p, err := s.plan(ctx, q)
	if err != nil || p.empty {
		return h, err
	}
	if p.from > 0 {
		from = latest(from, time.UnixMilli(p.from>>12))
	}
	if p.to>>12 < s.now().UnixMilli() {
		to = earliest(to, time.UnixMilli(p.to>>12))
	}
	type cell struct {
		at    int64 // time in units
		state deadletter.State
		n     int
	}
	var cells []cell
	unit := int64(rollupMillis)
	add := func(at int64, state deadletter.State, n int) {
		if !from.IsZero() && at < from.UnixMilli()/unit || !to.IsZero() && at > to.UnixMilli()/unit {
			return
		}
		cells = append(cells, cell{at, state, n})
	}
	where, ok := rollupClause(p)
	if ok && (slices.Contains(p.fields, query.Type) || slices.Contains(p.fields, query.Reason)) {
		var mixed bool // a rule put letters of different types or reasons into one group
		if err := s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM groups WHERE mixed = 1)`, nil, &mixed); err != nil {
			return h, fmt.Errorf("histogram: %w", err)
		}
		ok = !mixed
	}
	if ok {
		buckets := []any{bucketOf(from, 0), bucketOf(to, 1<<40)}
		where = allOf(clause{"r.bucket BETWEEN ? AND ?", buckets}, where)
		text := `SELECT r.bucket, r.state, sum(r.n) FROM rollups r WHERE ` + where.text +
			` GROUP BY 1, 2 HAVING sum(r.n) > 0`
		// a request with a scope does not see how many other letters it would have to pass
		short := !from.IsZero() && !to.IsZero() && to.Sub(from) <= time.Duration(bars)*rollupStep/2
		if short && deadletter.ScopeOf(ctx).Everywhere() {
			var n int
			if err := s.askRow(ctx, `SELECT coalesce(sum(n), 0) FROM rollups
				WHERE bucket BETWEEN $1 AND $2`, buckets, &n); err != nil {
				return h, fmt.Errorf("histogram: %w", err)
			}
			if n <= minutely {
				unit = minuteMillis
				where = allOf(append(slices.Clone(p.dims), clause{"l.id BETWEEN ? AND ?", []any{
					deadletter.SerialAt(from.Truncate(time.Minute)), deadletter.SerialAt(to.Add(time.Minute)),
				}})...)
				text = fmt.Sprintf(`SELECT (l.id >> 12) / %d, l.state, count(*) FROM letters l
					WHERE %s GROUP BY 1, 2`, unit, where.text)
			}
		}
		rows, err := s.read.QueryContext(ctx, numberPlaceholders(text), where.args...)
		if err != nil {
			return h, fmt.Errorf("histogram: %w", err)
		}
		if err := scan(rows, func() error {
			var c cell
			err := rows.Scan(&c.at, &c.state, &c.n)
			add(c.at, c.state, c.n)
			return err
		}); err != nil {
			return h, fmt.Errorf("histogram: %w", err)
		}
	} else {
		sample, err := s.sample(ctx, p)
		if err != nil {
			return h, fmt.Errorf("histogram: %w", err)
		}
		for i := range sample {
			add(sample[i].ReceivedAt.UnixMilli()/unit, sample[i].State, 1)
		}
		h.Sampled = len(sample)
	}
	if len(cells) == 0 {
		return h, nil
	}
	first, last := cells[0].at, cells[0].at
	for _, c := range cells {
		first, last = min(first, c.at), max(last, c.at)
	}
	if !from.IsZero() {
		first = from.UnixMilli() / unit
	} else {
		first = min(first, last-int64(bars)+1) // a single bar would look like the whole history
	}
	if !to.IsZero() {
		last = to.UnixMilli() / unit
	}
	width := (last - first + int64(bars)) / int64(bars) // units per bar
	h.Step = time.Duration(width*unit) * time.Millisecond
	h.From = time.UnixMilli(first * unit).UTC()
	for at := first; at <= last; at += width {
		h.Bars = append(h.Bars, deadletter.Bar{At: time.UnixMilli(at * unit).UTC()})
	}
	h.To = h.From.Add(time.Duration(len(h.Bars)) * h.Step)
	for _, c := range cells {
		h.Bars[(c.at-first)/width].Add(c.state, c.n)
	}
	return h, nil
}

// rollupClause converts a plan to a condition on the table rollups, if this table can answer the
// plan.
//
// Each row of the table counts letters of one group that were received in one quarter of an hour. A
// condition on the origin of letters can be answered by the group, because all letters of a group
// have the same origin. This is also true of the type and the reason, unless the group is mixed.
// Letters without a group have no origin, type or reason.
func rollupClause(p *plan) (clause, bool) {
	if len(p.rest) > 0 || p.match != "" || p.ids != nil || p.op != nil {
		return clause{}, false
	}
	var list []clause
	for i, d := range p.dims {
		switch p.fields[i] {
		case query.State:
			list = append(list, clause{strings.ReplaceAll(d.text, "l.state", "r.state"), d.args})
		case query.Group, query.Owner, query.Status:
			list = append(list, clause{strings.ReplaceAll(d.text, "l.grp", "r.grp"), d.args})
		case query.Severity:
			// letters of one group may have different severities, because the rules may have
			// changed in between
			return clause{}, false
		default:
			list = append(list, clause{
				"r.grp IN (SELECT l.id FROM (SELECT id, origin, type, reason FROM groups UNION ALL SELECT 0, 0, 0, '') l WHERE " + d.text + ")",
				d.args,
			})
		}
	}
	return allOf(list...), true
}

func bucketOf(t time.Time, none int64) int64 {
	if t.IsZero() {
		return none
	}
	return t.UnixMilli() / rollupMillis
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
