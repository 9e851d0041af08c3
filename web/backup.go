package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Backups makes backups of the store.
type Backups interface {
	// TakeBackup makes a backup that is gone when it is closed.
	TakeBackup(ctx context.Context, whole bool) (io.ReadCloser, deadletter.Backup, error)
	// NewestBackup returns the newest scheduled backup; nil = there is none.
	NewestBackup() *deadletter.Backup
}

type backupIn struct {
	Full string `query:"full" enum:"0,1"`
}

// takeBackup returns a copy of the whole store, as an SQLite file. It is made and checked before
// the first byte is sent; with full=1, all its letters are checked. The header Dlo-Backup has its
// manifest, as JSON. It contains everything that the store has, masked values as well, so it needs
// the right to reveal, and is recorded in the audit.
func (w *Web) takeBackup(rw http.ResponseWriter, r *http.Request) {
	form, err := parameters(r, "full")
	by := principal(r.Context())
	if err == nil {
		err = deadletter.Allow(by, deadletter.VerbReveal, deadletter.Origin{})
	}
	if full := form.Get("full"); err == nil && full != "" && full != "0" && full != "1" {
		err = invalid("full is 0 or 1")
	}
	var copied io.ReadCloser
	var made deadletter.Backup
	if err == nil {
		http.NewResponseController(rw).SetWriteDeadline(time.Time{}) // a large store takes minutes
		copied, made, err = w.Backups.TakeBackup(r.Context(), form.Get("full") == "1")
	}
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	defer copied.Close()
	if err := w.Store.Record(r.Context(), deadletter.Once(
		deadletter.ActBackup, by.Name, fmt.Sprintf("%d letters, SHA-256 %s", made.Total(), made.SHA256),
		deadletter.Target{Kind: deadletter.TargetStore},
	)); err != nil {
		w.fail(rw, r, err)
		return
	}
	manifest, err := json.Marshal(made)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	rw.Header().Set(api.BackupHeader, string(manifest))
	rw.Header().Set("Content-Length", strconv.FormatInt(made.Bytes, 10))
	if _, err := io.Copy(startStream(rw, "application/vnd.sqlite3", made.File), copied); err != nil {
		w.abort(r, err)
	}
}
