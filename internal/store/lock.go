package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrReplaced says that the path of the store leads to another file than the one that is open, or
// to none: what is written since is in a file that nobody finds again.
var ErrReplaced = errors.New("the file of the store was replaced or moved away")

// locks are what keeps a second dlo away from a store: a lock of the path, which an older dlo
// takes as well and which holds when the file is replaced under the name, and a lock of the file
// itself, which holds under each of its names. Both end with the process.
type locks struct {
	path *os.File // beside the store
	file *os.File // the store itself. While SQLite has it open, nothing else may close a descriptor of it
}

// lockPath takes the lock beside the store.
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

// lockFile takes the lock of the file itself, after making it, if need be, readable by its owner
// only. unguarded says why a system or a file system has no such lock; then the path alone is
// locked.
func (l *locks) lockFile(path string) (unguarded, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l.file = f
	switch err := lockInode(f); {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%w: it has the same file open under another name, for example a link or a mount of it", ErrLocked)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return err, nil
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w; the store needs a local file system", path, err)
	}
	return nil, nil
}

// release gives both locks up. SQLite has to have closed the file before: closing any descriptor of
// it drops the locks of SQLite. To close them is not enough: a process that is being started has
// them as well for a moment.
func (l *locks) release() error {
	var errs []error
	if l.file != nil {
		unlockInode(l.file) // where there is no such lock, there is nothing to do
		errs = append(errs, l.file.Close())
	}
	if l.path != nil {
		errs = append(errs, syscall.Flock(int(l.path.Fd()), syscall.LOCK_UN), l.path.Close())
	}
	return errors.Join(errs...)
}

// InPlace says whether the path of the store still leads to the file that is open; the error wraps
// ErrReplaced when it does not.
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
		return nil // that it cannot be looked at says nothing of it
	case !os.SameFile(mine, there):
		return fmt.Errorf("%w: %s is another file now", ErrReplaced, s.path)
	}
	return nil
}
