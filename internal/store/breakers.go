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
	rows, err := s.ask(ctx, `SELECT b.origin, b.grp, b.state, b.why, b.since, b.until, b.wait,
		(SELECT coalesce(sum(c.n), 0) FROM counters c WHERE c.state = 'scheduled' AND c.origin = b.origin AND (b.grp = 0
		OR c.grp = b.grp))
		FROM breakers b JOIN origins o ON o.id = b.origin WHERE o.broker = $1 ORDER BY b.origin, b.grp`, broker)
	if err != nil {
		return nil, fmt.Errorf("breakers: %w", err)
	}
	var list []deadletter.Breaker
	err = scan(rows, func() error {
		var b deadletter.Breaker
		var origin, group, since, wait int64
		var until sql.NullInt64
		err := rows.Scan(&origin, &group, &b.State, &b.Why, &since, &until, &wait, &b.Waits)
		b.Origin, b.Group = s.names.origin(origin).origin(), deadletter.GroupID(group)
		b.Since, b.Until, b.Wait = time.UnixMilli(since).UTC(), timeOf(until), time.Duration(wait)*time.Millisecond
		list = append(list, b)
		return err
	})
	return list, err
}

// SetBreaker records a breaker that is not closed. It also records an act in the audit. If the
// parameter "notice" is not nil, SetBreaker also records that notice.
func (s *Store) SetBreaker(ctx context.Context, b deadletter.Breaker, notice *deadletter.Notice) error {
	return s.tx(ctx, dispatch, func(t *tx) error {
		origin, err := t.originID(b.Origin)
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO breakers (origin, grp, state, why, since, until, wait)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT DO UPDATE SET state = excluded.state,
			why = excluded.why, since = excluded.since, until = excluded.until, wait = excluded.wait`,
			origin, int64(b.Group), string(b.State), b.Why, b.Since.UnixMilli(), millis(b.Until), b.Wait.Milliseconds(),
		); err != nil {
			return err
		}
		if err := t.breaker(deadletter.ActBreaker(b.State), b); err != nil {
			return err
		}
		return t.writeNotice(notice, 0)
	})
}

// CloseBreaker records that a breaker is closed again, and why.
func (s *Store) CloseBreaker(ctx context.Context, b deadletter.Breaker) error {
	return s.tx(ctx, dispatch, func(t *tx) error {
		origin, err := t.originID(b.Origin)
		if err != nil {
			return err
		}
		if _, err := t.exec(`DELETE FROM breakers WHERE origin = $1 AND grp = $2`, origin, int64(b.Group)); err != nil {
			return err
		}
		return t.breaker(deadletter.ActBreakerClosed, b)
	})
}

func (t *tx) breaker(kind string, b deadletter.Breaker) error {
	g := deadletter.Guard{Origin: b.Origin, Group: b.Group}
	return t.audit(deadletter.Once(kind, deadletter.Service.Name, guardedWord(g)+": "+b.Why, guardTarget(g)))
}
