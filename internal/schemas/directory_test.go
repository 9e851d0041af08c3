package schemas_test

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/schemas"
)

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write(content)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.proto", source(`message A { string a = 1; }`))
	write(t, dir, "z.zip", zipped(t, "z.proto", source(`message Z {}`)))
	h := open(t, schemas.Options{Directory: dir})
	ctx := context.Background()
	h.want("protos: A; z.zip/protos: Z")
	write(t, dir, "a.proto", source(`message A { string a = 1; int32 b = 2; }`))
	h.Refresh(ctx)
	if sets := h.Registry().Sets(); len(sets) != 3 {
		t.Errorf("the old version is not kept: %+v", sets)
	}
	// Now one file is only half written, another one is damaged, and a third one has never been
	// valid. The sets that were read before must stay in use.
	version := h.Registry().Sets()[0].Version
	write(t, dir, "a.proto", source(`message A { string a = 1; int32`))
	write(t, dir, "z.zip", []byte("PK\x03\x04half"))
	write(t, dir, "bad.binpb", []byte("\xff"))
	h.Refresh(ctx)
	h.want("protos: A; z.zip/protos: Z")
	if h.Registry().Sets()[0].Version != version {
		t.Error("half a file makes a version")
	}
	problems := strings.Join(h.problems(), "\n")
	for _, want := range []string{"a.proto: line 2", "z.zip: ", "bad.binpb: this is not a descriptor set"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is missing in\n%s", want, problems)
		}
	}
	h.restart() // after a restart, the stored version must be loaded and must stay
	h.want("protos: A; z.zip/protos: Z")
	write(t, dir, "a.proto", source(`message A { string a = 1; }`))
	if err := os.Remove(filepath.Join(dir, "z.zip")); err != nil {
		t.Fatal(err)
	}
	h.Refresh(ctx)
	h.want("protos: A; z.zip/protos: Z") // no set may be removed while a file is not valid
	if err := os.Remove(filepath.Join(dir, "bad.binpb")); err != nil {
		t.Fatal(err)
	}
	h.Refresh(ctx)
	h.want("protos: A")
	if p := h.problems(); p != nil {
		t.Errorf("%q", p)
	}
	if got := h.audit(); !slices.Equal(got, []string{
		"schema removed by dlo", "schema loaded by dlo", "schema loaded by dlo", "schema loaded by dlo",
		"schema loaded by dlo",
	}) {
		t.Errorf("%q", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	h.Refresh(ctx)
	h.want("protos: A")
	if p := h.problems(); len(p) != 1 || !strings.Contains(p[0], "is gone") {
		t.Errorf("%q", p)
	}
	h.restart()
	h.want("protos: A")
	h.o.Directory = ""
	h.restart()
	h.want("")
}

func TestADirectoryAndAnUploadOfOneName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, schemas.Options{Directory: dir})
	h.upload("protos", `message Uploaded {}`)
	write(t, dir, "a.proto", source(`message Found {}`))
	h.Refresh(t.Context())
	h.want("protos: Uploaded")
	if p := h.problems(); len(p) != 1 || !strings.Contains(p[0], "remove it, or rename the file") {
		t.Errorf("%q", p)
	}
	if _, err := h.Remove(t.Context(), deadletter.Local, "protos", false); err != nil {
		t.Fatal(err)
	}
	h.Refresh(t.Context())
	h.want("protos: Found")
}

// eventually waits until f returns true, for example because a background loop has read a file. If
// this takes too long, the test fails.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to that: " + what)
		}
	}
}

func TestRunWatchesTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, schemas.Options{Directory: dir})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	defer func() { cancel(); <-done }()
	write(t, dir, "deep/er/a.proto", source(`message A {}`))
	eventually(t, "a file is found", func() bool { return h.sets() == "protos: A" })
	write(t, dir, "deep/er/a.proto", source(`message B {}`)) // the size of the file stays the same
	eventually(t, "a file has changed", func() bool { return h.sets() == "protos: B" })
	if err := os.Remove(filepath.Join(dir, "deep/er/a.proto")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a file is deleted", func() bool { return h.sets() == "" })
}

// TestAnImportThatIsGoneHoldsTheSet checks that a version that lacks an import is not used while a
// version with this import is in use. The first version of a set may lack imports.
func TestAnImportThatIsGoneHoldsTheSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.proto", source(`import "b.proto"; import "options.proto"; message A { B b = 1; }`))
	write(t, dir, "b.proto", source(`message B {}`))
	h := open(t, schemas.Options{Directory: dir})
	h.want("protos: A B")
	if lacks := h.Registry().Sets()[0].Missing; len(h.problems()) > 0 || !slices.Equal(lacks, []string{"options.proto"}) {
		t.Errorf("the set lacks %q, problems %q", lacks, h.problems())
	}
	if err := os.Rename(filepath.Join(dir, "b.proto"), filepath.Join(dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	h.Refresh(t.Context())
	h.want("protos: A B")
	if problems := strings.Join(h.problems(), "\n"); !strings.Contains(problems, "protos: it imports b.proto, which is gone") {
		t.Error(problems)
	}
}
