// Package storetest gives tests the file of an empty store, and values to put into it. The steps of its schema run once for a test binary: under the race detector
// they take most of a second, and hundreds of tests open a store.
package storetest

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/migrations"
	_ "modernc.org/sqlite"
)

// File returns the path of an empty store in a folder of the test.
func File(t testing.TB) string {
	t.Helper()
	content, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dlo.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var empty = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "dlo-storetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "dlo.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := migrations.Apply(context.Background(), db); err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})
