package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/migrations"
)

// Copy writes a copy of the store at the path "from" to a new file, durably. A dlo may be running
// on the store: the copy contains the commits up to the moment when Copy began. It contains nothing
// of what was purged, because SQLite writes only the rows that exist. If there is an error, there
// is no new file.
func Copy(ctx context.Context, from, to string) (err error) {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	// SQLite writes to an empty file, and keeps its mode
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(to)
			os.Remove(to + "-journal")
		}
	}()
	db, err := sql.Open("sqlite", dsn(from, "vacuum"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, to); err != nil {
		return wrapDamage(err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return deadletter.SyncFolder(to)
}

// OpenCopy opens a copy of a store to read it with Check and Sample, or, if its schema is
// that of this program, with all methods that only read. Nothing else may change the file. OpenCopy
// takes no lock and writes nothing, neither to the file nor beside it. If the schema is newer than
// that of this program, the error wraps migrations.ErrNewer.
func OpenCopy(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, now: time.Now, log: slog.New(slog.DiscardHandler), broken: func(error) {}}
	if err := s.openCopy(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", path, wrapDamage(err))
	}
	return s, nil
}

func (s *Store) openCopy(ctx context.Context) error {
	if _, err := os.Stat(s.path); err != nil {
		return err
	}
	if log, err := os.Stat(s.path + "-wal"); err == nil && log.Size() > 0 {
		return fmt.Errorf(
			"%w: %s has a write-ahead log beside it, so it is a store that a dlo has open or that was not closed; "+
				"make a backup of it with dlo backup", deadletter.ErrInvalid, s.path,
		)
	}
	if err := s.check(ctx, "copy"); err != nil {
		return err
	}
	var err error
	if s.read, err = s.database("copy"); err != nil {
		return err
	}
	at, newest, err := migrations.Version(ctx, s.read)
	if err == nil && at == 0 {
		err = fmt.Errorf("%w: it is not a store of dlo", ErrDamaged)
	}
	if s.older = at < newest; err != nil || s.older {
		return err
	}
	if err := s.families.load(ctx, s.read); err != nil {
		return err
	}
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.names.load(ctx, conn, false), conn.Close())
}

// Older reports whether the schema of an open copy is older than that of this program, so that its
// letters cannot be read. Opened as a store, it is migrated.
func (s *Store) Older() bool { return s.older }

// contents returns what the manifest of a backup says about the rows of a copy.
func (s *Store) contents(ctx context.Context) (deadletter.Backup, error) {
	b := deadletter.Backup{Letters: map[deadletter.State]int{}}
	var at, serial, random int64
	if err := s.read.QueryRowContext(ctx, `SELECT coalesce((SELECT value FROM meta WHERE key = $1), ''),
		p.received, p.at, coalesce(l.id, 0), coalesce(l.random, 0) FROM progress p LEFT JOIN letters l ON l.id = (SELECT max(id) FROM letters)`, office).
		Scan(&b.Store, &b.Received, &at, &serial, &random); err != nil {
		return b, wrapDamage(err)
	}
	b.Store, b.At = b.Store[:min(8, len(b.Store))], time.UnixMilli(at).UTC()
	if serial > 0 {
		b.Newest = deadletter.NewID(serial, uint64(random))
	}
	var err error
	if b.Schema, _, err = migrations.Version(ctx, s.read); err != nil {
		return b, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT state, count(*) FROM letters GROUP BY state`)
	if err != nil {
		return b, wrapDamage(err)
	}
	return b, wrapDamage(scan(rows, func() error {
		var state deadletter.State
		var n int
		err := rows.Scan(&state, &n)
		b.Letters[state] = n
		return err
	}))
}

// Check examines the structure of a copy, compares its letters with its counters, and returns what
// the manifest of a backup says about its rows. If "whole" is true, it also compares the indexes
// with the tables and follows all foreign keys. An error about the copy wraps ErrDamaged.
func (s *Store) Check(ctx context.Context, whole bool) (b deadletter.Backup, err error) {
	pragma := `PRAGMA quick_check(1)`
	if whole {
		pragma = `PRAGMA integrity_check(1)`
	}
	var found string
	if err := s.read.QueryRowContext(ctx, pragma).Scan(&found); err != nil {
		return b, wrapDamage(err)
	}
	if found != "ok" {
		return b, fmt.Errorf("%w: %s", ErrDamaged, found)
	}
	var violations int
	if whole {
		if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM pragma_foreign_key_check`).Scan(&violations); err != nil {
			return b, wrapDamage(err)
		}
	}
	if violations > 0 {
		return b, fmt.Errorf("%w: rows that refer to missing rows: %d", ErrDamaged, violations)
	}
	if b, err = s.contents(ctx); err != nil {
		return b, err
	}
	counted, err := s.byState(ctx)
	if err != nil {
		return b, wrapDamage(err)
	}
	maps.DeleteFunc(counted, func(_ deadletter.State, n int) bool { return n == 0 })
	if !maps.Equal(counted, b.Letters) {
		return b, fmt.Errorf("%w: it has the letters %v, and its counters say %v", ErrDamaged, b.Letters, counted)
	}
	return b, nil
}

// sampledAtOnce is the number of letters that Sample reads at a time.
const sampledAtOnce = 10

// Sample calls the function "each" with n letters that are chosen at random. If n is 0, it calls it
// with all letters, in the order of their serials. If the schema is older than that of this
// program, it calls it with none.
func (s *Store) Sample(ctx context.Context, n int, each func(*deadletter.Letter) error) error {
	if s.older {
		return nil
	}
	query, args := `SELECT id FROM letters ORDER BY id`, []any(nil)
	if n > 0 {
		query, args = `SELECT id FROM letters ORDER BY random() LIMIT $1`, []any{n}
	}
	var serials []int64
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return wrapDamage(err)
	}
	if err := scan(rows, func() error {
		var serial int64
		err := rows.Scan(&serial)
		serials = append(serials, serial)
		return err
	}); err != nil {
		return wrapDamage(err)
	}
	for len(serials) > 0 {
		part := serials[:min(sampledAtOnce, len(serials))]
		serials = serials[len(part):]
		letters, err := s.lettersBySerial(ctx, part)
		if err != nil {
			return wrapDamage(err)
		}
		for i := range letters {
			if err := each(&letters[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// beingRestored is the suffix of a store that PutBack is about to put in its place.
const beingRestored = ".restoring"

// errInterrupted is the error for a path from which PutBack has removed the old store, and has not
// put the new one there yet.
var errInterrupted = errors.New("a restore was interrupted; run dlo restore again")

// interrupted reports whether PutBack was killed while there was no store at a path. Without this
// check, dlo would begin with an empty store.
func interrupted(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path + beingRestored); err == nil {
			return errInterrupted
		}
	}
	return nil
}

// PutBack durably puts a copy of the backup at the path "from" in the place of the store at the
// path "to". No dlo may have that store open, or the error wraps ErrLocked. If there is a store
// already and "replace" is false, the error wraps fs.ErrExist. If "replace" is true, PutBack keeps
// the old store with its write-ahead log, and returns its new path. If PutBack is killed, the old
// store is complete, at its old or its new path, and Open refuses a path without a store until
// PutBack has been called again.
func PutBack(ctx context.Context, from, to string, replace bool) (old string, err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	if link, err := os.Lstat(to); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if to, err = filepath.EvalSymlinks(to); err != nil {
			return "", err
		}
	}
	var l locks
	defer l.release()
	if err := l.lockPath(to + ".lock"); err != nil {
		return "", err
	}
	owner, err := os.Stat(to)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if exists {
		if _, err := l.lockFile(to); err != nil {
			return "", err
		}
		if !replace {
			return "", fmt.Errorf("%s: %w", to, fs.ErrExist)
		}
	} else if owner, err = os.Stat(filepath.Dir(to)); err != nil {
		return "", err
	}
	if err := prepare(ctx, from, to+beingRestored); err != nil {
		return "", err
	}
	giveTo(owner, to+beingRestored, to+".lock")
	old = to + time.Now().UTC().Format(".replaced-20060102T150405.000000000Z")
	if exists {
		if err := os.Rename(to, old); err != nil {
			return "", err
		}
	} else if earlier := withoutLog(to); earlier != "" {
		old = earlier // a call that was killed has moved the store, and not its log yet
	}
	// a write-ahead log belongs to one file: beside another one, SQLite could take its pages for
	// those of the new file
	if err := os.Rename(to+"-wal", old+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Remove(to + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Rename(to+beingRestored, to); err != nil {
		return "", err
	}
	if !exists {
		old = ""
	}
	return old, deadletter.SyncFolder(to)
}

// withoutLog returns the newest store that PutBack has moved away from a path, or "".
func withoutLog(path string) (newest string) {
	found, _ := filepath.Glob(escapeGlob(path) + ".replaced-*Z")
	for _, name := range found {
		newest = max(newest, name)
	}
	return newest
}

// prepare writes a durable copy of a backup, and records in it that it was restored: if a broker
// has no mark, nothing proves that its letters were not sent since the backup was made.
func prepare(ctx context.Context, from, to string) (err error) {
	source, err := os.Stat(from)
	if err != nil {
		return err
	}
	if same, err := os.Stat(to); err == nil && os.SameFile(source, same) {
		return fmt.Errorf("%w: %s is the rest of a restore; move it away to restore it", deadletter.ErrInvalid, from)
	}
	defer func() {
		if err != nil {
			os.Remove(to)
		}
	}()
	for _, rest := range []string{"", "-wal", "-shm"} { // of a call that was killed
		if err := os.Remove(to + rest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(to, "rw"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO marks (broker, vhost, claims) SELECT DISTINCT broker, vhost, 0 FROM inboxes
		WHERE broker <> '' ON CONFLICT DO NOTHING`)
	return wrapDamage(errors.Join(err, db.Close()))
}

// giveTo gives files to the owner of another one, if this process may do so: a dlo that is not root
// must be able to open a store that root has restored.
func giveTo(owner fs.FileInfo, files ...string) {
	if stat, is := owner.Sys().(*syscall.Stat_t); is {
		for _, file := range files {
			os.Chown(file, int(stat.Uid), int(stat.Gid))
		}
	}
}

// copyFile writes a durable copy of a file. Only the owner may read it.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
