// Package storetest is for tests. It provides values to store, and the file of an empty store. The
// store can have this version or an older one. The migrations run once per test binary, because
// with the race detector they take most of a second, and hundreds of tests open a store.
package storetest

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/migrations"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"
)

// File returns the path of an empty store in a temporary folder of the test.
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

// FileOf returns the path of an empty store of an older version in a temporary folder of the test.
// Upgrade tests start from it.
func FileOf(t testing.TB, version int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.db")
	if err := create(path, version); err != nil {
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
	if err := create(path, goose.MaxVersion); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func create(path string, version int64) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrations.ApplyTo(context.Background(), db, version, nil); err != nil {
		return err
	}
	return db.Close()
}
