package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Pause holds back the automatic retries of a queue, or of one group in that queue, until Resume is
// called. It returns ErrConflict if the retries are already paused. It returns ErrNotFound if no
// letter died in the queue or if the group does not exist.
func (s *Store) Pause(ctx context.Context, g deadletter.Guard) (deadletter.Guard, error) {
	err := s.tx(ctx, urgent, func(t *tx) error {
		origin, err := t.findGuarded(&g)
		if err != nil {
			return err
		}
		done, err := t.exec(`INSERT INTO pauses (origin, grp, reason, by, at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING`, origin, int64(g.Group), g.Why, g.By, t.now)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(
				err, fmt.Errorf("%w: the retries of %s are already paused", deadletter.ErrConflict, guardedWord(g)),
			)
		}
		g.State, g.Since = deadletter.GuardPaused, time.UnixMilli(t.now).UTC()
		detail := guardedWord(g) + reasonSuffix(g.Why)
		return t.audit(deadletter.Once(deadletter.ActRetriesPaused, g.By, detail, guardTarget(g)))
	})
	return g, err
}

// Resume ends a hold on automatic retries: those of a whole queue, or of one group in that queue.
// If a breaker held the retries back, their rate rises slowly after that. Resume returns
// ErrConflict if neither a pause nor a breaker holds the retries back.
func (s *Store) Resume(ctx context.Context, g deadletter.Guard) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		origin, err := t.findGuarded(&g)
		if err != nil {
			return err
		}
		done, err := t.exec(`DELETE FROM pauses WHERE origin = $1 AND grp = $2`, origin, int64(g.Group))
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO resumed (origin, grp, at) VALUES ($1, $2, $3) ON CONFLICT DO UPDATE
			SET at = excluded.at`, origin, int64(g.Group), t.now); err != nil {
			return err
		}
		done, err = t.exec(`UPDATE breakers SET state = 'ramping', since = $2, until = NULL WHERE origin = $1
			AND ($3 = 0 OR grp = $3) AND state <> 'ramping'`,
			origin, t.now, int64(g.Group))
		if err != nil {
			return err
		}
		tripped, err := done.RowsAffected()
		if err != nil {
			return err
		}
		if n+tripped == 0 {
			return fmt.Errorf("%w: the retries of %s are not paused", deadletter.ErrConflict, guardedWord(g))
		}
		detail := guardedWord(g) + reasonSuffix(g.Why)
		return t.audit(deadletter.Once(deadletter.ActRetriesResumed, g.By, detail, guardTarget(g)))
	})
}

// findGuarded finds the queue or group whose retries a guard holds back. It fills in the guard's
// details and returns the id of the origin.
func (t *tx) findGuarded(g *deadletter.Guard) (int64, error) {
	var origin int64
	if g.Group == 0 {
		err := t.row(`SELECT id FROM origins WHERE broker = $1 AND vhost = $2 AND queue = $3
			AND id > 0`, []any{g.Origin.Broker, g.Origin.VHost, g.Origin.Queue}, &origin)
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf(
				"%w: no letter died in queue %s of vhost %s at broker %s", deadletter.ErrNotFound,
				deadletter.Visible(g.Origin.Queue), deadletter.Visible(g.Origin.VHost),
				deadletter.Visible(g.Origin.Broker),
			)
		}
		return origin, err
	}
	err := t.row(`SELECT origin, title FROM groups WHERE id = $1`, []any{int64(g.Group)}, &origin, &g.Title)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, deadletter.NoSuch("group %s", g.Group)
	}
	g.Origin = t.s.names.origin(origin).origin()
	return origin, err
}

// guardTarget returns the queue or group whose retries a guard holds back.
func guardTarget(g deadletter.Guard) deadletter.Target {
	if g.Group != 0 {
		return deadletter.GroupTarget(g.Group)
	}
	return deadletter.Target{Kind: deadletter.TargetQueue, Name: g.Origin.Queue}
}

func guardedWord(g deadletter.Guard) string {
	word := "queue " + deadletter.Visible(g.Origin.Queue) + " of broker " + deadletter.Visible(g.Origin.Broker)
	if g.Group != 0 {
		return "group " + g.Group.String() + " of " + word
	}
	return word
}

// Guards returns the guards that hold back automatic retries now, sorted by queue and group. If a
// queue or group has both a pause and a breaker, the pause comes first.
func (s *Store) Guards(ctx context.Context) ([]deadletter.Guard, error) {
	rows, err := s.ask(ctx, `SELECT p.origin, p.grp, coalesce(g.title, ''), 'paused', p.reason, p.by, p.at, NULL
		FROM pauses p LEFT JOIN groups g ON g.id = p.grp
		UNION ALL SELECT b.origin, b.grp, coalesce(g.title, ''), b.state, b.why, $1, b.since, b.until FROM breakers b
		LEFT JOIN groups g ON g.id = b.grp ORDER BY 1, 2, 4`, deadletter.Service.Name)
	if err != nil {
		return nil, fmt.Errorf("guards: %w", err)
	}
	var list []deadletter.Guard
	err = scan(rows, func() error {
		var g deadletter.Guard
		var origin, group, since int64
		var until sql.NullInt64
		err := rows.Scan(&origin, &group, &g.Title, &g.State, &g.Why, &g.By, &since, &until)
		g.Origin, g.Group, g.Since, g.Until = s.names.origin(
			origin,
		).origin(), deadletter.GroupID(group), time.UnixMilli(since).UTC(), timeOf(until)
		list = append(list, g)
		return err
	})
	return list, err
}

// Queues returns the queues in which letters died, with the number of letters in each state. The
// queues are sorted by broker, vhost and name.
func (s *Store) Queues(ctx context.Context) ([]deadletter.QueueCounts, error) {
	rows, err := s.ask(ctx, `SELECT o.id, c.state, sum(c.n) FROM origins o JOIN counters c ON c.origin = o.id
		WHERE o.id > 0 AND c.n > 0 GROUP BY o.id, c.state ORDER BY o.broker, o.vhost, o.queue, o.id`)
	if err != nil {
		return nil, fmt.Errorf("queues: %w", err)
	}
	var list []deadletter.QueueCounts
	var last int64
	err = scan(rows, func() error {
		var origin int64
		var state deadletter.State
		var n int
		if err := rows.Scan(&origin, &state, &n); err != nil {
			return err
		}
		if origin != last {
			list = append(list, deadletter.QueueCounts{
				Origin: s.names.origin(origin).origin(),
				Counts: map[deadletter.State]int{},
			})
			last = origin
		}
		list[len(list)-1].Counts[state] += n
		return nil
	})
	return list, err
}
