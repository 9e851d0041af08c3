package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Overrides returns the saved redirects, sorted by queue.
func (s *Store) Overrides(ctx context.Context) ([]deadletter.Override, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT r.id, o.broker, o.vhost, o.queue, r.target, r.reason, r.by, r.at
		FROM overrides r JOIN origins o ON o.id = r.origin ORDER BY o.queue, o.vhost, o.broker`)
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	var list []deadletter.Override
	err = scan(rows, func() error {
		var o deadletter.Override
		var at int64
		err := rows.Scan(&o.ID, &o.Broker, &o.VHost, &o.Queue, &o.To, &o.Reason, &o.By, &at)
		o.At = time.UnixMilli(at).UTC()
		list = append(list, o)
		return err
	})
	return list, err
}

// AddOverride saves a redirect and fills in its id and time. It returns ErrConflict if the queue
// already has a redirect.
func (s *Store) AddOverride(ctx context.Context, o deadletter.Override) (deadletter.Override, error) {
	err := s.tx(ctx, bulk, func(t *tx) error {
		origin, err := t.originID(deadletter.Origin{Broker: o.Broker, VHost: o.VHost, Queue: o.Queue})
		if err != nil {
			return err
		}
		err = t.row(`INSERT INTO overrides (origin, target, reason, by, at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING RETURNING id`, []any{origin, o.To, o.Reason, o.By, t.now}, &o.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf(
				"%w: queue %s is redirected already; remove that redirect first", deadletter.ErrConflict,
				deadletter.Visible(o.Queue),
			)
		}
		if err != nil {
			return err
		}
		o.At = time.UnixMilli(t.now).UTC()
		detail := "letters of " + deadletter.Visible(o.Queue) + " go to " + deadletter.Visible(o.To)
		return t.audit(
			deadletter.Once(deadletter.ActRedirect, o.By, detail+reasonSuffix(o.Reason), redirectTarget(o.Queue)),
		)
	})
	return o, err
}

// RemoveOverride removes a redirect. It returns ErrNotFound if no redirect has that id.
func (s *Store) RemoveOverride(ctx context.Context, id int64, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var origin int64
		var target string
		err := t.row(`DELETE FROM overrides WHERE id = $1 RETURNING origin, target`, []any{id}, &origin, &target)
		if errors.Is(err, sql.ErrNoRows) {
			return deadletter.NoSuch("redirect %d", id)
		}
		if err != nil {
			return err
		}
		queue := t.s.names.origin(origin).Queue
		detail := fmt.Sprintf(
			"letters of %s go to their queue again, not to %s", deadletter.Visible(queue), deadletter.Visible(target),
		)
		return t.audit(deadletter.Once(deadletter.ActRedirectRemoved, by, detail, redirectTarget(queue)))
	})
}

func redirectTarget(queue string) deadletter.Target {
	return deadletter.Target{Kind: deadletter.TargetRedirect, Name: queue}
}

// reasonSuffix returns ": " and a reason, to be appended to the detail of an act. It returns "" if
// there is no reason.
func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
