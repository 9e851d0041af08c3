package payload

import (
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/descriptor"
)

func TestTheShapeOfAnUnknownBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, want string }{
		{
			"all kinds", "\x0a\x06abcdef\x10\x05\x1a\x04\x0a\x02hi\x3a\x03\x00\xff\xfe",
			"1: string, 2: int64?, 3: message, 7: bytes",
		},
		{"repeated", "\x0a\x03abc\x0a\x03def\x0a\x03ghi", "1: repeated string"},
		{"of two kinds", "\x0a\x03abc\x08\x01\x10\xd5\xf8\x02", "1: repeated bytes?, 2: int64?"},
		{
			"fixed and empty", "\x0d\x00\x00\x80\x3f\x11\x00\x00\x00\x00\x00\x00\xf0\x3f\x1a\x00",
			"1: fixed32?, 2: fixed64?, 3: empty",
		},
		{"no protobuf", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", ""},
		{"text", "hello there, this is text", ""},
	} {
		if got := (&Decoder{}).Decode([]byte(c.body), Hints{}, nil).Shape(); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
	masked := &Document{Kind: Binary, Masked: true, Body: []byte("\x0a\x06abcdef\x10\x05")}
	if got, want := masked.Shape(), "1: length-delimited, 2: varint"; got != want {
		t.Errorf("masked: %q, not %q", got, want)
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
