//go:build linux || darwin

package store

import (
	"io"
	"os"
	"syscall"
)

// lockByte is the offset of the byte in the store file that dlo locks. SQLite locks the 512 bytes
// from 1 GiB on with fcntl (os_unix.c: PENDING_BYTE, RESERVED_BYTE, SHARED_FIRST), so SQLite does
// not use this byte. The file may be shorter than this offset.
const lockByte = 1<<30 - 1

// lockInode locks an open file, under all names of the file, until f is closed. The lock belongs to
// the open file description, not to the process. SQLite therefore cannot drop the lock when it
// opens and closes the file. dlo does not use flock here, because flock would conflict with
// SQLite's own locks in two cases: on macOS, where flock and SQLite's locks are the same kind of
// lock, and on NFS, where flock locks all bytes. The errors EAGAIN and EACCES mean that another
// process has the lock.
func lockInode(f *os.File) error { return setLock(f, syscall.F_WRLCK) }

func unlockInode(f *os.File) error { return setLock(f, syscall.F_UNLCK) }

func setLock(f *os.File, kind int16) error {
	return syscall.FcntlFlock(f.Fd(), ofdSetLock, &syscall.Flock_t{
		Type:   kind,
		Whence: io.SeekStart,
		Start:  lockByte,
		Len:    1,
	})
}
