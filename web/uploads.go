package web

import (
	"sync"
	"time"
)

// uploads contains the files that people have uploaded for a preview and not used yet. The server
// keeps such a file, so that it uses exactly the file that was previewed. Alternatively, the form
// of the preview could contain the file and send it again. However, the file would have to be text
// in the form, and the request would be larger by a third.
type uploads struct {
	mu   sync.Mutex
	kept map[string]upload
}

// upload is an uploaded file whose changes were previewed.
type upload struct {
	by  string
	in  uploadIn
	set string
	was string // the version of the set with which the file was compared, or ""
	at  time.Time
}

const (
	uploadHeld  = 10 * time.Minute
	uploadsKept = 4         // the maximum number of files
	uploadBytes = maxUpload // the maximum total size of the files in bytes
)

// keep stores a file and returns its key. If there is no room, it first drops the oldest files.
func (u *uploads) keep(f upload) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kept == nil {
		u.kept = map[string]upload{}
	}
	f.at = time.Now()
	for len(u.kept) > 0 && (len(u.kept) >= uploadsKept || u.bytes()+len(f.in.file) > uploadBytes) {
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

// bytes returns the total size of all files in bytes. The caller holds the lock.
func (u *uploads) bytes() int {
	n := 0
	for _, k := range u.kept {
		n += len(k.in.file)
	}
	return n
}

// fileOf returns the file with the given key. The owner of a file is the person who uploaded it.
// Nobody else gets the file.
func (u *uploads) fileOf(key, owner string) (upload, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, ok := u.kept[key]
	return f, ok && f.by == owner
}

func (u *uploads) forget(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.kept, key)
}
