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

// Space watches the free space on the store's disk. If the free space is below a limit, dlo
// receives nothing, so that letters wait in the broker. If a write nevertheless finds the disk
// full, Space deletes a reserve file. Changes to letters can then still be committed.
type Space struct {
	dir, reserve string
	bytes        int64 // minimum free space in bytes; with less, dlo receives nothing
	percent      int   // minimum free space in percent of the disk
	size         int64 // size of the reserve file in bytes
	coming       int64 // maximum size of the letters that may be on their way, in bytes
	mu           sync.Mutex
	refused      error     // error of the last failed write
	failed       time.Time // time of the last failed write
}

// ErrNoRoom means that the disk has too little free space to receive letters.
var ErrNoRoom = errors.New("the disk is nearly full: letters wait in the broker")

// ErrReadOnly means that the store's file system is read-only. Many file systems become read-only
// when their disk fails.
var ErrReadOnly = errors.New("the file system of the store is read-only: letters wait in the broker")

// NewSpace returns a Space for the store at a path. It creates the reserve file beside the store if
// the disk has enough free space. The limits are in bytes and in percent of the disk. The parameter
// "reserve" is the size of the reserve file in bytes. The parameter "coming" is the maximum size of
// the letters that may arrive between a call of Room and the next one.
func NewSpace(path string, stopBelow int64, stopBelowPercent int, reserve, coming int64) *Space {
	s := &Space{
		dir: filepath.Dir(path), reserve: path + ".reserve", bytes: stopBelow, percent: stopBelowPercent, size: reserve,
		coming: coming,
	}
	s.Room()
	return s
}

// Replace puts other limits into use. The parameters are as for NewSpace.
func (s *Space) Replace(stopBelow int64, stopBelowPercent int, reserve, coming int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes, s.percent, s.coming = stopBelow, stopBelowPercent, coming; s.size != reserve {
		s.size = reserve
		os.Remove(s.reserve) // Room creates it in the new size
	}
}

// readOnly is the flag ST_RDONLY on Linux and MNT_RDONLY on the BSDs.
const readOnly = 1

// Room returns nil if there is enough free space. If there is too little, it returns an error that
// wraps ErrNoRoom and states how much is free. If the file system is read-only, the error wraps
// ErrReadOnly. For letters that are on their way, Room keeps more space free than the limits say,
// but at most twice as much.
func (s *Space) Room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", s.dir, err)
	}
	if int64(st.Flags)&readOnly != 0 {
		return fmt.Errorf("%w; see what the kernel says about it (dmesg), and make it writable", ErrReadOnly)
	}
	free, total := int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize)
	bound := max(s.bytes, total/100*int64(s.percent))
	if coming := min(s.coming, bound); free-coming < bound {
		return fmt.Errorf("%w; %d MiB are free on %s, and at least %d MiB must be free "+
			"(disk.stop_below, disk.stop_below_percent) and %d MiB more for letters that are on their way (ingest.bytes)",
			ErrNoRoom, free>>20, s.dir, bound>>20, coming>>20)
	}
	s.restoreReserve(free)
	return nil
}

// Free returns the free space as a text. It returns "" if the free space is unknown.
func (s *Space) Free() string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f GiB free", float64(st.Bavail)*float64(st.Bsize)/(1<<30))
}

// restoreReserve creates the reserve file again if there is ample free space.
func (s *Space) restoreReserve(free int64) {
	if info, err := os.Stat(s.reserve); s.size == 0 || err == nil && info.Size() == s.size || free < s.bytes+2*s.size {
		return
	}
	f, err := os.OpenFile(s.reserve, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return // without the reserve file, a full disk also stops changes, but nothing is lost
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

// refusedFor is the time for which Space remembers a failed write. It is longer than a minute,
// because letters that could not be stored are retried within a minute.
const refusedFor = 90 * time.Second

// Refused returns the error of a recent write that the file system rejected. It returns nil if
// there was none. The disk can be full although Room reports no problem. This happens if no limits
// are set, or if the disk fills faster than the free space is checked.
func (s *Space) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.failed) < refusedFor {
		return s.refused
	}
	return nil
}

// recordRefusal records that the file system rejected a write. If the disk is full, it also
// deletes the reserve file. It reports whether there was a reserve file to delete.
func (s *Space) recordRefusal(err error) (gaveUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.failed = err, time.Now()
	if !IsFull(err) {
		return false
	}
	return !errors.Is(os.Remove(s.reserve), fs.ErrNotExist)
}

// noteWriteError receives the error of every failed write, and frees the reserve space if the disk
// is full.
func (s *Store) noteWriteError(err error) {
	if isRefused(err) && s.space != nil && s.space.recordRefusal(err) {
		s.log.Warn("the disk is full: the reserve file was deleted so that changes to letters still commit")
	}
}
