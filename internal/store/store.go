// Package store keeps letters, their attempts, groups, operations and history in one SQLite file.
// It contains all SQL of dlo. A method that changes a letter also writes the event, the counters
// and any notice, in the same transaction. The package makes no decisions about letters. The
// packages that call it decide what happens to a letter.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrLocked means that another dlo has the file open.
var ErrLocked = errors.New("another dlo holds the store")

// ErrDamaged means that the file is not a database of dlo, or that the database is damaged. After
// this error, dlo writes nothing more to the file. Before dlo opens the file for writing, it checks
// the header and the schema. It finds other damage only later.
var ErrDamaged = errors.New("the store is damaged")

// Store is an open store. Its methods are safe for concurrent use. Writes run one at a time, in the
// order of their urgency.
type Store struct {
	write   *sql.DB
	conn    *sql.Conn // the only connection that writes
	read    *sql.DB   // pool of read connections (query_only)
	lanes   lanes
	locks   locks
	hand    hand
	turns   turns
	path    string
	now     func() time.Time
	log     *slog.Logger
	broken  func(error)
	space   *Space
	brokers []Broker
	first   map[string]string // present names of renamed brokers -> the names that the store first knew
	// machines are the channels that get notices for machines; nil = none.
	machines atomic.Pointer[[]string]
	dead     atomic.Bool // an fsync failed
	damage   atomic.Pointer[error]

	epoch     int64  // epoch of this process; letters claimed in earlier epochs are in doubt
	tokenKey  []byte // key from which attempt tokens are derived
	older     bool   // a copy with an older schema is open
	restored  bool   // the file was once found to be a copy; used only by writes
	serial    int64  // serial of the newest letter; used only by writes
	segment   int64  // number of the newest segment, 0 = not read yet; used only by writes
	raw       []byte // memory of the segment to which a write adds; used only by writes
	letters   newLetters
	opened    opened
	course    course
	stmts     map[string]*sql.Stmt // prepared statements of the writing connection
	questions sync.Map             // prepared queries of the read connections
	names     names
	scopes    scopes
	families  families
	moment    sync.Mutex
	begun     int64        // time at which the current write began, in Unix milliseconds; 0 = no write is running
	change    atomic.Int64 // number of transactions, from which live pages know when to refresh
}

// Options contains the optional settings of a store.
type Options struct {
	Now   func() time.Time // clock; the default is time.Now
	Log   *slog.Logger     // log; the default discards everything
	Space *Space           // frees the reserve space when the disk is full; may be nil
	// called after a failed fsync; the process must then end, because nothing written since then
	// can be trusted
	Broken func(error)

	Brokers []Broker // brokers in the configuration
}

// pragmas are set on the writing connection. They are read back at the start, because SQLite
// silently accepts a misspelt pragma. The value FULL of synchronous is essential. With the value
// NORMAL, SQLite does not call fsync for each commit: for 640 letters, it called fsync 6 times
// instead of 60. A power failure could then lose letters that were already acknowledged
// (docs/reliability.md).
var pragmas = []struct{ name, value, reads string }{
	{"busy_timeout", "10000", "10000"},
	{"journal_mode", "WAL", "wal"},
	{"synchronous", "FULL", "2"},
	{"foreign_keys", "1", "1"},
	{"secure_delete", "1", "1"}, // what a purge erases leaves the file
	{"temp_store", "MEMORY", "2"},
	{"cache_size", "-65536", "-65536"}, // KiB
}

const readers = 4

// Open opens the store at a path, or creates it. It also locks the store and migrates its schema.
// If the error wraps ErrLocked or migrations.ErrNewer, the file is unchanged. If it wraps
// ErrDamaged, the file is usually unchanged too. However, some damage is found only after the
// schema was migrated.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{path: path, now: o.Now, log: o.Log, broken: o.Broken, space: o.Space, brokers: o.Brokers}
	s.stmts = map[string]*sql.Stmt{}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.broken == nil {
		s.broken = func(error) {}
	}
	s.epoch = s.now().UnixNano()
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("store %s: %w", path, wrapDamage(err))
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	if err := s.locks.lockPath(s.path + ".lock"); err != nil {
		return err
	}
	if err := interrupted(s.path); err != nil {
		return err
	}
	unguarded, err := s.locks.lockFile(s.path)
	if err != nil {
		return err
	}
	if unguarded != nil {
		s.log.Warn(
			"this file system cannot lock the file of the store: never open the file under a second name", "store",
			s.path, "err", unguarded,
		)
	}
	if err := s.check(ctx, "ro"); err != nil {
		return err
	}
	if s.write, err = s.database("rw"); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return err
	}
	if err := s.readBack(ctx); err != nil {
		return err
	}
	if err := s.loadProgress(ctx); err != nil {
		return err
	}
	s.opened = opened{s.Progress(), s.serial}
	if err := s.loadRestores(ctx); err != nil {
		return err
	}
	older, err := s.compareWithNote(ctx)
	if err != nil {
		return err
	}
	if s.read, err = s.database("ro"); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	if err := s.loadFirstNames(ctx); err != nil {
		return err
	}
	if err := s.names.load(ctx, s.conn, true); err != nil {
		return err
	}
	for _, row := range s.names.altered {
		s.log.Error(
			"a name changed in the file of the store; letters of a queue whose name changed are held", "store", s.path,
			"row", row,
		)
	}
	if err := s.loadTokenKey(ctx); err != nil {
		return err
	}
	if err := s.families.load(ctx, s.read); err != nil {
		return err
	}
	var dying []int64
	if s.hand, dying, err = openHand(s.path); err != nil {
		return err
	}
	if err := errors.Join(s.countCrashes(ctx, dying), s.moveBodies(ctx)); err != nil || older == nil {
		return err
	}
	return s.Restored(ctx, *older, false)
}

// check examines an existing file before anything can write to it. It treats an empty or missing
// file as a new store. The parameter "mode" is that of dsn.
func (s *Store) check(ctx context.Context, mode string) error {
	info, err := os.Stat(s.path)
	if err != nil || info.Size() == 0 {
		return nil
	}
	head := make([]byte, 16)
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	_, err = f.Read(head)
	f.Close()
	if err != nil || string(head) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: it is not an SQLite database", ErrDamaged)
	}
	db, err := sql.Open("sqlite", dsn(s.path, mode))
	if err != nil {
		return err
	}
	defer db.Close()
	var things, ours int
	// This query is enough to check the file. SQLite reads the schema and the free list for it,
	// which already fails if the file is of another kind. A full quick_check, which reads every
	// page, is not needed, because every later read verifies its own page.
	if err := db.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE name = 'goose_db_version')
		FROM sqlite_schema`).Scan(&things, &ours); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if things > 0 && ours == 0 {
		return fmt.Errorf("%w: it is the SQLite database of another program", ErrDamaged)
	}
	return nil
}

func dsn(path, mode string) string {
	q := url.Values{"_txlock": {"immediate"}}
	for _, p := range pragmas {
		value := p.value
		if mode != "rw" {
			switch p.name {
			case "journal_mode", "synchronous":
				continue
			case "cache_size":
				if value = "-16384"; mode != "ro" { // each page is read once
					value = "-2000"
				}
			}
		}
		q.Add("_pragma", p.name+"("+value+")")
	}
	switch mode {
	case "ro":
		q.Add("_pragma", "query_only(1)")
	case "vacuum": // VACUUM INTO does not work with query_only
		q.Set("mode", "ro")
	case "copy": // a file that nothing changes: SQLite needs no locks, and no files beside it
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	}
	return "file:" + (&url.URL{Path: filepath.Clean(path)}).EscapedPath() + "?" + q.Encode()
}

func (s *Store) readBack(ctx context.Context) error {
	for _, p := range pragmas {
		var got string
		if err := s.conn.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return fmt.Errorf("pragma %s: %w", p.name, err)
		}
		if got != p.reads {
			return fmt.Errorf(
				"pragma %s is %s where %s was asked for; check whether the file is on a file system without shared memory",
				p.name, got, p.reads,
			)
		}
	}
	return nil
}

// resultCode returns SQLite's extended result code, or 0 if err is not an SQLite error.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// IsFull reports whether err means that the disk is full. The write then had no effect, and a later
// retry can succeed.
func IsFull(err error) bool {
	c := resultCode(err)
	return c&0xff == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC)
}

// isRefused reports whether err means that the file system rejected a write because it is full or
// read-only, or because the disk fails. The write then had no effect, and a later retry can
// succeed.
func isRefused(err error) bool {
	switch c := resultCode(err); c & 0xff {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return true
	case sqlite3.SQLITE_IOERR:
		return c != sqlite3.SQLITE_IOERR_NOMEM
	}
	return IsFull(err) || errors.Is(err, syscall.EROFS)
}

// Close checkpoints and closes the file, and releases its locks.
func (s *Store) Close() error {
	var errs []error
	if s.Damaged() != nil {
		// A damaged store must not be closed normally: when SQLite closes the last connection, it
		// runs a checkpoint, which writes to the file. Without a checkpoint, committed data stays
		// in the -wal file, from which it can be recovered.
		return s.abandon()
	}
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		if s.conn != nil {
			if s.course.noted > 0 && !s.dead.Load() {
				errs = append(errs, s.Note(s.Progress()))
			}
			// database/sql does not close statements that were prepared on one connection, and
			// SQLite keeps the connection open while they exist
			for _, stmt := range s.stmts {
				errs = append(errs, stmt.Close())
			}
			s.conn.ExecContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`)
			errs = append(errs, s.conn.Close())
		}
		errs = append(errs, s.write.Close())
	}
	if s.hand.file != nil {
		errs = append(errs, s.hand.file.Close())
	}
	return errors.Join(append(errs, s.locks.release())...)
}

// abandon releases the locks of a damaged store. The connections of the store stay open until the
// process ends.
func (s *Store) abandon() error {
	var errs []error
	if s.hand.file != nil {
		errs = append(errs, s.hand.file.Close())
	}
	return errors.Join(append(errs, s.locks.release())...)
}

// Path returns the path of the store's file.
func (s *Store) Path() string { return s.path }

// Changes returns how many transactions this process has committed. If it later returns another
// number, something may have changed in the meantime.
func (s *Store) Changes() int64 { return s.change.Load() }

// Ping writes one row to check that the store works.
func (s *Store) Ping(ctx context.Context) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		_, err := t.exec(`INSERT INTO meta (key, value) VALUES ('ping', $1) ON CONFLICT (key) DO UPDATE
			SET value = excluded.value`, fmt.Sprint(t.now))
		return err
	})
}

// placeholders returns the SQL text "$1, $2, ..." for n arguments. The parameter "from" is the
// first number.
func placeholders(from, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", from+i)
	}
	return b.String()
}

// anys returns the values as the arguments of a statement.
func anys[T any](list []T) []any {
	args := make([]any, len(list))
	for i, v := range list {
		args[i] = v
	}
	return args
}

func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func timeOf(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return time.UnixMilli(ms.Int64).UTC()
}
