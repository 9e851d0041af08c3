package payload

import (
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/descriptor"
)

func TestTheKindOfAnUnknownField(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"\x0a\x06abcdef":                       "string",
		"\x10\x05":                             "int64?",
		"\x1a\x04\x0a\x02hi":                   "message",
		"\x3a\x03\x00\xff\xfe":                 "bytes",
		"\x0d\x00\x00\x80\x3f":                 "fixed32?",
		"\x11\x00\x00\x00\x00\x00\x00\xf0\x3f": "fixed64?",
		"\x1a\x00":                             "empty",
	} {
		tree := &wireTree{}
		if !tree.read([]byte(body), maxWireFields) || tree.nodes[0].guessKind(false) != want {
			t.Errorf("%q is not said to be %s", body, want)
		}
		if tree.nodes[0].guessKind(true) != wireName(protowire.Type(tree.nodes[0].wire)) {
			t.Errorf("%q: the kind of a masked field is shown", body)
		}
	}
}

func TestConflictsBetweenSets(t *testing.T) {
	t.Parallel()
	r := descriptor.NewRegistry()
	add := func(name, fields string) {
		t.Helper()
		if _, err := r.AddSource(name, fstest.MapFS{
			"a.proto": {Data: []byte(`syntax = "proto3"; package a; message A { ` + fields + ` }`)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	add("one", "string a = 1;")
	add("same", "string a = 1;")
	if got := r.Conflicts(); len(got) != 0 {
		t.Errorf("conflicts of equal sets: %v", got)
	}
	before := r.Changes()
	add("other", "int32 a = 1;")
	if r.Changes() == before {
		t.Error("the change is not counted")
	}
	got := r.Conflicts()
	if len(got["other"]) != 2 || len(got["one"]) != 1 || got["one"][0] != "other" || len(got["same"]) != 1 {
		t.Errorf("%v", got)
	}
	r.Remove("other")
	if got := r.Conflicts(); len(got) != 0 {
		t.Errorf("conflicts with a set that is gone: %v", got)
	}
}
