package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrReplaced means that the path of the store leads to no file, or to a file other than the open
// one. Data that is still written to the open file can then not be found under the path.
var ErrReplaced = errors.New("the file of the store was replaced or moved away")

// locks prevent a second dlo from using a store. One lock is on the path. Older versions of dlo
// take this lock too, and it stays valid if another file replaces the store. The other lock is on
// the file itself, and it is valid under every name of the file. Both locks end with the process.
type locks struct {
	path *os.File // lock file beside the store
	file *os.File // the store itself; while SQLite has the file open, no other code may close a descriptor of it
}

// lockPath locks the path of a store by locking a file beside the store.
func (l *locks) lockPath(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w (lock file %s)", ErrLocked, path)
		}
		return fmt.Errorf("lock %s: %w; the store needs a local file system", path, err)
	}
	l.path = f
	return nil
}

// lockFile locks the file of a store itself. If the file does not exist, lockFile creates it,
// readable only by its owner. If the operating system or the file system does not support the lock,
// the result "unguarded" gives the reason, and only the path is locked.
func (l *locks) lockFile(path string) (unguarded, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l.file = f
	switch err := lockInode(f); {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf(
			"%w: it has the same file open under another name, for example a link or a mount of it", ErrLocked,
		)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return err, nil
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w; the store needs a local file system", path, err)
	}
	return nil, nil
}

// release releases both locks. It may be called only after SQLite has closed the store file,
// because SQLite loses its locks as soon as any descriptor of that file is closed. release also
// unlocks the lock files before it closes them, because a process that is just starting may have
// the same files open for a moment.
func (l *locks) release() error {
	var errs []error
	if l.file != nil {
		unlockInode(l.file) // does nothing if the lock is not supported
		errs = append(errs, l.file.Close())
	}
	if l.path != nil {
		errs = append(errs, syscall.Flock(int(l.path.Fd()), syscall.LOCK_UN), l.path.Close())
	}
	return errors.Join(errs...)
}

// InPlace reports whether the path of the store still leads to the open file. If it does not, the
// error wraps ErrReplaced.
func (s *Store) InPlace() error {
	mine, err := s.locks.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: there is no file %s any more", ErrReplaced, s.path)
	case err != nil:
		return nil // a failed stat does not prove that the file was replaced
	case !os.SameFile(mine, there):
		return fmt.Errorf("%w: %s is another file now", ErrReplaced, s.path)
	}
	return nil
}
