package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestACopyOnAFullDisk makes a copy, restores one, and migrates a store, on a disk that has too
// little room for each of them. No half file may be left, and the store must be as it was.
func TestACopyOnAFullDisk(t *testing.T) {
	t.Parallel()
	small := storetest.Disk(t, "800k")
	s, _ := open(t)
	w := window(t, 1, "sms", 300)
	for i := range w.Arrivals {
		w.Arrivals[i].Body = storetest.Noise(4000)
	}
	receive(t, s, w)
	left := func(want ...string) {
		t.Helper()
		var names []string
		entries, err := os.ReadDir(small)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || len(names) != len(want) {
			t.Errorf("%q are left, want %q: %v", names, want, err)
		}
	}
	if err := store.Copy(t.Context(), s.Path(), filepath.Join(small, "copy.db")); !store.IsFull(err) {
		t.Error(err)
	}
	left()
	whole := filepath.Join(t.TempDir(), "copy.db")
	if err := store.Copy(t.Context(), s.Path(), whole); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(small, "dlo.db")
	if _, err := store.PutBack(t.Context(), whole, to, false); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	left("dlo.db.lock")

	old, err := os.ReadFile(storetest.FileOf(t, 31))
	if err == nil {
		err = os.WriteFile(to, old, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), to, store.Options{}); !store.IsFull(err) {
		t.Error(err)
	}
	if b, err := openCopy(t, to).Check(t.Context(), false); err != nil || b.Schema != 31 {
		t.Errorf("schema %d: %v", b.Schema, err)
	}
	if part, err := filepath.Glob(to + ".before-schema-*"); err != nil || len(part) > 0 {
		t.Error(part, err)
	}
}

// TestARestoredStoreHasItsOwner checks that a dlo that is not root can open a store that root put
// in its place: the store has the owner of the old one, or of the folder if there was none.
func TestARestoredStoreHasItsOwner(t *testing.T) {
	t.Parallel()
	folder := storetest.Disk(t, "20m") // which needs root
	const somebody = 4711
	if err := os.Chown(folder, somebody, somebody); err != nil {
		t.Fatal(err)
	}
	s, _ := open(t)
	from, to := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(folder, "dlo.db")
	if err := store.Copy(t.Context(), s.Path(), from); err != nil {
		t.Fatal(err)
	}
	owner := func(path string) uint32 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Uid
	}
	for _, replace := range []bool{false, true} {
		if _, err := store.PutBack(t.Context(), from, to, replace); err != nil {
			t.Fatal(err)
		}
		if owner(to) != somebody || owner(to+".lock") != somebody {
			t.Errorf("replaced %t: the store belongs to %d, its lock to %d", replace, owner(to), owner(to+".lock"))
		}
	}
}
