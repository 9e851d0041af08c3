package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Reader returns the read connections.
func (s *Store) Reader() *sql.DB { return s.read }

// ReadThrough replaces the read connections with connections of another driver.
func (s *Store) ReadThrough(driver string) error {
	db, err := sql.Open(driver, dsn(s.path, "ro"))
	if err != nil {
		return err
	}
	old := s.read
	s.questions.Clear()
	s.read = db
	return old.Close()
}

// Writer runs a statement on the writing connection, outside of any transaction.
func (s *Store) Writer(ctx context.Context, statement string) error {
	_, err := s.conn.ExecContext(ctx, statement)
	return err
}

// ReadBack does what Open does after it sets the pragmas: it compares the pragmas of the writing
// connection with the requested values.
func (s *Store) ReadBack(ctx context.Context) error { return s.readBack(ctx) }

// IsRefused makes isRefused available to tests: it reports whether err means that the file system
// rejected a write.
func IsRefused(err error) bool { return isRefused(err) }

// Refuse records that a write failed with err.
func (s *Space) Refuse(err error) bool { return s.recordRefusal(err) }

// HasScope reports whether the store has a rule for requests with a scope that read the given
// table.
func HasScope(table string) bool {
	_, seen := seenTables[table]
	return seen || slices.Contains(hiddenTables, table)
}

// RollBack adds an origin in a transaction, calls the function "during", and then undoes the
// transaction.
func (s *Store) RollBack(ctx context.Context, o deadletter.Origin, during func()) error {
	undone := errors.New("undone")
	err := s.tx(ctx, bulk, func(t *tx) error {
		if _, err := t.originID(o); err != nil {
			return err
		}
		during()
		return undone
	})
	if errors.Is(err, undone) {
		return nil
	}
	return err
}
