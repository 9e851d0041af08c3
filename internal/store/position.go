package store

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Position returns a number that changes with the data that the request may see. If the scope of
// the request has limits, the number depends only on data in that scope. It therefore does not
// reveal how many changes there are outside the scope, or when they happen.
func (s *Store) Position(ctx context.Context) (int64, error) {
	if deadletter.ScopeOf(ctx).Everywhere() {
		return s.change.Load(), nil
	}
	sum := fnv.New64a()
	for _, query := range []string{
		`SELECT state, severity, sum(n), 0 FROM counters GROUP BY 1, 2 ORDER BY 1, 2`,
		`SELECT count(*), coalesce(sum(changed_at), 0), coalesce(sum(deaths), 0), coalesce(max(last_at), 0)
			FROM groups`,
		`SELECT result, sum(n), sum(n * operation), 0 FROM operation_counts GROUP BY 1 ORDER BY 1`,
		`SELECT id, phase, state, rate FROM operations WHERE phase <> 'over' ORDER BY id`,
		`SELECT count(*), coalesce(sum(at), 0), 0, 0 FROM pauses`,
		`SELECT count(*), coalesce(sum(since), 0), 0, 0 FROM breakers`,
	} {
		rows, err := s.ask(ctx, query)
		if err != nil {
			return 0, fmt.Errorf("position: %w", err)
		}
		var row [4]any
		if err := scan(rows, func() error {
			err := rows.Scan(&row[0], &row[1], &row[2], &row[3])
			fmt.Fprintln(sum, row[:]...)
			return err
		}); err != nil {
			return 0, fmt.Errorf("position: %w", err)
		}
	}
	return int64(sum.Sum64() >> 1), nil
}
