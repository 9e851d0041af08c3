package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ordering is an order in which letters are sorted by a value. Letters with equal values are sorted
// by serial.
type ordering struct {
	mark    byte   // first byte of every cursor of this order
	value   string // SQL expression for the value; the table of letters is l
	of      func(deadletter.Row) int64
	upwards bool // whether letters with small values come first
}

// orderings are the orders of letters that do not sort by serial alone.
var orderings = map[deadletter.Order]ordering{
	deadletter.OrderDue:      {'d', `l.due_at`, func(r deadletter.Row) int64 { return r.DueAt.UnixMilli() }, true},
	deadletter.OrderDied:     {'t', `coalesce(l.died_at, l.received_at)`, deathMillis, false},
	deadletter.OrderAttempts: {'a', `l.attempts`, func(r deadletter.Row) int64 { return int64(r.Attempts) }, false},
	deadletter.OrderSize:     {'s', `l.size`, func(r deadletter.Row) int64 { return int64(r.Size) }, false},
}

func deathMillis(r deadletter.Row) int64 {
	if r.DiedAt.IsZero() {
		return r.ReceivedAt.UnixMilli()
	}
	return r.DiedAt.UnixMilli()
}

// pageBy returns at most "limit" letters of a plan, sorted by a value, starting at a position. If
// the parameter "backwards" is true, it reads in the opposite direction. Only the order by due time
// uses an index. For any other value, pageBy reads all letters of the plan.
func (s *Store) pageBy(
	ctx context.Context, p *plan, by ordering, from cursor, backwards bool, limit int,
) ([]deadletter.Row, error) {
	sources, err := s.sourcesBy(ctx, p, by)
	if err != nil {
		return nil, err
	}
	upwards := by.upwards != backwards
	at, sorted := clause{}, by.value+", l.id"
	if !upwards {
		sorted = by.value + " DESC, l.id DESC"
	}
	if from.serial != 0 {
		at = clause{
			"(" + by.value + ", l.id) " + map[bool]string{true: ">", false: "<"}[upwards] + " (?, ?)",
			[]any{from.value, from.serial},
		}
	}
	var list []deadletter.Row
	for _, src := range sources {
		where := allOf(p.filter(src), at)
		rows, err := s.read.QueryContext(
			ctx,
			numberPlaceholders(
				`SELECT `+rowColumns+` FROM `+src.from+` WHERE `+where.text+` ORDER BY `+sorted+` LIMIT ?`,
			),
			append(where.args, limit)...,
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
	slices.SortFunc(list, func(a, b deadletter.Row) int {
		x, _, _ := a.ID.Split()
		y, _, _ := b.ID.Split()
		order := cmp.Or(cmp.Compare(by.of(a), by.of(b)), cmp.Compare(x, y))
		if upwards {
			return order
		}
		return -order
	})
	return list[:min(limit, len(list))], nil
}

// sourcesBy returns the sources from which a list in a given order reads its letters. A list in the
// order of due times contains only scheduled and requeued letters, because no others have a due
// time. For this order, each of the two states is a source. Such a source is read along an index,
// and only as far as the page needs.
func (s *Store) sourcesBy(ctx context.Context, p *plan, by ordering) ([]source, error) {
	if by.mark != 'd' {
		return s.sources(ctx, s.read, p)
	}
	p.probe()
	var list []source
	for _, src := range []source{
		{"letters l INDEXED BY letters_next", "l.id", clause{text: "l.state = 'scheduled' AND l.due_at IS NOT NULL"}},
		{"letters l INDEXED BY letters_watched", "l.id", clause{text: "l.state = 'requeued' AND l.due_at IS NOT NULL"}},
	} {
		if p.ids != nil {
			src.from = "letters l"
			src.where = allOf(src.where, *p.ids)
		}
		if p.op != nil {
			src.where = allOf(src.where, clause{
				"EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.letter = l.id AND " + p.op.text + ")", p.op.args,
			})
		}
		list = append(list, src)
	}
	return list, nil
}
