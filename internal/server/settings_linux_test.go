package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAMountedFileIsNotReplaced checks a configuration file that is mounted by itself, as in a
// container: dlo cannot rename another file over it, and says so. If it is mounted read-only, dlo
// says so before it saves.
func TestAMountedFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file needs root")
	}
	s, path := openFile(t)
	before, _ := os.ReadFile(path)
	outside := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(outside, before, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(outside, path, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("a file cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(path, syscall.MNT_DETACH) })
	_, _, err := s.ChangeSetting(t.Context(), ana, defaultDelays("1s"), digestOf(before))
	if !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "mounted by itself") {
		t.Errorf("saving: %v", err)
	}
	if acts := (&ledger{Server: s, t: t}).acts(); len(acts) != 0 {
		t.Errorf("the audit has %+v", acts)
	}
	if list, _ := filepath.Glob(filepath.Dir(path) + "/.dlo.yaml*"); list != nil {
		t.Errorf("%q is left", list)
	}
	if err := syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	seen, _, err := s.ChangeSetting(t.Context(), ana, defaultDelays("1s"), "")
	if err != nil || !strings.Contains(seen.Unsaved, "is not writable by dlo") {
		t.Errorf("%+v %v", seen, err)
	}
}
