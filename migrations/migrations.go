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

// Apply migrates an SQLite database to the newest schema that this program knows.
func Apply(ctx context.Context, db *sql.DB) error { return ApplyTo(ctx, db, goose.MaxVersion) }

// ApplyTo migrates an SQLite database to the given schema version. Tests of upgrades use it to
// create a store of an older version.
func ApplyTo(ctx context.Context, db *sql.DB, version int64) error {
	steps, err := fs.Sub(files, "sqlite")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(database.DialectSQLite3, db, steps)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	var exists int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table'
		AND name = $1`, goose.DefaultTablename).Scan(&exists); err != nil {
		return err
	}
	if exists > 0 {
		at, err := provider.GetDBVersion(ctx)
		if err != nil {
			return fmt.Errorf("schema version: %w", err)
		}
		sources := provider.ListSources()
		if newest := sources[len(sources)-1].Version; at > newest {
			return fmt.Errorf("%w: its schema is version %d, this program knows %d", ErrNewer, at, newest)
		}
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
