// Package migrations contains the schema of the store and applies it. There is one numbered file
// for each step, and each step runs in its own transaction. If the schema of a store is newer than
// this program, the store is rejected and not changed.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed sqlite/*.sql
var files embed.FS

// ErrNewer means that a newer version of dlo wrote the file.
var ErrNewer = errors.New("the store was written by a newer version of dlo")

// Apply migrates an SQLite database to the newest schema that this program knows. Each step is one
// transaction. After each step, Apply calls the function "done", unless it is nil, with the version
// that the schema has then.
func Apply(ctx context.Context, db *sql.DB, done func(version int64)) error {
	return ApplyTo(ctx, db, goose.MaxVersion, done)
}

// ApplyTo migrates an SQLite database to the given schema version. Tests of upgrades use it to
// create a store of an older version.
func ApplyTo(ctx context.Context, db *sql.DB, version int64, done func(version int64)) error {
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	at, _, err := schemaVersion(ctx, db, provider)
	if err != nil {
		return err
	}
	for _, step := range provider.ListSources() {
		if step.Version <= at || step.Version > version {
			continue
		}
		if _, err := provider.UpTo(ctx, step.Version); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if done != nil {
			done(step.Version)
		}
	}
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	steps, err := fs.Sub(files, "sqlite")
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(database.DialectSQLite3, db, steps)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return provider, nil
}

// Version returns the version of a database's schema, which is 0 for an empty database, and the
// newest version that this program knows. If the schema is newer, the error wraps ErrNewer. Nothing
// is written.
func Version(ctx context.Context, db *sql.DB) (at, newest int64, err error) {
	provider, err := newProvider(db)
	if err != nil {
		return 0, 0, err
	}
	return schemaVersion(ctx, db, provider)
}

func schemaVersion(ctx context.Context, db *sql.DB, provider *goose.Provider) (at, newest int64, err error) {
	sources := provider.ListSources()
	newest = sources[len(sources)-1].Version
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table'
		AND name = $1)`, goose.DefaultTablename).Scan(&exists); err != nil || !exists {
		return 0, newest, err
	}
	if at, err = provider.GetDBVersion(ctx); err != nil {
		return 0, newest, fmt.Errorf("schema version: %w", err)
	}
	if at > newest {
		return at, newest, fmt.Errorf("%w: its schema is version %d, this program knows %d", ErrNewer, at, newest)
	}
	return at, newest, nil
}
