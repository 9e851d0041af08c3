package store

import (
	"context"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ReceivedSince returns how many letters were received from each queue since a time. It reads
// counters that have one value per quarter of an hour. Letters that are not yet classified do not
// count.
func (s *Store) ReceivedSince(ctx context.Context, since time.Time) (map[deadletter.Origin]int, error) {
	rows, err := s.ask(ctx, `SELECT g.origin, sum(r.n) FROM rollups r JOIN groups g ON g.id = r.grp WHERE r.bucket >= $1
		GROUP BY g.origin`, since.UnixMilli()/rollupMillis)
	if err != nil {
		return nil, fmt.Errorf("letters received from each queue: %w", err)
	}
	counts := map[deadletter.Origin]int{}
	err = scan(rows, func() error {
		var origin int64
		var n int
		err := rows.Scan(&origin, &n)
		counts[s.names.origin(origin).origin()] += n
		return err
	})
	return counts, err
}
