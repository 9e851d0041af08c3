package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Space watches the room on the disk of the store. Below its bounds nothing is taken in, so that
// the letters wait in the broker; a reserve file is given up when a write finds the disk full all
// the same, so that changes to letters still commit.
type Space struct {
	dir, reserve string
	bytes        int64 // of free space below which nothing is taken in
	percent      int   // the same, of the disk
	size         int64 // of the reserve
	mu           sync.Mutex
	asked        time.Time
	room         error
	full         time.Time // when a write last failed for want of room
	refused      error     // why the last write failed that the file system did not take for another reason; nil once one succeeds
}

// ErrNoRoom says that the disk has too little room to take letters in.
var ErrNoRoom = errors.New("the disk is nearly full: letters wait in the broker")

// ErrReadOnly says that nothing can be written where the store is: many file systems turn read-only
// when their disk fails.
var ErrReadOnly = errors.New("the file system of the store is read-only: letters wait in the broker")

// NewSpace makes the reserve file beside the store, if the disk has room for it.
func NewSpace(path string, stopBelow int64, stopBelowPercent int, reserve int64) *Space {
	s := &Space{dir: filepath.Dir(path), reserve: path + ".reserve", bytes: stopBelow, percent: stopBelowPercent, size: reserve}
	s.Room()
	return s
}

const askEvery = time.Second

// readOnly is ST_RDONLY of Linux and MNT_RDONLY of the BSDs.
const readOnly = 1

// Room returns nil, or an error that wraps ErrNoRoom and says how much is free, or ErrReadOnly. It
// asks the file system at most once a second.
func (s *Space) Room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) < askEvery {
		return s.room
	}
	s.asked, s.room = time.Now(), nil
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		s.room = fmt.Errorf("free space of %s: %w", s.dir, err)
		return s.room
	}
	if int64(st.Flags)&readOnly != 0 {
		s.room = fmt.Errorf("%w; see what the kernel says of it (dmesg), and make it writable", ErrReadOnly)
		return s.room
	}
	free, total := int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize)
	if bound := max(s.bytes, total/100*int64(s.percent)); free < bound {
		s.room = fmt.Errorf("%w; %d MiB are free on %s and %d MiB must be (disk.stop_below, disk.stop_below_percent)", ErrNoRoom, free>>20, s.dir, bound>>20)
		return s.room
	}
	s.keep(free)
	return nil
}

// Free says in words how much room there is; "" when nobody can say.
func (s *Space) Free() string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f GiB free", float64(st.Bavail)*float64(st.Bsize)/(1<<30))
}

// keep makes the reserve file again when there is ample room.
func (s *Space) keep(free int64) {
	if info, err := os.Stat(s.reserve); s.size == 0 || err == nil && info.Size() == s.size || free < s.bytes+2*s.size {
		return
	}
	f, err := os.OpenFile(s.reserve, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return // without a reserve a full disk stops changes as well; nothing is lost by it
	}
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for left := s.size; left > 0; left -= int64(len(zeros)) {
		if _, err := f.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			os.Remove(s.reserve)
			return
		}
	}
}

// fullFor is how long a disk counts as full after a write has failed for want of room: letters that
// could not be stored are tried again within a minute.
const fullFor = 90 * time.Second

// Full says whether a write failed for want of room a moment ago, which it does without bounds too,
// or where something else fills the disk faster than it is asked.
func (s *Space) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.full) < fullFor
}

// Refused returns why the last write failed where that is not for want of room, nil after one that
// succeeded.
func (s *Space) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *Space) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// GiveUp deletes the reserve file after a write failed for want of room, and says whether there was
// one.
func (s *Space) GiveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.full = time.Time{}, time.Now()
	return !errors.Is(os.Remove(s.reserve), fs.ErrNotExist)
}

// pressed is called with what every write came to, nil after one that succeeded. Where the disk is
// full it gives up the reserve.
func (s *Store) pressed(err error) {
	switch {
	case s.space == nil:
	case err == nil || isRefused(err):
		s.space.refuse(err)
	case IsFull(err) && s.space.GiveUp():
		s.log.Warn("the disk is full: the reserve file was deleted so that changes to letters still commit")
	}
}

// isRefused says whether err means that the file system takes no writes.
func isRefused(err error) bool {
	switch code(err) & 0xff {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}
