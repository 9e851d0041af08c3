package store

import (
	"context"
	"database/sql"
	"errors"
)

// Damage returns what was found broken in the file while it was open, nil while nothing was. It
// wraps ErrDamaged. Nothing is written any more once it is set: SQLite would go on to build on
// pages that it cannot trust. What is not stored waits in the broker.
func (s *Store) Damage() error {
	if err := s.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// suspected looks at the error of a read or a write.
func (s *Store) suspected(err error) {
	if err = damaged(err); errors.Is(err, ErrDamaged) && s.damage.CompareAndSwap(nil, &err) {
		s.log.Error("the file of the store is damaged: nothing more is written to it", "store", s.path, "err", err)
	}
}

// look runs a query on a reading connection whose text differs each time.
func (s *Store) look(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	s.suspected(err)
	return rows, err
}

// scan is scan of what a reader asked for.
func (s *Store) scan(rows *sql.Rows, fn func() error) error {
	err := scan(rows, fn)
	s.suspected(err)
	return err
}
