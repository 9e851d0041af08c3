package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// run is how many letters in a row have one type in a queue.
type run struct {
	typ, n int64
	broken bool // another type came before this run in this transaction
}

const (
	longestRun = 200 // maximum letters that a run covers
	enoughRun  = 20  // number of a queue's letters that is enough to show its type
)

// with returns the run after one more letter.
func (r run) with(typ int64) run {
	if r.n > 0 && r.typ != typ {
		return run{typ, 1, true}
	}
	return run{typ, r.n + 1, r.broken}
}

// run writes the runs that this transaction began or continued.
func (m *moves) run(t *tx) error {
	for origin, r := range m.runs {
		if _, err := t.exec(`INSERT INTO runs (origin, type, n) VALUES ($1, $2, min($3, $4))
			ON CONFLICT DO UPDATE SET n = CASE WHEN type = excluded.type AND NOT $5 THEN min(n + excluded.n, $4) ELSE excluded.n END, type = excluded.type`,
			origin, r.typ, r.n, longestRun, r.broken); err != nil {
			return err
		}
	}
	return nil
}

// OnlyType returns the single type of a queue's letters, among the letters that a schema decodes. A
// queue has a single type if it has at least 20 such letters and all of them have this type. It
// also has one if its last 200 such letters have the same type. Otherwise OnlyType returns "".
func (s *Store) OnlyType(ctx context.Context, o deadletter.Origin) (string, error) {
	id, ok := s.names.findOrigin(o)
	if !ok {
		return "", nil
	}
	rows, err := s.ask(ctx, `WITH read AS (SELECT type, sum(n) AS n FROM readings WHERE origin = $1 AND n > 0 AND `+bySchema+` GROUP BY type)
		SELECT type FROM read WHERE (SELECT count(*) FROM read) = 1 AND n >= $2
		UNION SELECT type FROM runs WHERE origin = $1 AND n >= $3 AND type IN (SELECT type FROM read)`, id, enoughRun, longestRun)
	if err != nil {
		return "", fmt.Errorf("the only type of %s: %w", o.Queue, err)
	}
	name := ""
	err = scan(rows, func() error {
		var typ int64
		err := rows.Scan(&typ)
		name = s.names.typeName(typ)
		return err
	})
	return name, err
}
