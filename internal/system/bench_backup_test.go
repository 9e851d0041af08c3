package system

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/backup"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestBenchBackup measures what a backup costs while 500 letters are stored each second, in windows
// of 50: how long a window takes alone and during the backup, and how much the write-ahead log
// grows.
func TestBenchBackup(t *testing.T) {
	testenv.Bench(t)
	b := filledStore(t, *benchRows)
	wal := func() int64 {
		info, err := os.Stat(b.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size() >> 20
	}
	store500 := func(ctx context.Context) (windows []time.Duration) {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			begun := time.Now()
			b.receive(t, 50)
			windows = append(windows, time.Since(begun))
		}
		return windows
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	alone := store500(ctx)
	before, begun := wal(), time.Now()
	during, done := context.WithCancel(t.Context())
	var size, copied int64
	go func() {
		defer done()
		to := filepath.Join(t.TempDir(), "backup.db")
		made, err := backup.Source{
			Now: time.Now,
			Copy: func(ctx context.Context, to string) error {
				defer func() { copied = time.Since(begun).Milliseconds() }()
				return store.Copy(ctx, b.path, to)
			},
			Open: func(ctx context.Context, path string) (backup.Copy, error) { return store.OpenCopy(ctx, path) },
		}.Make(t.Context(), to, false)
		if err != nil {
			t.Error(err)
		}
		size = made.Bytes >> 20
	}()
	beside := store500(during)
	t.Logf(
		"backup of %d letters: %d MiB in %s, of which the copy %d ms; the write-ahead log grew from %d to %d MiB",
		b.letters, size, time.Since(begun).Round(time.Millisecond), copied, before, wal(),
	)
	t.Logf(
		"a window of 50 letters, p50 and p99 in ms: alone %.1f %.1f, during the backup %.1f %.1f",
		ms(percentile(alone, 50)), ms(percentile(alone, 99)), ms(percentile(beside, 50)), ms(percentile(beside, 99)),
	)
}
