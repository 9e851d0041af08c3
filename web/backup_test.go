package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/backup"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
)

// backups makes backups of the store of a house.
type backups struct {
	h      *house
	newest *deadletter.Backup
}

func (b backups) NewestBackup() *deadletter.Backup { return b.newest }

func (b backups) TakeBackup(ctx context.Context, whole bool) (io.ReadCloser, deadletter.Backup, error) {
	to := filepath.Join(b.h.t.TempDir(), "dlo-20261130T031200Z.db")
	made, err := backup.Source{
		Now:  time.Now,
		Copy: func(ctx context.Context, to string) error { return store.Copy(ctx, b.h.file, to) },
		Open: func(ctx context.Context, path string) (backup.Copy, error) { return store.OpenCopy(ctx, path) },
	}.Make(ctx, to, whole)
	if err != nil {
		return nil, made, err
	}
	f, err := os.Open(to)
	return f, made, err
}

// TestABackupIsSent checks who may take a backup, that it arrives whole with its manifest, and that
// the audit says so.
func TestABackupIsSent(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{Name: "ana"}
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return who, nil }
	})
	h.receive("sms", 3, "text")
	post := func(query string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "http://dlo.example/api/v1/backup"+query, nil)
		rw := httptest.NewRecorder()
		h.ServeHTTP(rw, r)
		return rw
	}
	for _, grant := range []deadletter.Grant{
		{Role: deadletter.RoleEditor, Reveal: true, Purge: true},
		{Role: deadletter.RoleAdmin},
		{Role: deadletter.RoleAdmin, Reveal: true, Places: deadletter.Places{Queues: []string{"sms"}}},
	} {
		who.Grants = []deadletter.Grant{grant}
		if rw := post(""); rw.Code != http.StatusForbidden {
			t.Errorf("%+v: %d", grant, rw.Code)
		}
	}
	who.Grants = []deadletter.Grant{{Role: deadletter.RoleAdmin, Reveal: true}}
	if rw := post("?full=yes"); rw.Code != http.StatusBadRequest {
		t.Error(rw.Code, rw.Body)
	}
	rw := post("?full=1")
	var made deadletter.Backup
	if err := json.Unmarshal([]byte(rw.Header().Get(api.BackupHeader)), &made); err != nil || rw.Code != http.StatusOK {
		t.Fatal(rw.Code, rw.Header(), err)
	}
	to := filepath.Join(t.TempDir(), "got.db")
	if err := backup.Receive(rw.Body, made, to); err != nil || made.Total() != 3 {
		t.Errorf("%+v %v", made, err)
	}
	acts, err := h.Store.ActsAfter(t.Context(), 0, 100)
	if err != nil || len(acts) == 0 {
		t.Fatal(acts, err)
	}
	if last := acts[len(acts)-1]; last.Kind != deadletter.ActBackup || last.Actor != "ana" ||
		!strings.Contains(last.Detail, made.SHA256) {
		t.Errorf("%+v", last)
	}
}
