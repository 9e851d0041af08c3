package store

import (
	"context"
	"database/sql"
	"slices"
)

// Reader returns the reading connections.
func (s *Store) Reader() *sql.DB { return s.read }

// ReadThrough replaces the reading connections with connections of another driver.
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

// ReadBack compares the pragmas of the writing connection with the requested values, as Open does.
func (s *Store) ReadBack(ctx context.Context) error { return s.readBack(ctx) }

// IsRefused reports whether the file system rejected a write.
func IsRefused(err error) bool { return isRefused(err) }

// Refuse records that a write failed with err.
func (s *Space) Refuse(err error) bool { return s.refuse(err) }

// HasScope reports whether a table is in one of the lists that limit a request with a scope.
func HasScope(table string) bool {
	_, seen := seenTables[table]
	return seen || slices.Contains(hiddenTables, table)
}
