package store_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/store"
)

// TestOneFileIsOneStoreUnderEveryName checks that an open store cannot be opened again under any
// name of its file. The attempt must not damage the store.
func TestOneFileIsOneStoreUnderEveryName(t *testing.T) {
	t.Parallel()
	for name, alias := range map[string]func(t *testing.T, path string) string{
		"a link to the file": func(t *testing.T, path string) string {
			return linked(t, os.Symlink, path, filepath.Join(filepath.Dir(path), "alias.db"))
		},
		"a link from elsewhere": func(t *testing.T, path string) string {
			return linked(t, os.Symlink, path, filepath.Join(t.TempDir(), "dlo.db"))
		},
		"a link to the folder": func(t *testing.T, path string) string {
			return filepath.Join(
				linked(t, os.Symlink, filepath.Dir(path), filepath.Join(t.TempDir(), "folder")), filepath.Base(path),
			)
		},
		"a hard link": func(t *testing.T, path string) string {
			return linked(t, os.Link, path, filepath.Join(filepath.Dir(path), "alias.db"))
		},
		"a mount of the file": mounted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			again, err := store.Open(context.Background(), alias(t, s.Path()), store.Options{})
			if again != nil {
				again.Close()
			}
			if !errors.Is(err, store.ErrLocked) {
				t.Errorf("under another name: %v", err)
			}
			receive(t, s, window(t, 1, "sms", 1))
			if n := count(t, s, ""); n != 1 {
				t.Errorf("%d letters", n)
			}
		})
	}
}

func linked(t *testing.T, link func(old, alias string) error, old, alias string) string {
	t.Helper()
	if err := link(old, alias); err != nil {
		t.Fatal(err)
	}
	return alias
}

// mounted mounts a file under a second name, as a container runtime does.
func mounted(t *testing.T, path string) string {
	t.Helper()
	alias := filepath.Join(t.TempDir(), "dlo.db")
	if err := os.WriteFile(alias, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bind(path, alias); errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("a mount needs root on Linux: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unbind(alias); err != nil {
			t.Error(err)
		}
	})
	return alias
}

// TestAnOlderDloIsNoticed covers a store that an older version of dlo has open. The current version
// must then refuse to open the store, although the older version locks only the file beside the
// store, and not the store itself.
func TestAnOlderDloIsNoticed(t *testing.T) {
	t.Parallel()
	path := filledStore(t)
	f, err := os.OpenFile(path+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if s, err := store.Open(context.Background(), path, store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("%v, %v", s, err)
	}
}

// TestTheLockOutlivesDescriptors checks that the store stays locked when a descriptor of its file
// is closed. It also checks that the lock does not disturb SQLite.
func TestTheLockOutlivesDescriptors(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for range 3 {
		f, err := os.Open(s.Path())
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	receive(t, s, window(t, 1, "sms", 1))
	alias := linked(t, os.Link, s.Path(), filepath.Join(t.TempDir(), "alias.db"))
	if again, err := store.Open(context.Background(), alias, store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestAFileThatIsReplacedIsNoticed(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"another file": func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"no file": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			if err := s.InPlace(); err != nil {
				t.Fatal(err)
			}
			if err := replace(s.Path()); err != nil {
				t.Fatal(err)
			}
			if err := s.InPlace(); !errors.Is(err, store.ErrReplaced) || !strings.Contains(err.Error(), s.Path()) {
				t.Errorf("%v", err)
			}
			if again, err := store.Open(
				context.Background(), s.Path(), store.Options{},
			); !errors.Is(err, store.ErrLocked) {
				t.Errorf("a second dlo on what stands there now: %v, %v", again, err)
			}
		})
	}
}

// TestALinkedStoreIsOpened checks that a store can be opened through a link.
func TestALinkedStoreIsOpened(t *testing.T) {
	t.Parallel()
	path := filledStore(t)
	alias := linked(t, os.Symlink, path, filepath.Join(filepath.Dir(path), "alias.db"))
	s, err := store.Open(context.Background(), alias, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := count(t, s, ""); n != 50 {
		t.Errorf("%d letters", n)
	}
	if err := s.InPlace(); err != nil {
		t.Error(err)
	}
}

// TestALockIsGivenUpWhileProcessesStart checks that the locks can be released while another process
// starts. For a moment, a starting process has a copy of every open descriptor, including the
// descriptors of the locks.
func TestALockIsGivenUpWhileProcessesStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				exec.Command("/bin/true").Run()
			}
		})
	}
	path := filepath.Join(t.TempDir(), "dlo.db")
	for range 40 {
		s, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Error(err)
			break
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	starting.Wait()
}
