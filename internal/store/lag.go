package store

import (
	"context"
	"database/sql"
	"time"
)

// ScheduleLag returns how late the automatic retries are. If several retries are late, the result
// is the lateness of the one that was due first. If no retry is late, the result is 0. A paused
// retry does not count as late.
func (s *Store) ScheduleLag(ctx context.Context) (time.Duration, error) {
	var first sql.NullInt64
	now := s.now()
	err := s.askRow(ctx, `SELECT min((SELECT l.due_at FROM letters l INDEXED BY letters_due
			WHERE l.state = 'scheduled' AND l.operation IS NULL AND l.waits_in IS NULL AND l.origin = o.origin
			AND l.due_at <= $1 AND `+notPaused+` ORDER BY l.due_at LIMIT 1))
		FROM (SELECT DISTINCT origin FROM counters WHERE state = 'scheduled') o WHERE NOT EXISTS (SELECT 1 FROM pauses p
		WHERE p.origin = o.origin AND p.grp = 0)`, []any{now.UnixMilli()}, &first)
	if err != nil || !first.Valid {
		return 0, err
	}
	return now.Sub(timeOf(first)), nil
}
