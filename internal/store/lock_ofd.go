//go:build linux || darwin

package store

import (
	"io"
	"os"
	"syscall"
)

// lockByte is what is locked of the file. SQLite locks the 512 bytes from 1 GiB on, by fcntl
// (os_unix.c: PENDING_BYTE, RESERVED_BYTE, SHARED_FIRST), so this one is free for us. It need not
// be in the file.
const lockByte = 1<<30 - 1

// lockInode locks an open file, whatever its name, until f closes. The lock belongs to the open
// file description and not to the process, so that SQLite, which opens and closes the same file,
// cannot drop it. It is no flock: that meets the locks of SQLite on macOS, where both are one kind,
// and on NFS, where it locks all bytes. EAGAIN or EACCES: somebody has it.
func lockInode(f *os.File) error { return setLock(f, syscall.F_WRLCK) }

func unlockInode(f *os.File) error { return setLock(f, syscall.F_UNLCK) }

func setLock(f *os.File, kind int16) error {
	return syscall.FcntlFlock(f.Fd(), ofdSetLock, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: lockByte, Len: 1})
}
