package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// course holds the progress of the store, and how much of that progress is noted beside the file.
type course struct {
	mu      sync.Mutex
	now     deadletter.Progress
	noting  sync.Mutex
	noted   int64 // number of commits in the progress that this process noted last
	unnoted error // error of the last call of Note
	beside  bool  // value of Remembered.Beside
}

// opened contains the progress of the file at the moment when it was opened.
type opened struct {
	deadletter.Progress
	serial int64 // serial of the newest letter
}

// loadProgress reads the name of the store and the progress of its file. It creates the name if
// there is none yet.
func (s *Store) loadProgress(ctx context.Context) error {
	p := &s.course.now
	if _, err := s.conn.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ($1, $2)
		ON CONFLICT DO NOTHING`, office, string(deadletter.NewToken())); err != nil {
		return err
	}
	if err := s.conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = $1`, office).Scan(&p.Store); err != nil {
		return err
	}
	var at int64
	if err := s.conn.QueryRowContext(
		ctx, `SELECT claims, commits, received, at FROM progress`,
	).Scan(&p.Claims, &p.Commits, &p.Received, &at); err != nil {
		return err
	}
	p.At = time.UnixMilli(at).UTC()
	rows, err := s.conn.QueryContext(ctx, `SELECT id, random FROM letters ORDER BY id DESC LIMIT 1`)
	if err != nil {
		return err
	}
	return scan(rows, func() error {
		var random int64
		err := rows.Scan(&s.serial, &random)
		p.Newest = deadletter.NewID(s.serial, uint64(random))
		return err
	})
}

// step contains what one transaction adds to the stored progress.
type step struct {
	received, claims int64
	newest           deadletter.ID
}

// advance adds this transaction to the progress that is stored in the file.
func (t *tx) advance() error {
	_, err := t.exec(`UPDATE progress SET claims = claims + $1,
		commits = commits + 1, received = received + $2, at = $3`, t.step.claims, t.step.received, t.now)
	return err
}

// unmarked is more than the number of claims that a process can have committed without recording
// them in a broker: each worker of the dispatcher has at most one.
const unmarked = 16

// BeginTurn is called when letters may be sent over a connection. It raises the count of claims, so
// that it differs from that of a dlo on a copy of the store, which may have been stopped after
// claims that it has not recorded in the broker.
func (s *Store) BeginTurn(ctx context.Context) error {
	return s.tx(ctx, dispatch, func(t *tx) error {
		t.step.claims = unmarked
		return nil
	})
}

// advanceInMemory adds a committed transaction to the progress that is kept in memory.
func (s *Store) advanceInMemory(t *tx) {
	s.course.mu.Lock()
	defer s.course.mu.Unlock()
	p := &s.course.now
	p.Claims, p.Commits, p.Received, p.At = p.Claims+t.step.claims, p.Commits+1, p.Received+
		t.step.received, time.UnixMilli(
		t.now,
	).UTC()
	if t.step.newest != "" {
		p.Newest = t.step.newest
	}
}

// ShortName returns the first 8 characters of the name of the store.
func (s *Store) ShortName() string {
	name := s.Progress().Store
	return name[:min(8, len(name))]
}

// Progress returns the progress of the store up to the last commit.
func (s *Store) Progress() deadletter.Progress {
	s.course.mu.Lock()
	defer s.course.mu.Unlock()
	return s.course.now
}

// Remembered returns what the store knows about the progress that it recorded at a broker and in
// the note next to its file.
func (s *Store) Remembered(ctx context.Context, broker, vhost string) (deadletter.Remembered, error) {
	m := deadletter.Remembered{Progress: s.Progress(), Marked: -1}
	m.Lock = m.Store + "\n" + s.FirstName(broker)
	s.course.mu.Lock()
	m.Beside = s.course.beside
	s.course.mu.Unlock()
	rows, err := s.ask(ctx, `SELECT claims, unproved FROM marks WHERE broker = $1 AND vhost = $2`, broker, vhost)
	if err == nil {
		err = scan(rows, func() error { return rows.Scan(&m.Marked, &m.Unproved) })
	}
	if err != nil {
		return m, fmt.Errorf("what was noted in broker %s: %w", broker, err)
	}
	return m, nil
}

// recordConfirmed records that a broker has confirmed a note of the store's progress.
func (t *tx) recordConfirmed(n deadletter.Noted) error {
	if n.Claims == 0 {
		return nil
	}
	_, err := t.exec(`INSERT INTO marks (broker, vhost, claims) VALUES ($1, $2, $3) ON CONFLICT DO UPDATE
		SET claims = excluded.claims WHERE excluded.claims > claims`,
		n.Broker, n.VHost, n.Claims)
	return err
}

// Unproved records for one broker whether dlo lacks proof that the store's file is current. Without
// this proof, the file may be an older copy.
func (s *Store) Unproved(ctx context.Context, broker, vhost string, unproved bool) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		_, err := t.exec(`INSERT INTO marks (broker, vhost, claims, unproved) VALUES ($1, $2, -1, $3)
			ON CONFLICT DO UPDATE SET unproved = excluded.unproved`, broker, vhost, unproved)
		return err
	})
}

// AnyUnproved reports whether letters of any broker wait until a person confirms that the file is
// current.
func (s *Store) AnyUnproved(ctx context.Context) (unproved bool, err error) {
	err = s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM marks WHERE unproved = 1)`, nil, &unproved)
	return unproved, err
}

// Accept records that a person declared the store file to be current, and not an old copy. After
// that, dlo can send the letters that it held back because it had no proof of this.
func (s *Store) Accept(ctx context.Context, by string) error {
	err := s.tx(ctx, urgent, func(t *tx) error {
		if _, err := t.exec(`UPDATE marks SET unproved = 0`); err != nil {
			return err
		}
		return t.audit(deadletter.Once(
			deadletter.ActStoreAccepted, by, "this store is current: what is due may be sent", deadletter.Target{
				Kind: deadletter.TargetStore,
			},
		))
	})
	if err != nil {
		return err
	}
	s.course.mu.Lock()
	s.course.beside = true
	s.course.mu.Unlock()
	return s.Note(s.Progress())
}
