package store

import (
	"context"
	"time"
)

// LastSeen returns the latest time recorded in the store. A clock that shows an earlier time was
// set back.
func (s *Store) LastSeen(ctx context.Context) (time.Time, error) {
	var event, letter int64
	err := s.askRow(ctx, `SELECT coalesce((SELECT at FROM events ORDER BY id DESC LIMIT 1), 0), coalesce((SELECT max(id)
		FROM letters), 0) >> 12`, nil, &event, &letter)
	return time.UnixMilli(max(event, letter)).UTC(), err
}

// DrawNear brings forward the automatic retries that are due later than the given time: they become
// due at that time. DrawNear returns their number. It is needed if the clock was set back, because
// letters could otherwise wait longer than the longest back-off. Due times chosen by a person do
// not change.
func (s *Store) DrawNear(ctx context.Context, latest time.Time) (int, error) {
	done := 0
	for {
		n := 0
		err := s.tx(ctx, bulk, func(t *tx) error {
			changed, err := t.exec(`UPDATE letters SET due_at = $1, told_by = $1 + told_rest WHERE id IN (SELECT id
				FROM letters INDEXED BY letters_next WHERE state = 'scheduled' AND due_at > $1
				AND operation IS NULL AND fixed = 0 LIMIT $2)`, latest.UnixMilli(), drawChunk)
			if err != nil {
				return err
			}
			rows, err := changed.RowsAffected()
			n = int(rows)
			return err
		})
		if done += n; err != nil || n < drawChunk {
			return done, err
		}
	}
}

const drawChunk = 1000 // maximum number of letters in one transaction
