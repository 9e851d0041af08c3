package schemas_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
)

// house is a library with a real store.
type house struct {
	*schemas.Library
	t     *testing.T
	store *store.Store
	path  string
	o     schemas.Options
}

func open(t *testing.T, o schemas.Options) *house {
	t.Helper()
	h := &house{t: t, path: storetest.File(t), o: o}
	h.start()
	t.Cleanup(func() { h.store.Close() })
	return h
}

func (h *house) start() {
	h.t.Helper()
	var err error
	if h.store, err = store.Open(context.Background(), h.path, store.Options{}); err != nil {
		h.t.Fatal(err)
	}
	h.Library = schemas.New(h.store, h.o)
	if err := h.Load(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) restart() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.start()
}

// sets returns the current versions with their types, in the form "name: A B".
func (h *house) sets() string {
	var list []string
	for _, s := range h.Registry().Sets() {
		if s.Current {
			list = append(list, s.Name+": "+strings.Join(s.Types, " "))
		}
	}
	return strings.Join(list, "; ")
}

func (h *house) want(sets string) {
	h.t.Helper()
	if got := h.sets(); got != sets {
		h.t.Errorf("sets %q, want %q", got, sets)
	}
}

// audit returns the audit entries, newest first.
func (h *house) audit() (list []string) {
	h.t.Helper()
	entries, _, err := h.store.Audit(context.Background(), query.Query{}, "", 100)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Kind+" by "+e.Actor)
	}
	return list
}

// problems returns the problems with stored sets, the directory and the servers.
func (h *house) problems() []string {
	s := h.Status()
	for _, server := range s.Servers {
		if server.Problem != "" {
			s.Problems = append(s.Problems, server.Address+": "+server.Problem)
		}
	}
	return s.Problems
}

func source(text string) []byte { return []byte("syntax = \"proto3\";\n" + text) }

func (h *house) upload(name string, text string) (descriptor.Change, deadletter.SchemaEffect) {
	h.t.Helper()
	c, e, err := h.Upload(context.Background(), deadletter.Local, name, source(text), "x.proto", false)
	if err != nil {
		h.t.Fatal(err)
	}
	return c, e
}

// failing is a store that accepts no changes.
type failing struct{ *store.Store }

var errFull = errors.New("full")

func (failing) AddSchemaVersion(
	context.Context, deadletter.SchemaVersion, string, deadletter.Reread,
) (deadletter.SchemaVersion, error) {
	return deadletter.SchemaVersion{}, errFull
}

func (failing) RemoveSchema(context.Context, string, string, string, deadletter.Reread) error {
	return errFull
}

func TestNothingCountsThatIsNotKept(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	h.upload("a", `message A {}`)
	l := schemas.New(failing{h.store}, schemas.Options{})
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, _, err := l.Upload(
			t.Context(), deadletter.Local, name, source(`message B {}`), "b.proto", false,
		); !errors.Is(err, errFull) {
			t.Error(err)
		}
	}
	if _, err := l.Remove(t.Context(), deadletter.Local, "a", false); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if got := l.Registry().Types(); !slices.Equal(got, []string{"A"}) {
		t.Errorf("%q", got)
	}
}
