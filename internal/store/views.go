package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Views returns the saved queries of a person and the saved queries for everybody, sorted by name.
// If the scope of the request has limits, it leaves out the queries for everybody, because these
// can name any queue.
func (s *Store) Views(ctx context.Context, person string) ([]deadletter.View, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, name, query, by, at, owner <> '' FROM views WHERE owner = $1
		OR owner = '' AND $2 ORDER BY name, owner`, person, deadletter.ScopeOf(ctx).Everywhere())
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	var list []deadletter.View
	err = scan(rows, func() error {
		var v deadletter.View
		var at int64
		err := rows.Scan(&v.ID, &v.Name, &v.Query, &v.By, &at, &v.Mine)
		v.At = time.UnixMilli(at).UTC()
		list = append(list, v)
		return err
	})
	return list, err
}

// AddView saves a query under a name and fills in its id and time. It returns ErrConflict if the
// name is taken.
func (s *Store) AddView(ctx context.Context, v deadletter.View) (deadletter.View, error) {
	err := s.tx(ctx, bulk, func(t *tx) error {
		err := t.row(`INSERT INTO views (name, query, by, at, owner) VALUES ($1, $2, $3, $4,
			CASE WHEN $5 THEN $3 ELSE '' END) ON CONFLICT DO NOTHING RETURNING id`,
			[]any{v.Name, v.Query, v.By, t.now, v.Mine}, &v.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: there is a view %q already", deadletter.ErrConflict, deadletter.Visible(v.Name))
		}
		if err != nil {
			return err
		}
		v.At = time.UnixMilli(t.now).UTC()
		return t.audit(deadletter.Once(deadletter.ActViewSaved, v.By, v.Query, viewTarget(v.Name)))
	})
	return v, err
}

// RemoveView removes a saved query of a person. If the scope of the request has no limits, it can
// also remove a query for everybody. It returns ErrNotFound if there is no such query.
func (s *Store) RemoveView(ctx context.Context, id int64, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var name, query string
		if err := t.row(`DELETE FROM views WHERE id = $1 AND (owner = $2 OR owner = '' AND $3)
			RETURNING name, query`, []any{id, by, deadletter.ScopeOf(ctx).Everywhere()}, &name, &query); err != nil {
			return orNotFound(fmt.Sprintf("view %d", id), err)
		}
		return t.audit(deadletter.Once(deadletter.ActViewRemoved, by, query, viewTarget(name)))
	})
}

func viewTarget(name string) deadletter.Target {
	return deadletter.Target{Kind: deadletter.TargetView, Name: name}
}
