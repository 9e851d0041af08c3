package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Damaged returns the error with which SQLite first reported damage in the store's file. It returns
// nil if SQLite reported no damage. After such an error, every write is rejected with ErrDamaged,
// because a write could increase the damage. Reads still work as far as possible.
func (s *Store) Damaged() error {
	if err := s.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// noteDamage receives the error of every SQLite call. It remembers the first error that reports
// damage.
func (s *Store) noteDamage(err error) {
	if !isDamage(err) || !s.damage.CompareAndSwap(nil, &err) {
		return
	}
	s.log.Error("the store is damaged: nothing more is written to it", "store", s.path, "err", err)
}

// isDamage reports whether an SQLite error means that a file is a damaged database or not a
// database.
func isDamage(err error) bool {
	switch c := resultCode(err); c & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	default:
		return c == sqlite3.SQLITE_IOERR_CORRUPTFS
	}
}

// wrapDamage wraps an SQLite error about a damaged file with ErrDamaged.
func wrapDamage(err error) error {
	if isDamage(err) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// connector opens connections to the database. It passes every error on these connections to the
// function onError.
type connector struct {
	driver.Connector
	onError func(error)
	// restricts a query to the scope of the request; nil = reads are not restricted
	scoped func(ctx context.Context, query string) string
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if c.onError(err); err != nil {
		return nil, err
	}
	return watchedConn{conn.(sqliteConn), c.onError, c.scoped}, nil
}

func (s *Store) database(mode string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn(s.path, mode))
	if err != nil {
		return nil, err
	}
	scoped := s.scopeQuery
	if mode == "rw" { // a transaction checks its scope before it begins
		scoped = nil
	}
	return sql.OpenDB(connector{c, s.noteDamage, scoped}), nil
}

// sqliteConn and sqliteStmt are the interfaces of the SQLite driver that database/sql uses.
type (
	sqliteConn interface {
		driver.Conn
		driver.ConnBeginTx
		driver.ConnPrepareContext
		driver.ExecerContext
		driver.QueryerContext
		driver.SessionResetter
		driver.Validator
	}
	sqliteStmt interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
)

type watchedConn struct {
	sqliteConn
	onError func(error)
	scoped  func(ctx context.Context, query string) string
}

func (c watchedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared := func(context.Context) bool { return true }
	if c.scoped != nil {
		query = c.scoped(ctx, query)
		scope := deadletter.ScopeOf(ctx).Key()
		prepared = func(ctx context.Context) bool { return deadletter.ScopeOf(ctx).Key() == scope }
	}
	stmt, err := c.sqliteConn.PrepareContext(ctx, query)
	if c.onError(err); err != nil {
		return nil, err
	}
	return watchedStmt{stmt.(sqliteStmt), c.onError, prepared}, nil
}

func (c watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.sqliteConn.ExecContext(ctx, query, args)
	c.onError(err)
	return result, err
}

func (c watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.scoped != nil {
		query = c.scoped(ctx, query)
	}
	rows, err := c.sqliteConn.QueryContext(ctx, query, args)
	if c.onError(err); err != nil {
		return nil, err
	}
	return watchedRows{rows, c.onError}, nil
}

type watchedStmt struct {
	sqliteStmt
	onError  func(error)
	prepared func(ctx context.Context) bool // reports whether the statement was prepared for the scope of ctx
}

var errOtherScope = errors.New("a query was prepared for another scope")

func (s watchedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.sqliteStmt.ExecContext(ctx, args)
	s.onError(err)
	return result, err
}

func (s watchedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if !s.prepared(ctx) {
		return nil, errOtherScope
	}
	rows, err := s.sqliteStmt.QueryContext(ctx, args)
	if s.onError(err); err != nil {
		return nil, err
	}
	return watchedRows{rows, s.onError}, nil
}

type watchedRows struct {
	driver.Rows
	onError func(error)
}

func (r watchedRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	r.onError(err)
	return err
}
