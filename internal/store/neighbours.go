package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Neighbours returns the letters directly before and after the given letter, among the letters that
// match q. The default order is newest received first. At either end of the list, it returns ""
// instead of an id.
func (s *Store) Neighbours(
	ctx context.Context, q query.Query, id deadletter.ID, order deadletter.Order,
) (before, after deadletter.ID, err error) {
	here, err := s.Rows(ctx, []deadletter.ID{id})
	if err != nil || len(here) == 0 {
		return "", "", err
	}
	at := cursorOf(here[0], order).String()
	if rows, _, _, err := s.Letters(ctx, q, deadletter.Page{Before: at, Limit: 1, Order: order}); err != nil {
		return "", "", err
	} else if len(rows) > 0 {
		before = rows[0].ID
	}
	if rows, _, _, err := s.Letters(ctx, q, deadletter.Page{After: at, Limit: 1, Order: order}); err != nil {
		return "", "", err
	} else if len(rows) > 0 {
		after = rows[0].ID
	}
	return before, after, nil
}

// Ahead returns how many letters that match q come before the given letter in the given order. It
// counts at most as many letters as "limit" says. The result "listed" is true if the given letter
// itself matches. If it does not match, n is the position that it would have.
func (s *Store) Ahead(
	ctx context.Context, q query.Query, id deadletter.ID, order deadletter.Order, limit int,
) (n int, listed bool, err error) {
	here, err := s.Rows(ctx, []deadletter.ID{id})
	if err != nil || len(here) == 0 {
		return 0, false, err
	}
	p, err := s.plan(ctx, q)
	if err != nil || p.empty {
		return 0, false, err
	}
	from := cursorOf(here[0], order)
	first, err := s.newestSerials(ctx, s.read, p, from.serial+1, false, 1)
	if err != nil {
		return 0, false, fmt.Errorf("look for a letter in its list: %w", err)
	}
	listed = len(first) > 0 && first[0] == from.serial
	if _, valued := orderings[order]; valued {
		list, err := s.page(ctx, p, order, from, true, limit)
		return len(list), listed, err
	}
	serials, err := s.newestSerials(ctx, s.read, p, from.serial, order != deadletter.OrderOldest, limit)
	if err != nil {
		return 0, false, fmt.Errorf("count the letters ahead: %w", err)
	}
	return len(serials), listed, nil
}
