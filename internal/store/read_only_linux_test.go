package store_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestAFileSystemThatIsReadOnly checks that a read-only file system is detected without a write.
func TestAFileSystemThatIsReadOnly(t *testing.T) {
	t.Parallel()
	dir := storetest.Disk(t, "1m")
	path := filepath.Join(dir, "dlo.db")
	if err := store.NewSpace(path, 0, 0, 0, 0).Room(); err != nil {
		t.Fatal(err)
	}
	storetest.ReadOnly(t, dir)
	if err := store.NewSpace(path, 0, 0, 0, 0).Room(); !errors.Is(err, store.ErrReadOnly) {
		t.Error(err)
	}
}
