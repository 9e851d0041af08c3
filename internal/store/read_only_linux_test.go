package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/store"
)

// mountedDisk mounts an empty file system of a size such as 1m, until the end of the test.
func mountedDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestAFileSystemThatIsReadOnly checks that a read-only file system is detected without a write.
func TestAFileSystemThatIsReadOnly(t *testing.T) {
	t.Parallel()
	dir := mountedDisk(t, "1m")
	path := filepath.Join(dir, "dlo.db")
	if err := store.NewSpace(path, 0, 0, 0, 0).Room(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := store.NewSpace(path, 0, 0, 0, 0).Room(); !errors.Is(err, store.ErrReadOnly) {
		t.Error(err)
	}
}
