package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	sqlite3 "modernc.org/sqlite/lib"
)

// priority is the priority of a write. Writes run one at a time, and the most urgent waiting write
// goes next.
type priority int

const (
	urgent     priority = iota // ingest: the broker waits for its ack
	dispatch                   // claims and marks of the publishing path
	classify                   // verdicts and the watch
	bulk                       // operations, in chunks
	priorities int      = iota
)

// lanes lets one writer in at a time, by priority.
type lanes struct {
	mu      sync.Mutex
	busy    bool
	waiting [priorities][]chan struct{}
}

func (l *lanes) enter(ctx context.Context, p priority) error {
	l.mu.Lock()
	if !l.busy {
		l.busy = true
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.waiting[p] = append(l.waiting[p], turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting[p] {
		if w == turn {
			l.waiting[p] = append(l.waiting[p][:i], l.waiting[p][i+1:]...)
			return ctx.Err()
		}
	}
	l.next() // the turn came at the same moment, so it is passed on
	return ctx.Err()
}

func (l *lanes) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

func (l *lanes) next() {
	for p := range l.waiting {
		if len(l.waiting[p]) > 0 {
			turn := l.waiting[p][0]
			l.waiting[p] = l.waiting[p][1:]
			close(turn)
			return
		}
	}
	l.busy = false
}

// tx is one write transaction on the single write connection, with its changes to the counters.
type tx struct {
	s     *Store
	ctx   context.Context
	now   int64 // Unix milliseconds
	moves moves
	ended map[deadletter.OperationID]bool // operations that may have no open letters left
	wait  [][2]int64                      // keys and letters of deaths without an annotation
	step  step
}

// tx runs fn in a transaction, updates the counters and commits with an fsync. After an error, the
// whole transaction is undone.
func (s *Store) tx(ctx context.Context, p priority, fn func(*tx) error) (err error) {
	if err := s.lanes.enter(ctx, p); err != nil {
		return err
	}
	defer s.lanes.leave()
	if s.dead.Load() {
		return errDead
	}
	if err := s.Damaged(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	// A write that has begun is finished even if its caller is cancelled. It would save nothing to
	// stop it halfway.
	t := &tx{s: s, ctx: context.WithoutCancel(ctx), now: s.begin(), moves: newMoves(), ended: map[deadletter.OperationID]bool{}}
	defer s.end()
	if _, err := t.exec(`BEGIN IMMEDIATE`); err != nil {
		return s.failed(err)
	}
	s.names.begin()
	serial := s.serial
	err = fn(t)
	for op := range t.ended {
		if err == nil {
			err = t.finish(op)
		}
	}
	if err == nil {
		err = t.moves.flush(t)
	}
	if err == nil {
		err = t.advance()
	}
	if err == nil {
		_, err = t.exec(`COMMIT`)
	}
	if err != nil {
		t.exec(`ROLLBACK`) // fails if SQLite has already rolled back, as it does on a full disk
		s.names.rollback()
		s.serial = serial
		return s.failed(err)
	}
	s.advanced(t)
	s.change.Add(1)
	return nil
}

// begin returns the time of a write. Everything that the write changes records this time. end marks
// the write as visible or undone.
func (s *Store) begin() int64 {
	s.moment.Lock()
	defer s.moment.Unlock()
	s.begun = s.now().UnixMilli()
	return s.begun
}

func (s *Store) end() {
	s.moment.Lock()
	defer s.moment.Unlock()
	s.begun = 0
}

// AsOf returns the time of a selection whose letters are read after this call. The argument now is
// the current time. A change that a reader cannot see yet always has the returned time or a later
// one. While a write is running, the returned time is slightly before now.
func (s *Store) AsOf(now time.Time) time.Time {
	s.moment.Lock()
	defer s.moment.Unlock()
	if s.begun > 0 && s.begun < now.UnixMilli() {
		return time.UnixMilli(s.begun).UTC()
	}
	return now
}

// errDead is the error of every write after a failed fsync.
var errDead = errors.New("an fsync failed: nothing more is written by this process")

// failed checks whether SQLite was unable to make a commit durable, and reports this as a fatal
// error. After a failed fsync, the kernel may have dropped the data, so a later fsync proves
// nothing (docs/reliability.md, crash points).
func (s *Store) failed(err error) error {
	s.pressed(err)
	if c := code(err); c == sqlite3.SQLITE_IOERR_FSYNC || c == sqlite3.SQLITE_IOERR_DIR_FSYNC {
		s.dead.Store(true)
		s.broken(fmt.Errorf("store %s: fsync failed: %w", s.path, err))
	}
	return err
}

// exec runs a statement. Each statement is prepared once for the lifetime of the store.
func (t *tx) exec(query string, args ...any) (sql.Result, error) {
	stmt, err := t.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(t.ctx, args...)
}

func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	stmt, err := t.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(t.ctx, args...)
}

// row runs a query for one row and scans it into dest. It returns sql.ErrNoRows if there is no row.
func (t *tx) row(query string, args []any, dest ...any) error {
	stmt, err := t.prepared(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(t.ctx, args...).Scan(dest...)
}

func (t *tx) prepared(query string) (*sql.Stmt, error) {
	if stmt, ok := t.s.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := t.s.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return nil, err
	}
	t.s.stmts[query] = stmt
	return stmt, nil
}

// ask runs a query on a read connection. Each query is prepared once, except for requests with a
// scope.
func (s *Store) ask(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !deadletter.ScopeOf(ctx).Everywhere() {
		return s.read.QueryContext(ctx, query, args...)
	}
	stmt, err := s.asked(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// askRow is like ask, but reads one row into dest. It returns sql.ErrNoRows if there is no row.
func (s *Store) askRow(ctx context.Context, query string, args []any, dest ...any) error {
	if !deadletter.ScopeOf(ctx).Everywhere() {
		return s.read.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
	stmt, err := s.asked(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(ctx, args...).Scan(dest...)
}

func (s *Store) asked(query string) (*sql.Stmt, error) {
	if stmt, ok := s.questions.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := s.read.Prepare(query)
	if err != nil {
		return nil, err
	}
	if first, loaded := s.questions.LoadOrStore(query, stmt); loaded {
		stmt.Close()
		return first.(*sql.Stmt), nil
	}
	return stmt, nil
}

// event adds an entry to the history of a letter or an operation.
func (t *tx) event(letter int64, operation deadletter.OperationID, kind, actor, detail string) error {
	_, err := t.exec(`INSERT INTO events (letter, operation, at, kind, actor, detail) VALUES ($1, $2, $3, $4, $5, $6)`,
		positive(letter), positive(int64(operation)), t.now, kind, actor, detail)
	return err
}

func positive(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}
