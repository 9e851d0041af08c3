package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/migrations"
)

// migrate brings the schema to the newest version. If letters may be in the store, it makes a
// backup beside the store first.
func (s *Store) migrate(ctx context.Context) error {
	at, newest, err := migrations.Version(ctx, s.write)
	if errors.Is(err, migrations.ErrNewer) {
		return fmt.Errorf("%w; %s", err, s.waysBack(ctx, newest))
	}
	if err != nil {
		return err
	}
	if at > 0 && at < newest {
		backup := s.beforeSchema(newest)
		s.log.Info("the store is migrated", "from", at, "to", newest, "backup", backup)
		if err := s.copyBefore(ctx, at, backup); err != nil {
			return fmt.Errorf(
				"the store must be migrated from schema %d to %d, and the backup before it failed, so nothing was changed; "+
					"the folder of the store needs as much free space as the store has: %w", at, newest, err,
			)
		}
	}
	return migrations.Apply(ctx, s.write, func(version int64) {
		if at > 0 {
			s.log.Info("the store is migrated", "schema", version, "of", newest)
		}
	})
}

// hasProgress is the version in which the schema got the table progress.
const hasProgress = 13

const beforeSchema = ".before-schema-"

// beforeSchema returns the path of the backup that is made before the store gets a schema.
func (s *Store) beforeSchema(version int64) string {
	return s.path + beforeSchema + strconv.FormatInt(version, 10)
}

// copyBefore makes the backup before a migration from the version "at". If an earlier process died
// within the same migration, the backup that it made is kept.
func (s *Store) copyBefore(ctx context.Context, at int64, to string) error {
	if at >= hasProgress {
		mine, err := contentOf(ctx, s.write)
		if err != nil {
			return err
		}
		if copied, content, err := schemaOf(ctx, to); err == nil && copied < at && content == mine {
			return nil
		}
	}
	part := to + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Copy(ctx, s.path, part); err != nil {
		return err
	}
	if err := os.Rename(part, to); err != nil {
		return err
	}
	return deadletter.SyncFolder(to)
}

// schemaOf returns the version of the schema of a copy, and what identifies its content.
func schemaOf(ctx context.Context, path string) (at int64, content string, err error) {
	c := &Store{path: path, broken: func(error) {}}
	if _, err := os.Stat(path); err != nil {
		return 0, "", err
	}
	if c.read, err = c.database("copy"); err != nil {
		return 0, "", err
	}
	defer c.read.Close()
	if at, _, err = migrations.Version(ctx, c.read); err != nil {
		return 0, "", err
	}
	content, err = contentOf(ctx, c.read)
	return at, content, err
}

// contentOf returns the name of a store and its number of commits, which a migration does not
// change.
func contentOf(ctx context.Context, db *sql.DB) (content string, err error) {
	err = db.QueryRowContext(ctx, `SELECT coalesce((SELECT value FROM meta WHERE key = $1), '') || ' ' || commits
		FROM progress`, office).Scan(&content)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return content, err
}

// waysBack says how people can go on with this program, which is older than the store.
func (s *Store) waysBack(ctx context.Context, newest int64) string {
	var backups []string
	found, _ := filepath.Glob(escapeGlob(s.path) + beforeSchema + "*")
	for _, path := range found {
		if at, _, err := schemaOf(ctx, path); err == nil && at <= newest {
			backups = append(backups, path)
		}
	}
	if len(backups) == 0 {
		return "start the version of dlo that wrote it, or a newer one"
	}
	return fmt.Sprintf(
		"start the version of dlo that wrote it, or a newer one. To go back to this version, and without what happened since "+
			"the upgrade, restore the backup from before it: dlo restore %s --store %s --replace",
		strings.Join(backups, " or "), s.path,
	)
}
