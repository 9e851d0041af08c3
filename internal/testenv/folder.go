package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folder contains all files that a node or a browser writes.
type folder struct {
	path string
	lock *os.File // locked while this process lives, which shows that the folder is in use
}

// newFolder creates a folder in the system's temporary directory. The parameter "kind" is a part of
// the folder's name. Before that, newFolder removes folders of the same kind that killed processes
// left there.
func newFolder(kind string) (*folder, error) {
	pattern := "dlo-test-" + kind + "-*"
	removeAbandoned(filepath.Join(os.TempDir(), pattern))
	path, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("make a folder for a %s: %w", kind, err)
	}
	f := &folder{path: path}
	if f.lock, err = os.Create(f.file("lock")); err == nil {
		err = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		f.remove()
		return nil, fmt.Errorf("lock the folder of a %s: %w", kind, err)
	}
	return f, nil
}

// file returns the path of a file in the folder.
func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// remove removes the folder and its content. A process that was just killed can still add a file,
// so remove tries again for a second. The next newFolder removes what is left after that. It is
// safe to call remove twice.
func (f *folder) remove() {
	for range 20 {
		if os.RemoveAll(f.path) == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = f.lock.Close()
}

// removeAbandoned removes folders that match the pattern and whose owner has ended. It keeps recent
// folders, because their owner may be about to lock them. An old folder without a lock file is the
// rest of a removed folder. While that folder was being removed, a process that was ending, such as
// a helper of Chromium, added a file to it.
func removeAbandoned(pattern string) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		lock, err := os.Open(filepath.Join(path, "lock"))
		if err != nil {
			if s, err := os.Stat(path); err == nil && isOld(s) {
				_ = os.RemoveAll(path)
			}
			continue
		}
		s, err := lock.Stat()
		if err == nil && isOld(s) && syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}

func isOld(s os.FileInfo) bool { return time.Since(s.ModTime()) > time.Minute }
