package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// copied returns an audit file with the audit log that it copies. The log has n acts.
func copied(t *testing.T, n *int64) *auditFile {
	t.Helper()
	return &auditFile{
		path: filepath.Join(t.TempDir(), "audit.jsonl"), log: slog.New(slog.DiscardHandler),
		mask: func(_, text string) (string, bool) { return strings.ReplaceAll(text, "secret", "***"), true },
		acts: func(_ context.Context, after int64, limit int) (list []deadletter.Act, err error) {
			for id := after + 1; id <= *n && len(list) < limit; id++ {
				list = append(list, deadletter.Act{
					ID:      id,
					Kind:    "discard",
					Actor:   "ana\n{",
					Address: "192.0.2.1",
					Done:    deadletter.UnknownAmount,
					Targets: []deadletter.Target{{Kind: deadletter.TargetGroup, Name: "G-1", Title: "a secret"}},
				})
			}
			return list, nil
		},
	}
}

// lines returns the ids of the acts in a file, and checks the other fields of each act.
func lines(t *testing.T, path string) (ids []int64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		var e deadletter.Act
		if err := api.Unmarshal(
			s.Bytes(), &e,
		); err != nil || e.Actor != "ana\n{" || e.Address != "192.0.2.1" || e.Done != deadletter.UnknownAmount ||
			e.Targets[0].Title != "a ***" {
			t.Fatalf("%v %s", err, s.Text())
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// TestTheAuditFileHasEachActOnce copies acts, rotates the file, restarts, and copies further acts.
// Each act must be copied once.
func TestTheAuditFileHasEachActOnce(t *testing.T) {
	t.Parallel()
	n := int64(1200)
	a := copied(t, &n)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	run := func() {
		t.Helper()
		a.last = 0
		if err := a.open(); err != nil {
			t.Fatal(err)
		}
		_ = a.run(stopped) // copies the acts that exist now, because the context is already done
	}
	run()
	if got := lines(t, a.path); len(got) != 1200 || got[0] != 1 || got[1199] != 1200 {
		t.Fatalf("%d lines", len(got))
	}
	if err := os.Rename(a.path, a.path+".1"); err != nil {
		t.Fatal(err)
	}
	n = 1203
	run()
	if got := fmt.Sprint(lines(t, a.path)); got != "[1201 1202 1203]" {
		t.Error(got)
	}
	run()
	if got := lines(t, a.path); len(got) != 3 {
		t.Errorf("a restart writes %d lines", len(got))
	}
	if info, err := os.Stat(a.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestAnAuditFileThatCannotBeWritten checks the error at the start. It also checks that acts wait
// until the file can be written.
func TestAnAuditFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	n := int64(2)
	a := copied(t, &n)
	if err := os.WriteFile(a.position(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.open(); err == nil || !strings.Contains(err.Error(), "delete this file") {
		t.Error(err)
	}
	good := a.path
	a.path = filepath.Join(filepath.Dir(good), "none", "audit.jsonl")
	if err := a.open(); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := a.copy(t.Context()); err == nil || a.last != 0 {
		t.Errorf("%d %v", a.last, err)
	}
	if err := os.Mkdir(filepath.Dir(a.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := a.copy(t.Context()); err != nil || len(lines(t, a.path)) != 2 {
		t.Error(err)
	}
}
