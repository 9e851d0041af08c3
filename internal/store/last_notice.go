package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// LastNotice returns the time and the channel of the newest notice that was sent. It looks only at
// the newest 200 notices. If none of them was sent, the time is zero.
func (s *Store) LastNotice(ctx context.Context) (at time.Time, channel string, err error) {
	var ended sql.NullInt64
	err = s.askRow(ctx, `SELECT d.ended_at, d.channel FROM (SELECT id FROM notices ORDER BY id DESC LIMIT 200) n
		JOIN deliveries d ON d.notice = n.id
		WHERE d.state = 'sent' ORDER BY d.ended_at DESC LIMIT 1`, nil, &ended, &channel)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !ended.Valid {
		return time.Time{}, "", nil
	}
	return timeOf(ended), channel, err
}
