package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// course is how far the store has got, and what it has noted of that beside its file.
type course struct {
	mu     sync.Mutex
	now    deadletter.Progress
	noting sync.Mutex
	noted  int64 // commits, by this process
	beside bool  // Remembered.Beside
}

// opened is how far the file had got when it was opened.
type opened struct {
	deadletter.Progress
	serial int64 // of the newest letter
}

// loadProgress reads how far the file has got, and its name.
func (s *Store) loadProgress(ctx context.Context) error {
	p := &s.course.now
	if _, err := s.conn.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, office, string(deadletter.NewToken())); err != nil {
		return err
	}
	if err := s.conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = $1`, office).Scan(&p.Store); err != nil {
		return err
	}
	var at int64
	if err := s.conn.QueryRowContext(ctx, `SELECT claims, commits, received, at FROM progress`).Scan(&p.Claims, &p.Commits, &p.Received, &at); err != nil {
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

// step is what a write adds to the progress of its store.
type step struct {
	received, claims int64
	newest           deadletter.ID
}

// advance counts a commit.
func (t *tx) advance() error {
	_, err := t.exec(`UPDATE progress SET claims = claims + $1, commits = commits + 1, received = received + $2, at = $3`, t.step.claims, t.step.received, t.now)
	return err
}

// advanced notes in memory what was committed.
func (s *Store) advanced(t *tx) {
	s.course.mu.Lock()
	defer s.course.mu.Unlock()
	p := &s.course.now
	p.Claims, p.Commits, p.Received, p.At = p.Claims+t.step.claims, p.Commits+1, p.Received+t.step.received, time.UnixMilli(t.now).UTC()
	if t.step.newest != "" {
		p.Newest = t.step.newest
	}
}

// Progress returns how far the store has got: all of it is committed.
func (s *Store) Progress() deadletter.Progress {
	s.course.mu.Lock()
	defer s.course.mu.Unlock()
	return s.course.now
}

// besides is the file that progress is noted in. It bears the name of the store, so that another
// store in the same place has another.
func (s *Store) besides() string {
	name := s.Progress().Store
	return s.path + ".progress-" + name[:min(8, len(name))]
}

// Note writes down beside the file how far the store has got, durably: a file that is put in the
// place of this one, and is older, is found out by it. What is older than what is noted is not.
func (s *Store) Note(p deadletter.Progress) error {
	c := &s.course
	c.noting.Lock()
	defer c.noting.Unlock()
	if p.Commits <= c.noted {
		return nil
	}
	if err := replace(s.besides(), p.Bytes()); err != nil {
		return fmt.Errorf("note beside the store what is sent: %w", err)
	}
	c.noted = p.Commits
	return nil
}

// replace writes a file so that it has its old or its new contents whenever the machine stops.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// noted reads what is noted beside the file; nil where nothing can be read there.
func (s *Store) noted() (*deadletter.Progress, error) {
	text, err := os.ReadFile(s.besides())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := deadletter.ParseProgress(text)
	if err != nil || p.Store != s.Progress().Store {
		s.log.Warn("what is noted beside the store cannot be read; it is written again", "file", s.besides(), "err", err)
		return nil, nil
	}
	return &p, nil
}

// compare looks whether the file is older than what is noted beside it, before anything is written.
func (s *Store) compare(ctx context.Context) (older *deadletter.Progress, err error) {
	p, err := s.noted()
	if err != nil || p == nil {
		return nil, err
	}
	now := s.Progress()
	if p.Commits > now.Commits || p.Claims > now.Claims {
		return p, nil
	}
	s.course.beside = now.Claims-p.Claims <= int64(unnoted*max(1, len(s.known.list)))
	return nil, nil
}

// unnoted is how many claims of one broker may not be noted yet when the process dies: its
// dispatcher has two workers. A note that is older belongs to an older file.
const unnoted = 2

// Strangers are the notes of other stores beside this one: another store was in its place.
func (s *Store) Strangers() []string {
	found, err := filepath.Glob(globbed(s.path) + ".progress-????????")
	if err != nil {
		return nil
	}
	var list []string
	for _, name := range found {
		id := name[len(name)-8:]
		if _, err := hex.DecodeString(id); err == nil && name != s.besides() {
			list = append(list, name)
		}
	}
	return list
}

// globbed escapes what is special in a pattern of filepath.Glob.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Remembered returns what the store knows of what it noted, towards a broker.
func (s *Store) Remembered(ctx context.Context, broker, vhost string) (deadletter.Remembered, error) {
	m := deadletter.Remembered{Progress: s.Progress(), Marked: -1}
	s.course.mu.Lock()
	m.Beside = s.course.beside
	s.course.mu.Unlock()
	rows, err := s.ask(ctx, `SELECT claims, unproved FROM marks WHERE broker = $1 AND vhost = $2`, s.known.firstName(broker), vhost)
	if err == nil {
		err = scan(rows, func() error { return rows.Scan(&m.Marked, &m.Unproved) })
	}
	if err != nil {
		return m, fmt.Errorf("what was noted in broker %s: %w", broker, err)
	}
	return m, nil
}

// marked records what a broker has confirmed as noted.
func (t *tx) marked(n deadletter.Noted) error {
	if n.Claims == 0 {
		return nil
	}
	_, err := t.exec(`INSERT INTO marks (broker, vhost, claims) VALUES ($1, $2, $3) ON CONFLICT DO UPDATE SET claims = excluded.claims WHERE excluded.claims > claims`,
		t.s.known.firstName(n.Broker), n.VHost, n.Claims)
	return err
}

// Unproved records whether nothing shows that the file is no older copy, as far as a broker goes.
func (s *Store) Unproved(ctx context.Context, broker, vhost string, unproved bool) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		_, err := t.exec(`INSERT INTO marks (broker, vhost, claims, unproved) VALUES ($1, $2, -1, $3) ON CONFLICT DO UPDATE SET unproved = excluded.unproved`, s.known.firstName(broker), vhost, unproved)
		return err
	})
}

// AnyUnproved says whether letters wait until people say that the file is current.
func (s *Store) AnyUnproved(ctx context.Context) (unproved bool, err error) {
	err = s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM marks WHERE unproved = 1)`, nil, &unproved)
	return unproved, err
}

// Accept records that people say that the file is current: nothing that may be missing holds
// letters back any more.
func (s *Store) Accept(ctx context.Context, by string) error {
	err := s.tx(ctx, urgent, func(t *tx) error {
		if _, err := t.exec(`UPDATE marks SET unproved = 0`); err != nil {
			return err
		}
		return t.event(0, 0, "store accepted", by, "this store is current: what is due may be sent")
	})
	if err != nil {
		return err
	}
	s.course.mu.Lock()
	s.course.beside = true
	s.course.mu.Unlock()
	return s.Note(s.Progress())
}
