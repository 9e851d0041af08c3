package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Unmatched counts the queues that need a schema. A queue needs a schema if none of its letters can
// be read, and if at least one letter is matched by no schema or by several schemas.
func (s *Store) Unmatched(ctx context.Context) (int, error) {
	var unmatched, readable []any
	for _, r := range deadletter.Readings {
		switch {
		case r == deadletter.ReadUnknown || r == deadletter.ReadAmbiguous:
			unmatched = append(unmatched, string(r))
		case r.Readable():
			readable = append(readable, string(r))
		}
	}
	n := 0
	err := s.askRow(ctx, `SELECT count(*) FROM (SELECT origin FROM readings WHERE n > 0 AND origin > 0 GROUP BY origin
		HAVING max(reading IN (`+placeholders(1, len(unmatched))+`)) = 1
		AND max(reading IN (`+placeholders(len(unmatched)+1, len(readable))+`)) = 0)`,
		slices.Concat(unmatched, readable), &n)
	if err != nil {
		return 0, fmt.Errorf("queues without a schema: %w", err)
	}
	return n, nil
}

// Oldest returns the time at which the first of the letters that match q was received. If no letter
// matches, it returns the zero time.
func (s *Store) Oldest(ctx context.Context, q query.Query) (time.Time, error) {
	p, err := s.plan(ctx, q)
	if err != nil {
		return time.Time{}, err
	}
	list, err := s.page(ctx, p, deadletter.OrderReceived, cursor{}, true, 1)
	if err != nil || len(list) == 0 {
		return time.Time{}, err
	}
	return list[0].ReceivedAt, nil
}
