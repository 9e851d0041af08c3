package payloadtest

import (
	archive "archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func Nested(inner []byte, tag byte, depth int) []byte {
	// Each round of the loop puts one more message around the messages in the buffer. Therefore,
	// the buffer is filled from its end.
	buf := make([]byte, len(inner)+depth*12)
	at := len(buf) - len(inner)
	copy(buf[at:], inner)
	for range depth {
		size := protowire.AppendVarint(nil, uint64(len(buf)-at))
		at -= len(size)
		copy(buf[at:], size)
		at--
		buf[at] = tag
		if tag >= 0x80 { // the tag of field 20 has two bytes
			buf[at] = 0x01
			at--
			buf[at] = tag
		}
	}
	return buf[at:]
}

// LengthPrefixed returns a length-delimited field with the given number. For example, these fields
// of acme.notify.v1.Kinds are length-delimited: numbers (9), tags (10), detail (14), extra (17),
// people (19), child (20), children (23) and any_value (25).
func LengthPrefixed(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

func Gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var w bytes.Buffer
	z := gzip.NewWriter(&w)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// Zipped returns a zip file. The parameter "files" holds the contents by name. A name with the
// prefix "->" is a link.
func Zipped(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := archive.NewWriter(&b)
	for _, n := range slices.Sorted(maps.Keys(files)) {
		h := &archive.FileHeader{Name: strings.TrimPrefix(n, "->"), Method: archive.Deflate}
		if h.Name != n {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		f, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write(files[n])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
