package store

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// page returns letters of a plan in the order of a list, starting at a position. The parameter
// "limit" is the maximum number of letters. If the parameter "backwards" is true, page reads in the
// opposite direction.
func (s *Store) page(
	ctx context.Context, p *plan, order deadletter.Order, from cursor, backwards bool, limit int,
) ([]deadletter.Row, error) {
	if p.empty {
		return nil, nil
	}
	if by, ok := orderings[order]; ok {
		return s.pageBy(ctx, p, by, from, backwards, limit)
	}
	upwards := backwards != (order == deadletter.OrderOldest)
	serials, err := s.newestSerials(ctx, s.read, p, from.serial, upwards, limit)
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	list, err := s.rowsOf(ctx, serials)
	if err != nil {
		return nil, err
	}
	if upwards {
		slices.Reverse(list)
	}
	return list, nil
}

// rowsOf reads letters in the form that lists show, newest first.
func (s *Store) rowsOf(ctx context.Context, serials []int64) ([]deadletter.Row, error) {
	var list []deadletter.Row
	for chunk := range slices.Chunk(
		slices.SortedFunc(slices.Values(serials), func(a, b int64) int { return cmp.Compare(b, a) }), 500,
	) {
		args := make([]any, len(chunk))
		for i, serial := range chunk {
			args[i] = serial
		}
		rows, err := s.read.QueryContext(
			ctx,
			`SELECT `+rowColumns+` FROM letters l WHERE l.id IN (`+placeholders(1, len(args))+`) ORDER BY l.id DESC`,
			args...,
		)
		if err != nil {
			return nil, err
		}
		part, err := s.rows(ctx, rows)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// newestSerials returns at most "limit" serials of letters that match a plan. Usually it returns
// the serials below the parameter "from", newest first. If "from" is 0, there is no such bound. If
// the parameter "backwards" is true, it returns the serials above "from", oldest first.
//
// The letters of a plan come from several sources, each of which is read along an index.
// newestSerials stops reading a source as soon as the source cannot improve the result any more, so
// it reads almost nothing of most sources.
func (s *Store) newestSerials(
	ctx context.Context, db reader, p *plan, from int64, backwards bool, limit int,
) ([]int64, error) {
	sources, err := s.sources(ctx, db, p)
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	if pool, ok := db.(*sql.DB); ok { // with a single connection, each statement is prepared only once for all sources
		conn, err := pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		db = conn
	}
	order, better, bound, compare := " DESC", " > ?", int64(0), func(a, b int64) int { return cmp.Compare(b, a) }
	edge := clause{" < ?", []any{from}}
	if backwards {
		order, better, bound, compare = "", " < ?", math.MaxInt64, cmp.Compare[int64]
		edge.text = " > ?"
	}
	prepared := map[string]*sql.Stmt{}
	var serials []int64
	for _, src := range sources {
		where := allOf(p.filter(src), clause{src.key + better, []any{bound}})
		if from != 0 {
			where = allOf(where, clause{src.key + edge.text, edge.args})
		}
		text := numberPlaceholders(
			`SELECT ` + src.key + ` FROM ` + src.from + ` WHERE ` + where.text + ` ORDER BY ` + src.key + order +
				` LIMIT ?`,
		)
		stmt := prepared[text]
		if stmt == nil {
			if stmt, err = db.PrepareContext(ctx, text); err != nil {
				return nil, err
			}
			defer stmt.Close()
			prepared[text] = stmt
		}
		found, err := values[int64](stmt.QueryContext(ctx, append(where.args, limit)...))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		serials = append(serials, found...)
		slices.SortFunc(serials, compare)
		if len(serials) >= limit {
			serials = serials[:limit]
			bound = serials[limit-1]
		}
	}
	return serials, nil
}
