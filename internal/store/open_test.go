package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/migrations"
	"github.com/google/go-cmp/cmp"
)

// rawDB opens the file of a store with the SQLite driver, without the package store.
func rawDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// filledStore creates a store with some letters, closes it and returns its path.
func filledStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.db")
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, s, window(t, 1, "sms", 50))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPragmas(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	if err := s.ReadBack(ctx); err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{
		"query_only": "1", "foreign_keys": "1", "busy_timeout": "10000", "journal_mode": "wal",
	} {
		var got string
		if err := s.Reader().QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("reading connections have %s = %s, %v", pragma, got, err)
		}
	}
	if _, err := s.Reader().Exec(`DELETE FROM letters`); err == nil {
		t.Error("a reading connection writes")
	}
	for _, wrong := range []string{
		"synchronous = NORMAL", "foreign_keys = 0", "temp_store = DEFAULT", "cache_size = 10", "busy_timeout = 1",
	} {
		if err := s.Writer(ctx, "PRAGMA "+wrong); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(wrong, " ")
		if err := s.ReadBack(ctx); err == nil || !strings.Contains(err.Error(), "pragma ") {
			t.Errorf("%s was not noticed: %v", name, err)
		}
	}
}

func TestASecondStoreOnTheSameFileIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	again, err := store.Open(context.Background(), s.Path(), store.Options{})
	if !errors.Is(err, store.ErrLocked) || again != nil {
		t.Fatal(err)
	}
	receive(t, s, window(t, 1, "sms", 1)) // the attempt did not damage the first store
	if n := count(t, s, ""); n != 1 {
		t.Errorf("%d letters", n)
	}
}

func TestALockOutlivesNoProcess(t *testing.T) {
	t.Parallel()
	path := filledStore(t) // the lock file of the old process still exists
	if _, err := os.Stat(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestADamagedFileIsRefusedAndNotTouched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
	}{
		{"a text file", func([]byte) []byte { return []byte("listen: 127.0.0.1:8672\n") }},
		{"one byte", func(b []byte) []byte { return b[:1] }},
		{"half a header", func(b []byte) []byte { return b[:50] }},
		{"a page and a half", func(b []byte) []byte { return b[:6144] }},
		{"the last page is missing", func(b []byte) []byte { return b[:len(b)-4096] }},
		{"a bit of the magic", func(b []byte) []byte { b[3] ^= 4; return b }},
		{"the page size", func(b []byte) []byte { b[16] ^= 0x60; return b }},
		{"the page size is no power of two", func(b []byte) []byte { b[17] ^= 1; return b }},
		{"the read version", func(b []byte) []byte { b[19] = 9; return b }},
		{"the payload fraction", func(b []byte) []byte { b[21] ^= 1; return b }},
		{"the schema format", func(b []byte) []byte { b[47] ^= 0x40; return b }},
		{"the type of the first page", func(b []byte) []byte { b[100] ^= 0xff; return b }},
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }},
		{"zeros after the first page", func(b []byte) []byte { clear(b[4096:]); return b }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filledStore(t)
			broken := c.damage(contents(t, path))
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(context.Background(), path, store.Options{})
			if s != nil {
				s.Close()
			}
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%v is not ErrDamaged", err)
			}
			if !bytes.Equal(contents(t, path), broken) {
				t.Error("the file was changed")
			}
			if _, err := os.Stat(path + "-wal"); err == nil {
				t.Error("a write-ahead log was left behind")
			}
		})
	}
}

func TestTheDatabaseOfAnotherProgramIsRefusedAndNotTouched(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "places.sqlite")
	db := rawDB(t, path)
	if _, err := db.Exec(`CREATE TABLE bookmarks (url)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, path)
	if s, err := store.Open(
		context.Background(), path, store.Options{},
	); s != nil || !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "of another program") {
		t.Fatal(err)
	}
	if !bytes.Equal(contents(t, path), before) {
		t.Error("the file was changed")
	}
}

// TestAFlippedHeaderBitIsServedOrRefused flips each bit in the header of a store file. The store
// must either work or fail to open, without a panic. If it fails to open, the file must stay
// unchanged.
func TestAFlippedHeaderBitIsServedOrRefused(t *testing.T) {
	t.Parallel()
	good := contents(t, filledStore(t))
	for i := 0; i < 100; i += 3 {
		path := filepath.Join(t.TempDir(), "dlo.db")
		broken := bytes.Clone(good)
		broken[i] ^= 1 << (i % 8)
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(context.Background(), path, store.Options{})
		if err == nil {
			if n := count(t, s, ""); n != 50 {
				t.Errorf("byte %d: %d letters of 50", i, n)
			}
			s.Close()
			continue
		}
		if !bytes.Equal(contents(t, path), broken) {
			t.Errorf("byte %d: refused (%v) and changed", i, err)
		}
	}
}

func TestANewerSchemaIsRefusedAndNotTouched(t *testing.T) {
	t.Parallel()
	path := filledStore(t)
	db := rawDB(t, path)
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, path)
	s, err := store.Open(context.Background(), path, store.Options{})
	if s != nil || !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "version 9999") {
		t.Fatal(err)
	}
	if !bytes.Equal(contents(t, path), before) {
		t.Error("the file was changed")
	}
}

func TestFilesBelongToTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "var", "dlo")
	s, err := store.Open(context.Background(), filepath.Join(dir, "dlo.db"), store.Options{
		Space: store.NewSpace(filepath.Join(t.TempDir(), "x"), 0, 0, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	receive(t, s, window(t, 1, "sms", 1))
	modes := map[string]string{}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		modes[filepath.Base(d)] = fmt.Sprintf("%o", info.Mode().Perm())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		modes[f.Name()] = fmt.Sprintf("%o", info.Mode().Perm())
	}
	want := map[string]string{
		"var": "700", "dlo": "700", "dlo.db": "600", "dlo.db-wal": "600", "dlo.db-shm": "600", "dlo.db.lock": "600",
		"dlo.db.reading": "600",
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPathThatCannotBeOpenedIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(file, "dlo.db"), dir} {
		if s, err := store.Open(
			context.Background(), path, store.Options{},
		); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, s, err)
		}
	}
}

func TestAPathWithOddCharactersIsThatPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%20.db")
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Error(info, err)
	}
}

func TestPingAndChanges(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	before := s.Changes()
	if err := s.Ping(context.Background()); err != nil || s.Changes() != before+1 {
		t.Error(err, s.Changes()-before)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Ping(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAFailedWindowLeavesNothing checks a window with a letter that cannot be stored. The store
// must then keep nothing from this window: no name, no counter and no serial.
func TestAFailedWindowLeavesNothing(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	w := window(t, 1, "sms", 3)
	w.Arrivals[2].Properties.Headers["n"] = uint64(1) // this value cannot be encoded
	if r, err := s.Receive(context.Background(), w); err == nil || len(r.New) > 0 {
		t.Fatal(r, err)
	}
	if n := count(t, s, ""); n != 0 {
		t.Errorf("%d letters", n)
	}
	if open, err := s.Look(context.Background(), "main", "/", "dlo.letters"); open != nil || err != nil {
		t.Error(open, err)
	}
	if r := receive(t, s, window(t, 2, "sms", 3)); len(r.New) != 3 {
		t.Error(r)
	}
}

func TestHistoryIsAppendOnly(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	receive(t, s, window(t, 1, "sms", 1))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if err := s.Record(t.Context(), deadletter.Once(deadletter.ActRulesLoaded, "dlo", "", deadletter.Target{
		Kind: deadletter.TargetRules,
	})); err != nil {
		t.Fatal(err)
	}
	db := rawDB(t, s.Path())
	for _, statement := range []string{
		`UPDATE events SET actor = 'nobody'`, `DELETE FROM events`, `UPDATE events SET id = id + 100`,
		`DELETE FROM events WHERE id = 1`, `UPDATE event_targets SET name = ''`, `DELETE FROM event_targets`,
	} {
		if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM events`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d events, %v", n, err)
	}
}

// TestAClockThatGoesBackKeepsTheOrder checks that the ids of letters are in the order of receipt,
// even if the clock is set back.
func TestAClockThatGoesBackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	first := receive(t, s, window(t, 1, "sms", 1)).New[0]
	c.at = c.at.Add(-time.Hour)
	second := receive(t, s, window(t, 2, "sms", 1)).New[0]
	if first >= second {
		t.Errorf("%s came before %s", first, second)
	}
}
