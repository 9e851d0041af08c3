package store_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TestAFlippedBit flips a bit of a stopped store: in the first bytes of a page, which say how it is
// to be read, or anywhere. What SQLite can find out ends all writing, when the store is opened or
// once the page is met.
func TestAFlippedBit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s := opened(t, c)
	for n := range int64(4) {
		receive(t, s, window(t, 1+n, "sms", 60))
	}
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := contents(t, s.Path())
	// works does what dlo does, and returns the first error.
	works := func(s *store.Store) error {
		_, _, _, listed := s.Letters(ctx, query.Query{}, deadletter.Page{Limit: 200})
		_, _, _, older := s.Letters(ctx, query.Query{}, deadletter.Page{Limit: 200, Order: deadletter.OrderDue})
		_, received := s.Receive(ctx, window(t, 9, "email", 20))
		_, claimed := s.ClaimDue(ctx, "main", c.now(), 300, time.Minute, deadletter.Allowance{Allow: func(deadletter.Origin, string) (int, bool) { return 300, false }})
		return errors.Join(listed, older, received, claimed)
	}
	const page = 4096
	random := rand.New(rand.NewPCG(1, 2))
	refused, found, unseen := 0, 0, 0
	for n := range 60 {
		at := page * (1 + random.IntN(len(whole)/page-1))
		if n%2 == 0 {
			at += random.IntN(8)
		} else {
			at += random.IntN(page)
		}
		broken := bytes.Clone(whole)
		broken[at] ^= 1 << random.IntN(8)
		path := filepath.Join(t.TempDir(), "dlo.db")
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(ctx, path, store.Options{Now: c.now})
		if err != nil {
			refused++
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		switch err := works(s); {
		case s.Damage() != nil:
			found++
			before, log := contents(t, path), contents(t, path+"-wal")
			if err := works(s); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("byte %d: a damaged store is written to: %v", at, err)
			}
			if !bytes.Equal(contents(t, path), before) || !bytes.Equal(contents(t, path+"-wal"), log) {
				t.Errorf("byte %d: a damaged store was changed", at)
			}
		case err != nil:
			t.Logf("byte %d: %v", at, err)
		default:
			unseen++
		}
		s.Close()
	}
	if refused == 0 || found == 0 {
		t.Errorf("%d refused, %d found, %d not seen", refused, found, unseen)
	}
	t.Logf("%d refused, %d found, %d not seen", refused, found, unseen)
}

// TestAFileSystemThatIsReadOnly is found without a write.
func TestAFileSystemThatIsReadOnly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "dlo.db")
	if err := store.NewSpace(path, 0, 0, 0).Room(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := store.NewSpace(path, 0, 0, 0).Room(); !errors.Is(err, store.ErrReadOnly) {
		t.Error(err)
	}
}
