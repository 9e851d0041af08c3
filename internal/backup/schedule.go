package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Settings say when backups are made and rehearsed.
type Settings struct {
	Folder   string        // "" = no backups
	Every    time.Duration // time between two backups
	Keep     int           // number of backups that are kept
	Rehearse time.Duration // time between two rehearsals; 0 = no rehearsals
}

// Options are what a Schedule needs besides its settings.
type Options struct {
	Source
	Store  string // the first 8 characters of the name of the store; backups of others are left alone
	Decode Decode
	Busy   func() bool // reports whether more urgent work is waiting
	Log    *slog.Logger
}

// Schedule makes backups in a folder, removes old ones, and rehearses the newest one. What it knows
// of them is what their manifests say, so it knows it after a restart as well.
type Schedule struct {
	Settings
	o     Options
	begun time.Time

	mu     sync.Mutex
	newest *deadletter.Backup
	failed error // of the last backup or rehearsal; nil = it succeeded
}

// New returns a Schedule. Its method Run starts the work.
func New(settings Settings, o Options) *Schedule {
	s := &Schedule{Settings: settings, o: o, begun: o.Now()}
	s.o.Rest = s.rest
	s.look()
	return s
}

// Source returns what makes the backups.
func (s *Schedule) Source() Source { return s.o.Source }

// look finds the backups of this store, newest first.
func (s *Schedule) look() []deadletter.Backup {
	if s.Folder == "" {
		return nil
	}
	list, err := List(s.Folder, s.o.Now())
	own := list[:0]
	for _, b := range list {
		if b.Store == s.o.Store {
			own = append(own, b)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = nil
	if len(own) > 0 {
		s.newest = &own[0]
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.failed = err
	}
	return own
}

// Newest returns the newest backup. It returns nil if there is none.
func (s *Schedule) Newest() *deadletter.Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// pause is the time between two looks at the folder.
const pause = time.Minute

// Run makes and rehearses backups until ctx is done.
func (s *Schedule) Run(ctx context.Context) error {
	if s.Folder == "" {
		return nil
	}
	for ctx.Err() == nil {
		err := s.step(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			s.o.Log.Error("the backup failed; dlo tries again", "folder", s.Folder, "err", err)
		}
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		wait := pause
		if err != nil { // a copy of a large store is much work, so a failure is not repeated each minute
			wait = min(max(s.Every/24, pause), time.Hour)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// step makes a backup and rehearses the newest one, if they are due.
func (s *Schedule) step(ctx context.Context) error {
	list := s.look()
	if len(list) == 0 || !s.o.Now().Before(list[0].At.Add(s.Every)) {
		if err := s.make(ctx); err != nil {
			return err
		}
		list = s.look()
	}
	if err := s.rotate(list); err != nil || len(list) == 0 || s.Rehearse == 0 {
		return err
	}
	for _, b := range list {
		if b.Rehearsed != nil && s.o.Now().Before(b.Rehearsed.At.Add(s.Rehearse)) {
			return nil
		}
	}
	r, err := s.o.Rehearse(ctx, filepath.Join(s.Folder, list[0].File), s.o.Decode)
	s.look()
	if err == nil {
		s.o.Log.Info(
			"backup rehearsed", "backup", list[0].File, "letters", r.Letters, "read", r.Read, "errors", r.Errors,
			"problem", r.Problem,
		)
	}
	return err
}

// prefix is the beginning of the names of the schedule's backups. It contains the name of the
// store, so that several stores can have their backups in one folder.
func (s *Schedule) prefix() string { return "dlo-" + s.o.Store + "-" }

// make makes a backup, and removes what killed ones have left.
func (s *Schedule) make(ctx context.Context) error {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return err
	}
	begun := s.o.Now()
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), s.prefix()) && strings.HasSuffix(e.Name(), unchecked) {
			removeRest(filepath.Join(s.Folder, e.Name()))
		}
	}
	b, err := s.o.Make(ctx, filepath.Join(s.Folder, s.prefix()+begun.UTC().Format(layout)), false)
	if err != nil {
		return err
	}
	s.o.Log.Info(
		"backup made", "backup", b.File, "letters", b.Total(), "bytes", b.Bytes, "damaged", b.Damaged,
		"took", s.o.Now().Sub(begun).Round(time.Millisecond),
	)
	return nil
}

// rotate removes the backups of this store that are too many. It removes only files with a name
// that a Schedule gives.
func (s *Schedule) rotate(list []deadletter.Backup) error {
	var errs []error
	kept := 0
	for _, b := range list {
		if !strings.HasPrefix(b.File, s.prefix()) {
			continue
		}
		if kept++; kept > s.Keep {
			path := filepath.Join(s.Folder, b.File)
			errs = append(errs, os.Remove(path), os.Remove(path+suffix))
		}
	}
	return errors.Join(errs...)
}

// rest waits while more urgent work is waiting, but no longer than a second.
func (s *Schedule) rest(ctx context.Context) {
	for waited := time.Duration(0); waited < time.Second && s.o.Busy() && ctx.Err() == nil; waited += restStep {
		time.Sleep(restStep)
	}
}

const restStep = 20 * time.Millisecond

// Problems returns the problem that there is no current backup, or that the newest one cannot be
// relied on.
func (s *Schedule) Problems() []deadletter.Problem {
	if s == nil || s.Folder == "" { // the server is not complete yet, or makes no backups
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := deadletter.Problem{Kind: deadletter.ProblemBackup, Severity: deadletter.SeverityNotify}
	since := s.begun
	if s.newest != nil {
		since = s.newest.At
	}
	switch late := s.o.Now().Sub(since) > 2*s.Every; {
	case late && s.newest == nil:
		p.Title, p.Since = "There is no backup of the store.", since
		p.Text = fmt.Sprintf("One is due every %s, and there is none in %s.", s.Every, s.Folder)
	case late:
		p.Title, p.Since = "The newest backup of the store is old.", since
		p.Text = fmt.Sprintf(
			"One is due every %s, and the newest one in %s is of %s UTC.", s.Every, s.Folder, since.UTC().Format(time.DateTime),
		)
	case s.newest != nil && s.newest.Rehearsed != nil && (s.newest.Rehearsed.Problem != "" || s.newest.Rehearsed.Errors > 0):
		r := s.newest.Rehearsed
		p.Title, p.Since = "The newest backup of the store was rehearsed with errors.", r.At
		p.Text = fmt.Sprintf(
			"Of %d letters that were read from %s, %d are damaged or can no longer be decoded. %s",
			r.Read, s.newest.File, r.Errors, r.Problem,
		)
		p.Cure = "dlo restore --rehearse " + strconv.Quote(filepath.Join(s.Folder, s.newest.File)) + " tries it again"
	default:
		return nil
	}
	if s.failed != nil {
		p.Text += " The last try failed: " + deadletter.Visible(s.failed.Error()) + "."
	}
	return []deadletter.Problem{p}
}
