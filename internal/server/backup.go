package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/deadletteroffice/dlo/internal/backup"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/prometheus/client_golang/prometheus"
)

// Backups makes, restores and rehearses backups on this machine, whether or not a dlo is running.
type Backups struct{ Version string }

// Make writes a backup of the store of a configuration to a new file.
func (b Backups) Make(ctx context.Context, cfg config.Config, to string, whole bool) (deadletter.Backup, error) {
	return sourceOf(&cfg, b.Version).Make(ctx, to, whole)
}

// Restore checks the backup at the path "from", or the newest one in that folder, and puts it in
// the place of a store. It returns the manifest, and the path of the store that was there before,
// or "".
func (b Backups) Restore(
	ctx context.Context, from, to string, replace, whole bool,
) (m deadletter.Backup, old string, err error) {
	path, err := backup.Find(from)
	if err != nil {
		return m, "", err
	}
	if m, _, err = (backup.Source{Open: openCopy}).Verify(ctx, path, whole); err != nil {
		return m, "", err
	}
	if old, err = store.PutBack(ctx, path, to, replace); errors.Is(err, store.ErrLocked) {
		err = fmt.Errorf("%w; stop it before you put a backup in the place of its store", err)
	}
	return m, old, explainStore(err, to)
}

// Rehearse rehearses the backup at a path, or the newest one in a folder. It returns its path.
func (b Backups) Rehearse(ctx context.Context, cfg config.Config, path string) (string, deadletter.Rehearsal, error) {
	path, err := backup.Find(path)
	if err != nil {
		return path, deadletter.Rehearsal{}, err
	}
	r, err := sourceOf(&cfg, b.Version).Rehearse(ctx, path, decodes(&cfg))
	return path, r, err
}

// sourceOf returns what makes backups of the store of a configuration.
func sourceOf(cfg *config.Config, version string) backup.Source {
	return backup.Source{
		Version: version,
		Now:     time.Now,
		Open:    openCopy,
		Copy: func(ctx context.Context, to string) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if space := newSpace(cfg, 0); onOneDisk(cfg.Store, filepath.Dir(to)) {
				if err := leavesRoom(space); err != nil {
					return err
				}
				go watchRoom(ctx, space, cancel)
			}
			err := store.Copy(ctx, cfg.Store, to)
			if cause := context.Cause(ctx); err != nil && cause != nil {
				return cause
			}
			return err
		},
	}
}

func openCopy(ctx context.Context, path string) (backup.Copy, error) {
	return store.OpenCopy(ctx, path)
}

const roomEvery = 200 * time.Millisecond

// onOneDisk reports whether two files are on the same file system.
func onOneDisk(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev == y.Dev
}

// leavesRoom returns an error if so little room is left on the disk of the store that dlo takes in
// no letters. Besides the copy, the write-ahead log grows while SQLite copies.
func leavesRoom(space *store.Space) error {
	if err := space.Room(); errors.Is(err, store.ErrNoRoom) {
		return fmt.Errorf("a backup would leave too little room for letters: %w", err)
	}
	return nil
}

// watchRoom ends a copy as soon as too little room is left.
func watchRoom(ctx context.Context, space *store.Space, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-time.After(roomEvery):
		case <-ctx.Done():
			return
		}
		if err := leavesRoom(space); err != nil {
			cancel(err)
		}
	}
}

// decodes returns what decodes letters of a copy with the types that the copy has.
func decodes(cfg *config.Config) backup.Decode {
	return func(ctx context.Context, c backup.Copy) (fails func(*deadletter.Letter) bool, err error) {
		copied := c.(*store.Store)
		if copied.Older() {
			return func(*deadletter.Letter) bool { return false }, nil
		}
		types := descriptor.NewRegistry()
		if _, err := schemas.AddStored(ctx, copied, types); err != nil {
			return nil, err
		}
		d := &payload.Decoder{Types: types, TypeHeaders: cfg.Schemas.TypeHeaders, MaxBody: cfg.Requeue.MaxBody}
		picks, err := copied.Picks(ctx)
		if err != nil {
			return nil, err
		}
		d.Bindings = bindingsOf(cfg, picks)
		return func(l *deadletter.Letter) bool { return l.Type != "" && d.Letter(l).Type == "" }, nil
	}
}

// createBackups creates the schedule of backups.
func (s *Server) createBackups() {
	s.backups = backup.New(backup.Settings(s.cfg.Backup), backup.Options{
		Source: sourceOf(&s.cfg, s.version),
		Store:  s.store.ShortName(),
		Decode: decodes(&s.cfg),
		Busy:   s.hasBacklog,
		Log:    s.log,
	})
	s.Registry.MustRegister(backupCollector{s.backups})
}

// TakeBackup makes a backup in a temporary file, which is gone when it is closed. There is only one
// at a time, because each needs memory and room on the disk. It ends when dlo stops.
func (s *Server) TakeBackup(ctx context.Context, whole bool) (io.ReadCloser, deadletter.Backup, error) {
	if !s.taking.TryLock() {
		return nil, deadletter.Backup{}, fmt.Errorf("%w: another backup is being made; try again later", deadletter.ErrConflict)
	}
	defer s.taking.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.stopping, cancel)
	defer stop()
	return take(ctx, &s.cfg, s.backups.Source(), whole)
}

// Take makes a backup of the store of a configuration in a temporary file, which is gone when it is
// closed.
func (b Backups) Take(ctx context.Context, cfg config.Config, whole bool) (io.ReadCloser, deadletter.Backup, error) {
	return take(ctx, &cfg, sourceOf(&cfg, b.Version), whole)
}

func take(
	ctx context.Context, cfg *config.Config, from backup.Source, whole bool,
) (io.ReadCloser, deadletter.Backup, error) {
	folder, err := os.MkdirTemp(filepath.Dir(cfg.Store), filepath.Base(cfg.Store)+temporaryBackup)
	if err != nil {
		return nil, deadletter.Backup{}, err
	}
	defer os.RemoveAll(folder) // the open file remains until it is closed
	path := filepath.Join(folder, backup.Name(time.Now()))
	m, err := from.Make(ctx, path, whole)
	if err != nil {
		return nil, m, err
	}
	f, err := os.Open(path)
	return f, m, err
}

// NewestBackup returns the newest scheduled backup; nil = there is none.
func (s *Server) NewestBackup() *deadletter.Backup { return s.backups.Newest() }

// temporaryBackup follows the name of the store in the names of folders for backups that are sent
// to a client.
const temporaryBackup = ".backup-*.tmp"

// removeTemporary removes what a killed dlo left of backups that it was sending.
func removeTemporary(storePath string, log *slog.Logger) {
	entries, _ := os.ReadDir(filepath.Dir(storePath))
	for _, e := range entries {
		if is, _ := filepath.Match("*"+temporaryBackup, e.Name()); !is || !e.IsDir() ||
			!strings.HasPrefix(e.Name(), filepath.Base(storePath)+".") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(storePath), e.Name())); err != nil {
			log.Warn("the rest of a backup could not be removed", "folder", e.Name(), "err", err)
		}
	}
}

var (
	backupDesc = prometheus.NewDesc(
		"dlo_backup_last_success_timestamp_seconds", "Seconds since 1970 at which the newest good backup was made; 0 = there is none.", nil, nil,
	)
	rehearsedDesc = prometheus.NewDesc(
		"dlo_backup_last_rehearsal_timestamp_seconds",
		"Seconds since 1970 at which the newest backup was last rehearsed without an error; 0 = it was not.", nil, nil,
	)
)

// backupCollector collects the metrics of the scheduled backups. Without scheduled backups, there
// are none.
type backupCollector struct{ *backup.Schedule }

func (c backupCollector) Describe(to chan<- *prometheus.Desc) {
	to <- backupDesc
	to <- rehearsedDesc
}

func (c backupCollector) Collect(to chan<- prometheus.Metric) {
	if c.Folder == "" {
		return
	}
	var made, rehearsed float64
	if b := c.Newest(); b != nil {
		made = float64(b.At.Unix())
		if r := b.Rehearsed; r != nil && r.Problem == "" && r.Errors == 0 {
			rehearsed = float64(r.At.Unix())
		}
	}
	to <- prometheus.MustNewConstMetric(backupDesc, prometheus.GaugeValue, made)
	to <- prometheus.MustNewConstMetric(rehearsedDesc, prometheus.GaugeValue, rehearsed)
}
