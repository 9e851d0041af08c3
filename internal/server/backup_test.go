package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestABackupLeavesRoomForLetters checks that no backup is made if dlo takes in no letters because
// of the disk.
func TestABackupLeavesRoomForLetters(t *testing.T) {
	t.Parallel()
	cfg := config.Defaults()
	cfg.Store = storetest.File(t)
	to := filepath.Join(t.TempDir(), "backup.db")
	cfg.Disk.StopBelow = math.MaxInt64 / 4
	if _, err := (Backups{}).Make(t.Context(), cfg, to, false); !errors.Is(err, store.ErrNoRoom) {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	cfg.Disk.StopBelow, cfg.Disk.StopBelowPercent = 0, 0
	if _, err := (Backups{}).Make(t.Context(), cfg, to, false); err != nil {
		t.Error(err)
	}
}

// TestABackupForAClient checks that only one backup is made for clients at a time, that a backup
// ends when dlo stops, and that nothing is left of it.
func TestABackupForAClient(t *testing.T) {
	t.Parallel()
	s, _ := openFile(t)
	folder := filepath.Dir(s.cfg.Store)
	before, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	f, b, err := s.TakeBackup(t.Context(), false)
	if err != nil || b.SHA256 == "" {
		t.Fatal(b, err)
	}
	f.Close()
	s.taking.Lock()
	if _, _, err := s.TakeBackup(t.Context(), false); !errors.Is(err, deadletter.ErrConflict) {
		t.Error(err)
	}
	s.taking.Unlock()
	s.stopTaking()
	if _, _, err := s.TakeBackup(t.Context(), false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if after, err := os.ReadDir(folder); err != nil || len(after) != len(before) {
		t.Error(before, after, err)
	}
}

// TestTheRestOfABackupIsRemoved checks that a start removes what a killed dlo left, and nothing
// else.
func TestTheRestOfABackupIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"dlo.db.backup-123.tmp", "backup-of-mysql.tmp", "other.db.backup-1.tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeTemporary(filepath.Join(dir, "dlo.db"), slog.New(slog.DiscardHandler))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 || left[0].Name() != "backup-of-mysql.tmp" {
		t.Error(left, err)
	}
}
