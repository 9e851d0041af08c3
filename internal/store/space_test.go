package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

func reserve(path string) int64 {
	info, err := os.Stat(path + ".reserve")
	if err != nil {
		return -1
	}
	return info.Size()
}

func TestTheReserveFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.db")
	s := store.NewSpace(path, 0, 0, 1<<20+1, 0)
	if n := reserve(path); n != 1<<20+1 {
		t.Errorf("the reserve has %d bytes", n)
	}
	if err := s.Room(); err != nil {
		t.Error(err)
	}
	if s.Refused() != nil {
		t.Error("no write has failed yet")
	}
	if !s.Refuse(syscall.ENOSPC) || reserve(path) != -1 {
		t.Error("it was not given up")
	}
	if s.Refused() == nil {
		t.Error("a write has just failed for want of room")
	}
	if s.Refuse(syscall.ENOSPC) {
		t.Error("it was given up twice")
	}
	if err := s.Room(); err != nil || reserve(path) != 1<<20+1 {
		t.Errorf("it was not made again: %d bytes, %v", reserve(path), err)
	}
}

func TestNoReserveIsNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.db")
	s := store.NewSpace(path, 0, 0, 0, 0)
	if err := s.Room(); err != nil || reserve(path) != -1 || s.Refuse(syscall.ENOSPC) {
		t.Error(err, reserve(path))
	}
}

func TestTooLittleRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.db")
	for _, s := range []*store.Space{store.NewSpace(path, 1<<60, 0, 1<<20, 0), store.NewSpace(path, 0, 100, 1<<20, 0)} {
		if err := s.Room(); !errors.Is(err, store.ErrNoRoom) ||
			!strings.Contains(err.Error(), "MiB are free on "+filepath.Dir(path)) {
			t.Error(err)
		}
		if n := reserve(path); n != -1 {
			t.Errorf("a reserve of %d bytes was made where there is no room", n)
		}
	}
	if err := store.NewSpace("/no/such/dir/dlo.db", 0, 0, 0, 0).Room(); err == nil || errors.Is(err, store.ErrNoRoom) {
		t.Error(err)
	}
}

// TestRoomIsLeftForWhatIsComing checks that letters are refused early enough: those that are on
// their way must still fit above the limit. Without a limit, they need no room. Each call must look
// at the disk, because a flood fills it within a second.
func TestRoomIsLeftForWhatIsComing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path, free := filepath.Join(dir, "dlo.db"), int64(st.Bavail)*int64(st.Bsize)
	for _, c := range []struct {
		name          string
		limit, coming int64
		room          bool
	}{
		{"they fit", free / 2, free / 4, true},
		{"they do not fit", free / 3 * 2, free / 2, false},
		{"more would be kept free than twice the limit", free / 4, free, true},
		{"no limit", 0, free, true},
	} {
		err := store.NewSpace(path, c.limit, 0, 0, c.coming).Room()
		said := strings.Contains(fmt.Sprint(err), "MiB more for letters that are on their way")
		if errors.Is(err, store.ErrNoRoom) == c.room || said == c.room {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s := store.NewSpace(path, 0, 0, 0, 0)
	if err := errors.Join(s.Room(), os.Remove(dir)); err != nil {
		t.Fatal(err)
	}
	if s.Room() == nil {
		t.Error("the second call did not look at the disk")
	}
}

// TestAFullDisk checks a write that fails because the disk is full. The store must keep nothing of
// this write, and must delete the reserve file. When there is free space again, the write must
// succeed.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.db")
	space := store.NewSpace(path, 0, 0, 1<<20, 0)
	s, err := store.Open(context.Background(), path, store.Options{
		Space: space, Broken: func(err error) { t.Errorf("no reason to end the process: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	receive(t, s, window(t, 1, "sms", 1))
	if err := s.Writer(ctx, `PRAGMA max_page_count = 1`); err != nil { // the file cannot grow
		t.Fatal(err)
	}
	w := window(t, 2, "email", 3)
	for i := range w.Arrivals {
		w.Arrivals[i].Body = storetest.Noise(100_000)
	}
	if r, err := s.Receive(ctx, w); !store.IsFull(err) || len(r.New) > 0 {
		t.Fatal(r, err)
	}
	if n := reserve(path); n != -1 {
		t.Errorf("the reserve still has %d bytes", n)
	}
	if n := count(t, s, ""); n != 1 {
		t.Errorf("%d letters", n)
	}
	if err := s.Writer(ctx, `PRAGMA max_page_count = 1000000`); err != nil {
		t.Fatal(err)
	}
	if r := receive(t, s, w); len(r.New) != 3 {
		t.Error(r)
	}
	for _, breach := range breaches(t, s.Reader()) {
		t.Error(breach)
	}
	if store.IsFull(errors.New("other")) || store.IsFull(nil) {
		t.Error("every error is a full disk")
	}
}

// TestWhatAFileSystemDoesNotTakeIsToldFromMistakes covers writes that the file system rejects,
// which SQLite reports in several ways. dlo must distinguish all of them from programming mistakes.
func TestWhatAFileSystemDoesNotTakeIsToldFromMistakes(t *testing.T) {
	t.Parallel()
	file := "file:" + filledStore(t)
	for _, c := range []struct {
		name, file, statement string
		refused               bool
	}{
		{"read-only", file + "?mode=ro", `DELETE FROM meta`, true},
		{"a folder that is gone", file + "-none/dlo.db", `CREATE TABLE t (n)`, true},
		{"a full disk", file + "?_pragma=max_page_count(1)", `CREATE TABLE t AS SELECT zeroblob(1000000)`, true},
		{"a mistake", file, `DELETE FROM nothing`, false},
		{"a constraint", file, `INSERT INTO meta (key, value) VALUES (NULL, '')`, false},
	} {
		db, err := sql.Open("sqlite", c.file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(c.statement); err == nil || store.IsRefused(err) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if store.IsRefused(nil) {
		t.Error("no error is a refusal")
	}
}
