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

// priority is the urgency of a write. Writes run one at a time, and the most urgent waiting write
// runs next.
type priority int

const (
	urgent     priority = iota // ingest, because the broker waits for its ack
	dispatch                   // claims and marks when letters are published
	classify                   // verdicts and watches
	bulk                       // operations, which write in chunks
	priorities int      = iota
)

// lanes lets one writer in at a time. It lets the writer with the most urgent priority in first.
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
	l.wakeNext() // the turn came at the same moment as the cancellation, so it is passed on
	return ctx.Err()
}

func (l *lanes) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeNext()
}

func (l *lanes) wakeNext() {
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

// tx is one write transaction on the writing connection. It also collects the changes to the
// counters.
type tx struct {
	s     *Store
	ctx   context.Context
	now   int64 // time of the write, in Unix milliseconds
	moves moves
	ended map[deadletter.OperationID]bool // operations that may have no open letters left; they are checked at the end
	wait  [][2]int64                      // pairs of a key and a letter, for deaths that no annotation explains
	step  step

	claimed   sendings
	marked    sendings
	released  sendings
	messages  messages
	filling   filling
	shrinking map[int64]*shrinking // by the numbers of the segments
}

// tx runs fn in a transaction, updates the counters and commits with an fsync. If there is an
// error, the whole transaction is undone.
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
	// Once a write has begun, it is finished even if its caller is cancelled, because the work that
	// is already done would be lost if the write stopped halfway.
	t := &tx{
		s:     s,
		ctx:   context.WithoutCancel(ctx),
		now:   s.beginWrite(),
		moves: newMoves(),
		ended: map[deadletter.OperationID]bool{},

		messages:  messagesFrom(s.conn),
		shrinking: map[int64]*shrinking{},
	}
	defer s.endWrite()
	if _, err := t.exec(`BEGIN IMMEDIATE`); err != nil {
		return s.checkCommit(err)
	}
	serial, segment := s.serial, s.segment
	s.letters.n = 0
	err = fn(t)
	if err == nil {
		err = errors.Join(t.closeSegment(), t.shrink())
	}
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
		t.exec(`ROLLBACK`) // the rollback fails if SQLite has already rolled back, for example on a full disk
		s.names.rollback()
		s.serial, s.segment = serial, segment
		return s.checkCommit(err)
	}
	s.names.commit()
	s.advanceInMemory(t)
	s.change.Add(1)
	return nil
}

// beginWrite returns the time that a write records for everything it changes. When the result of
// the write is visible or undone, endWrite must be called.
func (s *Store) beginWrite() int64 {
	s.moment.Lock()
	defer s.moment.Unlock()
	s.begun = s.now().UnixMilli()
	return s.begun
}

func (s *Store) endWrite() {
	s.moment.Lock()
	defer s.moment.Unlock()
	s.begun = 0
}

// AsOf returns the time that a selection gets as its Until. The caller must call AsOf first, and
// only then read the letters of the selection. If the caller does not see a change to a letter, the
// change has the time that AsOf returned, or a later time.
//
// The parameter "now" is the current time. While a write is running, AsOf returns the time at which
// the write began, which is slightly before now.
func (s *Store) AsOf(now time.Time) time.Time {
	s.moment.Lock()
	defer s.moment.Unlock()
	if s.begun > 0 && s.begun < now.UnixMilli() {
		return time.UnixMilli(s.begun).UTC()
	}
	return now
}

// errDead is the error that every write returns after a failed fsync.
var errDead = errors.New("an fsync failed: nothing more is written by this process")

// checkCommit examines the error of a commit. If SQLite could not make the commit durable, it
// reports a fatal error, and nothing more is written. After a failed fsync, the kernel may have
// dropped the data, so a later fsync proves nothing (docs/reliability.md, crash points).
func (s *Store) checkCommit(err error) error {
	s.noteWriteError(err)
	if c := resultCode(err); c == sqlite3.SQLITE_IOERR_FSYNC || c == sqlite3.SQLITE_IOERR_DIR_FSYNC {
		s.dead.Store(true)
		s.broken(fmt.Errorf("store %s: fsync failed: %w", s.path, err))
	}
	return err
}

// exec runs a statement on the writing connection. It prepares each statement once and keeps it as
// long as the store is open.
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

// ask runs a query on a read connection. It prepares each query only once, unless the request has a
// scope with limits.
func (s *Store) ask(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !deadletter.ScopeOf(ctx).Everywhere() {
		return s.read.QueryContext(ctx, query, args...)
	}
	stmt, err := s.preparedRead(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// askRow runs a query on a read connection and reads a single row into dest. It returns
// sql.ErrNoRows if there is no row.
func (s *Store) askRow(ctx context.Context, query string, args []any, dest ...any) error {
	if !deadletter.ScopeOf(ctx).Everywhere() {
		return s.read.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
	stmt, err := s.preparedRead(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(ctx, args...).Scan(dest...)
}

func (s *Store) preparedRead(query string) (*sql.Stmt, error) {
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

// addEvent adds an entry to the history of a letter or an operation. The kind of many events is the
// state that the letter got, so each kind is stored as a state is.
func (t *tx) addEvent(letter int64, operation deadletter.OperationID, kind, actor, detail string) error {
	_, err := t.exec(`INSERT INTO events (letter, operation, at, kind, actor, detail) VALUES ($1, $2, $3, $4, $5, $6)`,
		positiveOrNull(letter), positiveOrNull(int64(operation)), t.now, deadletter.State(kind), actor, detail)
	return err
}

func positiveOrNull(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}
