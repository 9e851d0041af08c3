package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/backup"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// source returns what makes backups of a store with some letters, and that store.
func source(t *testing.T, letters int) (backup.Source, *store.Store) {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.File(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := deadletter.Window{
		Session: 1, Number: 1, Broker: "main", VHost: "/", Inbox: "dlo.letters",
		Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000,
	}
	for i := range letters {
		w.Arrivals = append(w.Arrivals, deadletter.Arrival{
			Exchange: "dlo.dlx", RoutingKey: "sms", Tag: uint64(i + 1), Body: fmt.Appendf(nil, "letter %d", i),
		})
	}
	if _, err := s.Receive(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return backup.Source{
		Version: "1.2.3",
		Now:     time.Now,
		Copy:    func(ctx context.Context, to string) error { return store.Copy(ctx, s.Path(), to) },
		Open:    func(ctx context.Context, path string) (backup.Copy, error) { return store.OpenCopy(ctx, path) },
	}, s
}

func decodesAll(context.Context, backup.Copy) (func(*deadletter.Letter) bool, error) {
	return func(*deadletter.Letter) bool { return false }, nil
}

func names(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestABackupAndItsManifest(t *testing.T) {
	t.Parallel()
	src, s := source(t, 40)
	path := filepath.Join(t.TempDir(), "a.db")
	made, err := src.Make(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	if made.Version != "1.2.3" || made.File != "a.db" || made.Total() != 40 || made.Compared != 40 || made.Damaged != 0 ||
		made.Store != s.ShortName() || time.Since(made.At) > time.Minute {
		t.Errorf("%+v", made)
	}
	if read, manifest, err := src.Verify(t.Context(), path, false); err != nil || !manifest || read.SHA256 != made.SHA256 {
		t.Errorf("%+v %t %v", read, manifest, err)
	}
	if _, err := src.Make(t.Context(), path, false); !errors.Is(err, fs.ErrExist) {
		t.Error("a backup was overwritten:", err)
	}
	other := filepath.Join(filepath.Dir(path), "b.db")
	if err := os.Rename(path, other); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Make(t.Context(), path, false); !errors.Is(err, fs.ErrExist) {
		t.Error("a manifest was overwritten:", err)
	}
	if _, manifest, err := src.Verify(t.Context(), other, false); err != nil || manifest {
		t.Error("without a manifest:", manifest, err)
	}
}

// TestABackupThatFails checks that nothing is under the name of a backup that failed: because the
// disk is full, because the copy is damaged, or because the folder is missing.
func TestABackupThatFails(t *testing.T) {
	t.Parallel()
	src, _ := source(t, 3)
	folder := t.TempDir()
	path := filepath.Join(folder, "a.db")
	full, torn := src, src
	full.Copy = func(ctx context.Context, to string) error {
		return errors.Join(os.WriteFile(to, []byte("half"), 0o600), syscall.ENOSPC)
	}
	torn.Copy = func(ctx context.Context, to string) error {
		return errors.Join(src.Copy(ctx, to), os.Truncate(to, 100_000))
	}
	for name, is := range map[string]struct {
		backup.Source
		want error
	}{"a full disk": {full, syscall.ENOSPC}, "a torn copy": {torn, store.ErrDamaged}} {
		if _, err := is.Make(t.Context(), path, false); !errors.Is(err, is.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if left := names(t, folder); len(left) > 0 {
			t.Errorf("%s: %v", name, left)
		}
	}
	if _, err := src.Make(t.Context(), filepath.Join(folder, "missing", "a.db"), false); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	// what a killed backup leaves is no obstacle
	if err := os.WriteFile(path+".part", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Make(t.Context(), path, false); err != nil {
		t.Error(err)
	}
}

// TestAManifestThatDoesNotFit checks backups that are not what their manifests say.
func TestAManifestThatDoesNotFit(t *testing.T) {
	t.Parallel()
	src, _ := source(t, 3)
	more, _ := source(t, 4)
	folder := t.TempDir()
	path, other := filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db")
	made, err := src.Make(t.Context(), path, false)
	if err == nil {
		_, err = more.Make(t.Context(), other, false)
	}
	if err == nil {
		err = os.Rename(other, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := src.Verify(t.Context(), path, false); !errors.Is(err, deadletter.ErrInvalid) ||
		!strings.Contains(err.Error(), made.SHA256) {
		t.Error(err)
	}
	r, err := src.Rehearse(t.Context(), path, decodesAll)
	if err != nil || !strings.Contains(r.Problem, "not the file that its manifest describes") {
		t.Errorf("%+v %v", r, err)
	}
	if err := os.WriteFile(path+".json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := src.Verify(t.Context(), path, false); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
}

// TestABackupArrives checks backups that are read from a connection which may break.
func TestABackupArrives(t *testing.T) {
	t.Parallel()
	src, _ := source(t, 3)
	path := filepath.Join(t.TempDir(), "a.db")
	made, err := src.Make(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	to := filepath.Join(folder, "b.db")
	changed := bytes.Clone(content)
	changed[len(changed)/2] ^= 1
	for name, bad := range map[string][]byte{"cut off": content[:len(content)-1], "changed": changed, "nothing": nil} {
		if err := backup.Receive(bytes.NewReader(bad), made, to); err == nil || len(names(t, folder)) > 0 {
			t.Errorf("%s: %v; %v", name, err, names(t, folder))
		}
	}
	if err := backup.Receive(bytes.NewReader(content), made, to); err != nil {
		t.Fatal(err)
	}
	if read, manifest, err := src.Verify(t.Context(), to, true); err != nil || !manifest || read.File != "b.db" {
		t.Errorf("%+v %t %v", read, manifest, err)
	}
}

// TestASchedule lives some days with a schedule.
func TestASchedule(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	src, s := source(t, 30)
	stranger, _ := source(t, 1)
	now := time.Now().UTC().Truncate(time.Second)
	failing, undecodable := false, false
	o := backup.Options{
		Source: src, Store: s.ShortName(), Busy: func() bool { return false }, Log: slog.New(slog.DiscardHandler),
		Decode: func(context.Context, backup.Copy) (func(*deadletter.Letter) bool, error) {
			return func(*deadletter.Letter) bool { return undecodable }, nil
		},
	}
	o.Now = func() time.Time { return now }
	o.Copy = func(ctx context.Context, to string) error {
		if failing {
			return syscall.ENOSPC
		}
		return src.Copy(ctx, to)
	}
	settings := backup.Settings{
		Folder: filepath.Join(t.TempDir(), "backups"), Every: 24 * time.Hour, Keep: 2, Rehearse: 48 * time.Hour,
	}
	made := backup.New(settings, o)
	if made.Newest() != nil || len(made.Problems()) > 0 {
		t.Error(made.Newest(), made.Problems())
	}
	step := func() {
		t.Helper()
		if err := backup.Step(made, ctx); err != nil {
			t.Fatal(err)
		}
	}
	step()
	first := made.Newest()
	if first == nil || first.Total() != 30 || first.Rehearsed == nil || first.Rehearsed.Read != 30 ||
		first.Rehearsed.Errors != 0 {
		t.Fatalf("%+v", first)
	}
	// other files are none of its business
	foreign := filepath.Join(settings.Folder, "dlo-20200101T000000Z.db")
	if _, err := stranger.Make(ctx, foreign, false); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Make(ctx, filepath.Join(settings.Folder, "before-the-move.db"), false); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		now = now.Add(time.Hour)
		step()
	}
	if made.Newest().File != first.File {
		t.Errorf("a backup before its time: %+v", made.Newest())
	}
	for range 4 { // days
		now = now.Add(25 * time.Hour)
		step()
		if age := now.Sub(made.Newest().At); age != 0 || len(made.Problems()) > 0 {
			t.Errorf("%s: %v", age, made.Problems())
		}
	}
	var dbs []string
	for _, name := range names(t, settings.Folder) {
		if strings.HasSuffix(name, ".db") {
			dbs = append(dbs, name)
		}
	}
	if len(dbs) != 4 || !slices.ContainsFunc(dbs, func(name string) bool { return strings.HasPrefix(name, "dlo-"+s.ShortName()+"-") }) ||
		!slices.Contains(dbs, filepath.Base(foreign)) || !slices.Contains(dbs, "before-the-move.db") {
		t.Errorf("2 backups of its own, that of a person and that of another store: %v", dbs)
	}

	// what killed backups left is removed
	rest := filepath.Join(settings.Folder, "dlo-"+s.ShortName()+"-20261130T031200Z.db.part")
	if err := errors.Join(os.WriteFile(rest, nil, 0o600), os.WriteFile(rest+"-journal", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	step()
	if left, err := filepath.Glob(rest + "*"); err != nil || len(left) > 0 {
		t.Error(left, err)
	}

	// the disk is full for three days, and dlo is restarted meanwhile
	failing = true
	made = backup.New(settings, o)
	for range 3 {
		now = now.Add(24 * time.Hour)
		if err := backup.Step(made, ctx); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	}
	if p := made.Problems(); len(p) != 1 || p[0].Kind != deadletter.ProblemBackup || !strings.Contains(p[0].Text, settings.Folder) {
		t.Errorf("%+v", p)
	}
	failing, undecodable = false, true
	step()
	p := made.Problems()
	if len(p) != 1 || !strings.Contains(p[0].Text, "Of 30 letters") || !strings.Contains(p[0].Text, "30 are damaged") {
		t.Errorf("%+v", p)
	}
}

// TestStrangeFilesInTheFolder checks files that are no backups: they are neither read nor removed,
// and do not count as the newest.
func TestStrangeFilesInTheFolder(t *testing.T) {
	t.Parallel()
	src, _ := source(t, 3)
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	good, err := src.Make(t.Context(), at("good.db"), false)
	if err != nil {
		t.Fatal(err)
	}
	future := src
	future.Now = func() time.Time { return time.Now().AddDate(10, 0, 0) }
	if _, err := future.Make(t.Context(), at("future.db"), false); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		syscall.Mkfifo(at("fifo.db.json"), 0o600), os.WriteFile(at("other.json"), []byte("[1]"), 0o600),
		os.WriteFile(at("huge.json"), nil, 0o600), os.Truncate(at("huge.json"), 1<<40), os.Mkdir(at("dir.db.json"), 0o700),
		os.WriteFile(at("torn.db.json"), []byte(`{"sha256": "00", "bytes": 5}`), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := backup.List(folder, time.Now())
	if err != nil || len(list) != 1 || list[0].SHA256 != good.SHA256 {
		t.Errorf("%+v %v", list, err)
	}
	if path, err := backup.Find(folder); err != nil || path != at("good.db") {
		t.Error(path, err)
	}
	other, _ := source(t, 1)
	if _, err := other.Make(t.Context(), at("other.db"), false); err != nil {
		t.Fatal(err)
	}
	if path, err := backup.Find(folder); !errors.Is(err, deadletter.ErrInvalid) {
		t.Errorf("one of several stores is chosen: %s %v", path, err)
	}
	// what looks like the rest of a backup may be a link
	victim := at("victim")
	if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), os.Symlink(victim, at("new.db.part"))); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(at("good.db"))
	if err == nil {
		err = backup.Receive(bytes.NewReader(content), good, at("new.db"))
	}
	if text, read := os.ReadFile(victim); err != nil || read != nil || string(text) != "mine" {
		t.Errorf("%q %v %v", text, err, read)
	}
}
