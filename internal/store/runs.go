package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// run is how many letters of a queue were of one type, one after the other.
type run struct {
	typ, n int64
	broken bool // another type was before it, in the same commit
}

const (
	longestRun = 200 // letters that a run looks back on
	enoughRun  = 20  // letters of a queue that say what it has
)

// and is the run after one more letter.
func (r run) and(typ int64) run {
	if r.n > 0 && r.typ != typ {
		return run{typ, 1, true}
	}
	return run{typ, r.n + 1, r.broken}
}

// run writes how the runs went on.
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

// OnlyType returns the type that all letters of a queue are of that a schema reads, when there are
// at least 20; or that the last 200 were of, when others were before them. "" where there is none.
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
