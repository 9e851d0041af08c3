package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Audit returns up to f.Limit entries of what people, and dlo by itself, did, newest first, and the
// cursor of the next page, "" at the end. What happened to single letters is in their histories.
func (s *Store) Audit(ctx context.Context, f deadletter.AuditFilter) (list []deadletter.AuditEntry, next string, err error) {
	if f.Limit <= 0 || f.Limit > maxPage {
		return nil, "", fmt.Errorf("%w: a page has 1 to %d entries", deadletter.ErrInvalid, maxPage)
	}
	where := clause{text: "e.letter IS NULL"}
	and := func(text string, arg any) { where = every(where, clause{text, []any{arg}}) }
	if f.After != "" {
		before, err := strconv.ParseInt(f.After, 36, 64)
		if err != nil {
			return nil, "", fmt.Errorf("%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid)
		}
		and("e.id < ?", before)
	}
	if f.Actor != "" {
		and("e.actor = ?", f.Actor)
	}
	if f.Kind != "" {
		and("e.kind = ?", f.Kind)
	}
	if f.Through != "" {
		and("o.through = ?", f.Through)
	}
	if f.Operation != 0 {
		and("e.operation = ?", int64(f.Operation))
	}
	if !f.Since.IsZero() {
		and("e.at >= ?", f.Since.UnixMilli())
	}
	if !f.Before.IsZero() {
		and("e.at < ?", f.Before.UnixMilli())
	}
	rows, err := s.read.QueryContext(ctx, numbered(`SELECT e.id, e.at, e.kind, e.actor, e.detail, e.operation, coalesce(o.through, ''), coalesce(o.query, ''), coalesce(o.total, 0)
		FROM events e INDEXED BY events_audit LEFT JOIN operations o ON o.id = e.operation WHERE `+where.text+` ORDER BY e.id DESC LIMIT ?`), append(where.args, f.Limit+1)...)
	if err != nil {
		return nil, "", fmt.Errorf("audit: %w", err)
	}
	if err := scan(rows, func() error {
		var e deadletter.AuditEntry
		var at int64
		var operation sql.NullInt64
		err := rows.Scan(&e.ID, &at, &e.Kind, &e.Actor, &e.Detail, &operation, &e.Through, &e.Query, &e.Total)
		e.At, e.Operation = time.UnixMilli(at).UTC(), deadletter.OperationID(operation.Int64)
		list = append(list, e)
		return err
	}); err != nil {
		return nil, "", fmt.Errorf("audit: %w", err)
	}
	if len(list) > f.Limit {
		list = list[:f.Limit]
		next = strconv.FormatInt(list[f.Limit-1].ID, 36)
	}
	return list, next, nil
}
