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
	refused      error     // of the write that failed last
	failed       time.Time // when that was
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
		s.room = fmt.Errorf("%w; see what the kernel says about it (dmesg), and make it writable", ErrReadOnly)
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

// refusedFor is how long a write that failed counts: letters that could not be stored are tried
// again within a minute.
const refusedFor = 90 * time.Second

// Refused returns why the file system did not take a write a moment ago, nil where it did. A disk
// is full without bounds too, or where something else fills it faster than it is asked.
func (s *Space) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.failed) < refusedFor {
		return s.refused
	}
	return nil
}

// refuse notes that the file system did not take a write. Where the disk is full it deletes the
// reserve file, and says whether there was one.
func (s *Space) refuse(err error) (gaveUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.failed = err, time.Now()
	if !IsFull(err) {
		return false
	}
	s.asked = time.Time{}
	return !errors.Is(os.Remove(s.reserve), fs.ErrNotExist)
}

// pressed is called with every error of a write.
func (s *Store) pressed(err error) {
	if isRefused(err) && s.space != nil && s.space.refuse(err) {
		s.log.Warn("the disk is full: the reserve file was deleted so that changes to letters still commit")
	}
}
