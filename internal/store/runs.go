package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// run says how many of a queue's letters in a row have the same type.
type run struct {
	typ, n int64
	broken bool // within this transaction, a letter of another type came before this run
}

const (
	longestRun = 200 // maximum number of letters that a run counts
	enoughRun  = 20  // number of a queue's letters from which dlo can tell the type of the queue
)

// afterLetter adds one more letter to a run, which is a number of letters in a row with the same
// type. It returns the new run.
func (r run) afterLetter(typ int64) run {
	if r.n > 0 && r.typ != typ {
		return run{typ, 1, true}
	}
	return run{typ, r.n + 1, r.broken}
}

// A run is a number of letters in a row that have the same type. writeRuns writes to the database
// the runs that this transaction began or continued.
func (m *moves) writeRuns(t *tx) error {
	for origin, r := range m.runs {
		if _, err := t.exec(`INSERT INTO runs (origin, type, n) VALUES ($1, $2, min($3, $4))
			ON CONFLICT DO UPDATE SET n = CASE WHEN type = excluded.type AND NOT $5 THEN min(n + excluded.n, $4)
			ELSE excluded.n END, type = excluded.type`,
			origin, r.typ, r.n, longestRun, r.broken); err != nil {
			return err
		}
	}
	return nil
}

// OnlyType returns the single type of the letters in a queue. It looks only at letters that a
// schema decodes. A queue has a single type if it has at least 20 such letters and all of them have
// this type. It also has a single type if its last 200 such letters have the same type. For any
// other queue, OnlyType returns "".
func (s *Store) OnlyType(ctx context.Context, o deadletter.Origin) (string, error) {
	id, ok := s.names.findOrigin(o)
	if !ok {
		return "", nil
	}
	types, err := values[int64](s.ask(ctx, `WITH read AS (SELECT type, sum(n) AS n FROM readings
		WHERE origin = $1 AND n > 0 AND `+bySchema+` GROUP BY type)
		SELECT type FROM read WHERE (SELECT count(*) FROM read) = 1 AND n >= $2
		UNION SELECT type FROM runs WHERE origin = $1 AND n >= $3 AND type IN (SELECT type
		FROM read)`, id, enoughRun, longestRun))
	if err != nil {
		return "", fmt.Errorf("the only type of %s: %w", o.Queue, err)
	}
	if len(types) == 0 {
		return "", nil
	}
	return s.names.typeName(types[len(types)-1]), nil
}
