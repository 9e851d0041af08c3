package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Breakers returns the breakers of a broker that are not closed.
func (s *Store) Breakers(ctx context.Context, broker string) ([]deadletter.Breaker, error) {
	rows, err := s.ask(ctx, `SELECT b.origin, b.state, b.why, b.since, b.until, b.wait FROM breakers b JOIN origins o ON o.id = b.origin WHERE o.broker = $1`, broker)
	if err != nil {
		return nil, fmt.Errorf("breakers: %w", err)
	}
	var list []deadletter.Breaker
	err = scan(rows, func() error {
		var b deadletter.Breaker
		var origin, since, wait int64
		var until sql.NullInt64
		err := rows.Scan(&origin, &b.State, &b.Why, &since, &until, &wait)
		b.Origin, b.Since, b.Until, b.Wait = s.names.origin(origin).named(), time.UnixMilli(since).UTC(), timeOf(until), time.Duration(wait)*time.Millisecond
		list = append(list, b)
		return err
	})
	return list, err
}

// SetBreaker records a breaker that is not closed, with an entry in the audit and a notice, if any.
func (s *Store) SetBreaker(ctx context.Context, b deadletter.Breaker, notice *deadletter.Notice) error {
	return s.tx(ctx, dispatch, func(t *tx) error {
		origin, err := t.originID(b.Origin)
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO breakers (origin, state, why, since, until, wait) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT DO UPDATE SET state = excluded.state, why = excluded.why, since = excluded.since, until = excluded.until, wait = excluded.wait`,
			origin, string(b.State), b.Why, b.Since.UnixMilli(), millis(b.Until), b.Wait.Milliseconds()); err != nil {
			return err
		}
		if err := t.event(0, 0, "breaker "+string(b.State), deadletter.Service.Name, guardedWord(deadletter.Guard{Origin: b.Origin})+": "+b.Why); err != nil {
			return err
		}
		return t.notice(notice, 0)
	})
}

// CloseBreaker records that a breaker is closed again.
func (s *Store) CloseBreaker(ctx context.Context, o deadletter.Origin, why string) error {
	return s.tx(ctx, dispatch, func(t *tx) error {
		origin, err := t.originID(o)
		if err != nil {
			return err
		}
		if _, err := t.exec(`DELETE FROM breakers WHERE origin = $1`, origin); err != nil {
			return err
		}
		return t.event(0, 0, "breaker closed", deadletter.Service.Name, guardedWord(deadletter.Guard{Origin: o})+": "+why)
	})
}
