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
	gone := receive(t, s, window(t, 1, "sms", 3)).New
	kept := receive(t, s, window(t, 2, "email", 250)).New
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
	if bytes.Contains(content, []byte("of window 1")) || !bytes.Contains(content, []byte("of window 2")) {
		t.Error("the copy has the body of a purged letter, or not those of others")
	}
	c := openCopy(t, path)
	b, err := c.Contents(ctx)
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
	if err := c.Check(ctx, true); err != nil {
		t.Error(err)
	}
	for _, n := range []int{10, 0} {
		seen := map[deadletter.ID]bool{}
		if err := c.Sample(ctx, n, func(l *deadletter.Letter) error {
			seen[l.ID] = true
			if l.Damage != "" || l.State != deadletter.StatePurged && !strings.Contains(string(l.Body), "of window 2") {
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
		if err := openCopy(t, to).Check(t.Context(), true); err != nil && !errors.Is(err, store.ErrDamaged) {
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
	body := openCopy(t, write("body", bytes.Replace(good, []byte("body 7 of window 2"), []byte("body 8 of window 2"), 1)))
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
	if err := openCopy(t, counted).Check(ctx, false); !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	page := bytes.Clone(good)
	copy(page[(roots[len(roots)/2]-1)*pageSize:], bytes.Repeat([]byte{0xff}, pageSize))
	c, err := store.OpenCopy(ctx, write("page", page))
	if err == nil {
		err = c.Check(ctx, false)
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
	if _, err := store.PutBack(from, s.Path(), true); !errors.Is(err, store.ErrLocked) {
		t.Error("a live store was replaced:", err)
	}
	if old, err := store.PutBack(from, to, false); err != nil || old != "" {
		t.Error(old, err)
	}
	if _, err := store.PutBack(from, to, false); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := os.WriteFile(to+"-wal", []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte("the old store"), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := store.PutBack(from, to, true)
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
	b, err := openCopy(t, found[0]).Contents(t.Context())
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
	if b, err := openCopy(t, found[0]).Contents(t.Context()); err != nil || b.Schema != older {
		t.Errorf("the copy from before was replaced: schema %d, %v", b.Schema, err)
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
