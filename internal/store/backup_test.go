package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	gocmp "github.com/google/go-cmp/cmp"
)

func openCopy(t *testing.T, path string) *store.Store {
	t.Helper()
	c, err := store.OpenCopy(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestACopyOfALiveStore checks that a copy has the commits up to its beginning, that only its owner
// can read it, that it has nothing of purged letters, and that opening it writes nothing.
func TestACopyOfALiveStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, _ := open(t)
	of := [][]byte{storetest.Noise(4000), storetest.Noise(4000)} // what cannot be compressed is found in the file
	var windows []deadletter.Window
	for i, n := range []int{3, 250} {
		w := window(t, int64(i+1), "sms", n)
		for k := range w.Arrivals {
			w.Arrivals[k].Body = of[i]
		}
		windows = append(windows, w)
	}
	gone, kept := receive(t, s, windows[0]).New, receive(t, s, windows[1]).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	for _, id := range gone {
		operate(t, s, deadletter.VerbPurge, id)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := store.Copy(ctx, s.Path(), path); err != nil {
		t.Fatal(err)
	}
	receive(t, s, window(t, 3, "later", 5)) // these are not in the copy

	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, of[0][:50]) || !bytes.Contains(content, of[1][:50]) {
		t.Error("the copy has the body of a purged letter, or not those of others")
	}
	c := openCopy(t, path)
	b, err := c.Check(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	want := deadletter.Backup{
		Store: s.ShortName(), Newest: kept[len(kept)-1], Received: 253, Schema: b.Schema, At: b.At,
		Letters: map[deadletter.State]int{deadletter.StatePurged: 3, deadletter.StateDead: 250},
	}
	if diff := gocmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Check(ctx, true); err != nil {
		t.Error(err)
	}
	for _, n := range []int{10, 0} {
		seen := map[deadletter.ID]bool{}
		var last deadletter.ID
		if err := c.Sample(ctx, n, func(l *deadletter.Letter) error {
			if n == 0 && l.ID < last {
				t.Errorf("%s comes after %s", l.ID, last)
			}
			seen[l.ID], last = true, l.ID
			if l.Damage != "" || l.State != deadletter.StatePurged && !bytes.Equal(l.Body, of[1]) {
				t.Errorf("%s: %s %q", l.ID, l.Damage, l.Body)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if want := cmp.Or(n, 253); len(seen) != want {
			t.Errorf("%d letters of %d", len(seen), want)
		}
	}
	c.Close()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
		t.Error("the copy changed", err)
	}
}

// TestACopyOfADamagedStore flips bits in the structure of a store. Its copy is either refused, and
// leaves no file, or it is sound, or the check finds the damage.
func TestACopyOfADamagedStore(t *testing.T) {
	t.Parallel()
	good, _, roots := classifiedStore(t)
	refused := 0
	for i, root := range roots {
		folder := t.TempDir()
		broken := bytes.Clone(good)
		broken[(root-1)*pageSize+i%8] ^= 0x55
		path, to := filepath.Join(folder, "dlo.db"), filepath.Join(folder, "copy.db")
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := store.Copy(t.Context(), path, to); err != nil {
			refused++
			if _, there := os.Stat(to); !errors.Is(err, store.ErrDamaged) || !errors.Is(there, fs.ErrNotExist) {
				t.Errorf("page %d: %v; %v", root, err, there)
			}
			continue
		}
		if _, err := openCopy(t, to).Check(t.Context(), true); err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("page %d: %v", root, err)
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

// TestDamageInACopyIsFound changes a copy: a value of a letter, a counter, and a whole page.
func TestDamageInACopyIsFound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	good, _, roots := classifiedStore(t)
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	changed := write("body", good)
	db := rawDB(t, changed)
	var letter int64
	if err := db.QueryRow(`SELECT letter FROM ` + storetest.Bodies + ` WHERE body = CAST('body 7 of window 2' AS BLOB)`).
		Scan(&letter); err != nil {
		t.Fatal(err)
	}
	storetest.Change(t, db, letter, func(m *segment.Message) bool {
		m.Body = []byte("body 8 of window 2")
		return true
	})
	if _, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	body := openCopy(t, changed)
	damaged := 0
	if err := body.Sample(ctx, 0, func(l *deadletter.Letter) error {
		if l.Damage != "" {
			damaged++
		}
		return nil
	}); err != nil || damaged != 1 {
		t.Errorf("%d letters are damaged: %v", damaged, err)
	}
	counted := write("counters", good)
	if _, err := rawDB(t, counted).Exec(`UPDATE counters SET n = n + 1; PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	if _, err := openCopy(t, counted).Check(ctx, false); !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	page := bytes.Clone(good)
	copy(page[(roots[len(roots)/2]-1)*pageSize:], bytes.Repeat([]byte{0xff}, pageSize))
	c, err := store.OpenCopy(ctx, write("page", page))
	if err == nil {
		_, err = c.Check(ctx, false)
		c.Close()
	}
	if !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	for name, content := range map[string][]byte{"empty": nil, "text": []byte("this is no database, but long enough")} {
		if _, err := store.OpenCopy(ctx, write(name, content)); err == nil {
			t.Errorf("%s is opened", name)
		}
	}
}

// TestABackupIsPutBack checks where a backup may be put: not in the place of a store that is open,
// and not in that of another one unless a person says so, which is kept with its write-ahead log.
func TestABackupIsPutBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := open(t)
	receive(t, s, window(t, 1, "sms", 3))
	folder := t.TempDir()
	from, to := filepath.Join(folder, "copy.db"), filepath.Join(folder, "new", "dlo.db")
	if err := store.Copy(ctx, s.Path(), from); err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBack(ctx, from, s.Path(), true); !errors.Is(err, store.ErrLocked) {
		t.Error("a live store was replaced:", err)
	}
	if old, err := store.PutBack(ctx, from, to, false); err != nil || old != "" {
		t.Error(old, err)
	}
	if _, err := store.PutBack(ctx, from, to, false); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := os.WriteFile(to+"-wal", []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte("the old store"), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := store.PutBack(ctx, from, to, true)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{old: "the old store", old + "-wal": "log"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	if _, err := os.Stat(to + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the write-ahead log of another file is beside the store:", err)
	}
	back, err := store.Open(ctx, to, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if n := count(t, back, ""); n != 3 {
		t.Errorf("%d letters", n)
	}
}

// TestAStoreBehindASymbolicLinkIsPutBack checks that a backup is put in the place of the file to
// which a link leads, because the link often leads to another disk.
func TestAStoreBehindASymbolicLinkIsPutBack(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	receive(t, s, window(t, 1, "sms", 3))
	from, to := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "dlo.db")
	link := filepath.Join(t.TempDir(), "dlo.db")
	err := errors.Join(
		store.Copy(t.Context(), s.Path(), from), os.WriteFile(to, []byte("the old store"), 0o600), os.Symlink(to, link),
	)
	if err != nil {
		t.Fatal(err)
	}
	old, err := store.PutBack(t.Context(), from, link, true)
	if err != nil || filepath.Dir(old) != filepath.Dir(to) {
		t.Error(old, err)
	}
	if b, err := openCopy(t, to).Check(t.Context(), false); err != nil || b.Total() != 3 {
		t.Error(b.Letters, err)
	}
	if at, err := os.Readlink(link); err != nil || at != to {
		t.Error(at, err)
	}
}

// TestABackupBeforeAMigration checks that a store of an older version is copied before it is
// changed, that the copy is the one from before if a migration is continued, and that an older dlo
// names it.
func TestABackupBeforeAMigration(t *testing.T) {
	t.Parallel()
	const older = 31
	path := storetest.FileOf(t, older)
	before := path + ".before-schema-"
	opened := func() {
		t.Helper()
		s, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	opened()
	found, err := filepath.Glob(before + "*")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	b, err := openCopy(t, found[0]).Check(t.Context(), false)
	if err != nil || b.Schema != older {
		t.Errorf("schema %d, %v", b.Schema, err)
	}
	copied, err := os.Stat(found[0])
	if err != nil {
		t.Fatal(err)
	}
	opened()
	if again, err := os.Stat(found[0]); err != nil || !again.ModTime().Equal(copied.ModTime()) {
		t.Error("a start without a migration makes another copy:", err)
	}

	// a dlo that died in the middle left a store between the two versions
	between := storetest.FileOf(t, older+1)
	if err := os.Rename(between, path); err != nil {
		t.Fatal(err)
	}
	opened()
	if b, err := openCopy(t, found[0]).Check(t.Context(), false); err != nil || b.Schema != older {
		t.Errorf("the copy from before was replaced: schema %d, %v", b.Schema, err)
	}

	// the copy of another store, or of an earlier upgrade, is no backup of this one
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(storetest.FileOf(t, older+2), path); err != nil {
		t.Fatal(err)
	}
	if _, err := rawDB(t, path).Exec(`UPDATE progress SET commits = 8`); err != nil {
		t.Fatal(err)
	}
	opened()
	if b, err := openCopy(t, found[0]).Check(t.Context(), false); err != nil || b.Schema != older+2 {
		t.Errorf("an old copy was kept: schema %d, %v", b.Schema, err)
	}

	// a newer dlo wrote the store
	if _, err := rawDB(t, path).Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), path, store.Options{}); err == nil ||
		!strings.Contains(err.Error(), "dlo restore "+found[0]) {
		t.Error(err)
	}
}

// TestARestoreThatWasKilled goes through the states in which a kill can leave a restore. dlo must
// not begin with an empty store, and the restore must end when it is repeated, with the old store
// and its write-ahead log together.
func TestARestoreThatWasKilled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := open(t)
	receive(t, s, window(t, 1, "sms", 3))
	folder := t.TempDir()
	from := filepath.Join(folder, "copy.db")
	if err := store.Copy(ctx, s.Path(), from); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"before the old store is moved": {"dlo.db", "dlo.db-wal", "dlo.db.restoring"},
		"before its log is moved":       {"dlo.db.replaced-20261130T031200.000000000Z", "dlo.db-wal", "dlo.db.restoring"},
		"before the new one is there": {
			"dlo.db.replaced-20261130T031200.000000000Z", "dlo.db.replaced-20261130T031200.000000000Z-wal",
			"dlo.db.restoring",
		},
	} {
		dir := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
		to := filepath.Join(dir, "dlo.db")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if len(files) > 0 && files[0] != "dlo.db" {
			if _, err := store.Open(ctx, to, store.Options{}); err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := store.PutBack(ctx, to+".restoring", to, true); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%s: the rest of a restore is its source: %v", name, err)
		}
		if _, err := store.PutBack(ctx, from, to, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		old, err := filepath.Glob(to + ".replaced-*Z")
		if err != nil || len(old) != 1 {
			t.Fatal(name, old, err)
		}
		if _, err := os.Stat(old[0] + "-wal"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := openCopy(t, to).Check(ctx, false); err != nil || b.Total() != 3 {
			t.Errorf("%s: %+v %v", name, b, err)
		}
	}
}

// TestARestoredStoreAsksForProof checks that a restored store waits for people if the broker has no
// mark, even if nothing had been sent when the backup was made.
func TestARestoredStoreAsksForProof(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := open(t)
	receive(t, s, window(t, 1, "sms", 3))
	from := filepath.Join(t.TempDir(), "copy.db")
	to := filepath.Join(t.TempDir(), "dlo.db")
	if err := store.Copy(ctx, s.Path(), from); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Remembered(ctx, "main", "/"); err != nil || m.Marked >= 0 {
		t.Fatal(m, err)
	}
	if _, err := store.PutBack(ctx, from, to, false); err != nil {
		t.Fatal(err)
	}
	back, err := store.Open(ctx, to, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if m, err := back.Remembered(ctx, "main", "/"); err != nil || m.Marked != 0 || m.Beside {
		t.Errorf("%+v %v", m, err)
	}
}

// TestAStoreInUseIsNoBackup checks that a store with a write-ahead log is not taken for a copy, and
// that looking at it changes nothing.
func TestAStoreInUseIsNoBackup(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	receive(t, s, window(t, 1, "sms", 3))
	before := contents(t, s.Path()+"-wal")
	if _, err := store.OpenCopy(t.Context(), s.Path()); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
	if !bytes.Equal(before, contents(t, s.Path()+"-wal")) {
		t.Error("the write-ahead log changed")
	}
}
