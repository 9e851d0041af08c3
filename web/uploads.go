package web

import (
	"sync"
	"time"
)

// uploads keeps files on the server between the two steps of an upload. The form of the second step
// could contain the file instead, but the encoded file would be a third larger. A form also cannot
// choose a file again on its own. Because the file is kept, the server is certain to use the file
// that was previewed.
type uploads struct {
	mu   sync.Mutex
	kept map[string]upload
}

// upload is a file whose changes were previewed.
type upload struct {
	by, name, fileName string
	file               []byte
	was                string // the version of the set that the file was compared with; "" = none
	at                 time.Time
}

const (
	uploadHeld  = 10 * time.Minute
	uploadsKept = 4         // files,
	uploadBytes = maxUpload // maximum total size of the files, in bytes
)

// keep stores a file and returns its key. If there is no room, it drops the oldest files.
func (u *uploads) keep(f upload) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kept == nil {
		u.kept = map[string]upload{}
	}
	f.at = time.Now()
	for len(u.kept) > 0 && (len(u.kept) >= uploadsKept || u.bytes()+len(f.file) > uploadBytes) {
		oldest := ""
		for key, k := range u.kept {
			if oldest == "" || k.at.Before(u.kept[oldest].at) {
				oldest = key
			}
		}
		delete(u.kept, oldest)
	}
	key := newKey()
	u.kept[key] = f
	time.AfterFunc(uploadHeld, func() { u.forget(key) })
	return key
}

// bytes returns the total size of all files. The caller holds the lock.
func (u *uploads) bytes() int {
	n := 0
	for _, k := range u.kept {
		n += len(k.file)
	}
	return n
}

// fileOf returns the file with the given key if the person "by" uploaded it.
func (u *uploads) fileOf(key, by string) (upload, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, ok := u.kept[key]
	return f, ok && f.by == by
}

func (u *uploads) forget(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.kept, key)
}
