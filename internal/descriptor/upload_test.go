package descriptor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// bufImage turns a set into an image as `buf build -o image.binpb` writes it. It adds buf's
// extension field 8042 to each file. This field contains the commit of the file's module: {1:
// is_import, 3: {2: commit}}.
func bufImage(t testing.TB, set []byte, commit string) []byte {
	t.Helper()
	var out []byte
	for b := set; len(b) > 0; {
		_, _, n := protowire.ConsumeTag(b)
		file, m := protowire.ConsumeBytes(b[n:])
		ext := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
		ext = append(ext, payloadtest.LengthPrefixed(3, payloadtest.LengthPrefixed(2, []byte(commit)))...)
		out = append(
			out,
			payloadtest.LengthPrefixed(1, append(bytes.Clone(file), payloadtest.LengthPrefixed(bufField, ext)...))...,
		)
		b = b[n+m:]
	}
	return out
}

func TestReadUpload(t *testing.T) {
	t.Parallel()
	set := descriptorSet(t, true)
	plain, err := ReadSet(set)
	if err != nil {
		t.Fatal(err)
	}
	proto := []byte(
		`syntax = "proto3"; package p; import "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; }`,
	)
	other := []byte(
		`syntax = "proto3"; package q; import "google/protobuf/any.proto"; message N { google.protobuf.Any a = 1; }`,
	)
	fields := string(bytes.Repeat([]byte("x"), 10))
	acme := strings.Join(wantTypes, " ")
	for _, tt := range []struct {
		name, file string
		content    []byte
		want       string // the types, or "!" and a part of the error
	}{
		{"a descriptor set", "set.binpb", set, acme},
		{"a descriptor set without a name", "", set, acme},
		{"an image of buf", "image.binpb", bufImage(t, set, "one"), acme},
		{"an image of buf in gzip", "image.binpb.gz", payloadtest.Gzipped(t, bufImage(t, set, "two")), acme},
		{"a .proto file", `C:\protos\m.proto`, proto, "p.M"},
		{"a .proto file without a name", "", proto, "p.M"},
		{
			"a zip file", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"dir/m.proto": proto,
				"dir/n.proto": []byte(`syntax = "proto3"; import "dir/m.proto"; message X { p.M m = 1; }`),
				"README.md":   {1},
			}),
			"X p.M",
		},
		{
			"a zip file of sets and sources", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{"a.binpb": set, "m.proto": other}), acme + " q.N",
		},
		{
			"a zip file of sets", "x",
			payloadtest.Zipped(t, map[string][]byte{"a.binpb": set, "b.binpb.gz": payloadtest.Gzipped(t, set)}), acme,
		},
		{"nothing", "x.binpb", nil, "!it is empty"},
		{"nothing in gzip", "x.binpb.gz", payloadtest.Gzipped(t, nil), "!it is empty"},
		{"half a gzip", "x.gz", payloadtest.Gzipped(t, set)[:100], "!gzip: it does not unpack"},
		{"another message", "x.bin", []byte("\x08\x01"), "!buf build -o set.binpb"},
		{"a picture", "x.png", []byte("\x89PNG\r\n\x1a\n\x00"), "!not a descriptor set, a .proto file"},
		{
			"an image of buf in JSON", "image.json", []byte(`{"file": [{"name": "a.proto"}]}`),
			"!line 1, column 1: syntax error: unexpected '{'; buf build -o set.binpb",
		},
		{"a text", "notes.txt", []byte("hello"), "!schema.proto: line 1"},
		{
			"a .proto file without its imports", "m.proto",
			[]byte(`syntax = "proto3"; import "other/gone.proto"; message M {}`), "M",
		},
		{
			"a .proto file that imports itself", "m.proto", []byte(`syntax = "proto3"; import "m.proto"; message M {}`),
			"!cycle",
		},
		{"edition 2024", "m.proto", []byte("edition = \"2024\";\nmessage X {}"), "!upload a descriptor set"},
		{"a damaged .proto file", "m.proto", []byte("syntax = \"proto3\";\nmessage X {"), "!m.proto: line 2, column"},
		{
			"an empty zip file", "x.zip", payloadtest.Zipped(t, map[string][]byte{"README.md": {1}}),
			"!neither a descriptor set",
		},
		{
			"a zip file with a bad file", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"a.binpb": set, "b.binpb": []byte(fields), "c.binpb": []byte(fields),
			}),
			"!b.binpb: this is not a descriptor set (and 1 mistake more)",
		},
		{
			"two versions in a zip file", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"a.proto": []byte(`message A {}`),
				"b.binpb": {0x0a, 0x0b, 0x0a, 0x07, 'a', '.', 'p', 'r', 'o', 't', 'o', 0x12, 0x00},
			}),
			"!twice, with different content; upload what does not belong together separately",
		},
		{
			"imports in a circle", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"a.proto": []byte(`import "b.proto"; message A {}`),
				"b.proto": []byte(`import "a.proto"; message B {}`),
			}),
			"!cycle",
		},
		{
			"one type twice", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"a.proto": []byte(`message A {}`), "b.proto": []byte(`message A {}`),
			}),
			"!A",
		},
	} {
		s, err := ReadUpload(t.Context(), tt.file, tt.content)
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || strings.Join(s.Types(), " ") != tt.want {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if strings.Contains(tt.name, "buf") && s.Version() != plain.Version() {
			t.Errorf("%s: what buf adds makes another version", tt.name)
		}
	}
}

// TestDescriptorBombs checks that dlo rejects input that is too large before it expands the input.
// For this, dlo must look at the sizes that the input claims, or at the number of its parts.
func TestDescriptorBombs(t *testing.T) {
	payloadtest.Unraced(t)
	many := func(n int, field func(i int) []byte) (b []byte) {
		for i := range n {
			b = append(b, field(i)...)
		}
		return b
	}
	file := func(content ...byte) []byte {
		return payloadtest.LengthPrefixed(1, append(payloadtest.LengthPrefixed(1, []byte("x.proto")), content...))
	}
	zeros := make([]byte, 70<<20)
	entries := make(map[string][]byte, MaxFiles+1)
	for i := range MaxFiles + 1 {
		entries[fmt.Sprintf("%d.proto", i)] = nil
	}
	// The directory of this zip file has a million entries, all for the same empty file.
	hollow := payloadtest.Zipped(t, map[string][]byte{"a.proto": nil})
	at := bytes.Index(hollow, zipEntry)
	end := bytes.Index(hollow, []byte("PK\x05\x06"))
	hollow = slices.Concat(hollow[:at], bytes.Repeat(hollow[at:end], 1_000_000), hollow[end:])
	comments := bytes.Repeat(
		append(payloadtest.LengthPrefixed(sourceInfoField, nil), payloadtest.LengthPrefixed(5, nil)...), 12_000_000,
	)
	for _, tt := range []struct {
		name, file string
		content    []byte
		large      bool
		want       string
	}{
		{"100,000 messages", "x.binpb", file(bytes.Repeat([]byte{0x22, 0x00}, 100_000)...), true, "50,000 types"},
		{"100,000 messages with names", "x.binpb", file(many(100_000, func(i int) []byte {
			return payloadtest.LengthPrefixed(4, payloadtest.LengthPrefixed(1, fmt.Appendf(nil, "M%d", i)))
		})...), true, "50,000 types"},
		{
			"100,000 messages in gzip", "x.binpb.gz",
			payloadtest.Gzipped(t, file(bytes.Repeat([]byte{0x22, 0x00}, 100_000)...)), true, "50,000 types",
		},
		{
			"100,000 messages as a source", "x.proto", bytes.Repeat([]byte("message M {}\n"), 100_000), true,
			"50,000 types",
		},
		{"10,001 files", "x.binpb", bytes.Repeat([]byte{0x0a, 0x00}, MaxFiles+1), true, "10,000 files"},
		{
			"20 million enum values", "x.binpb",
			file(payloadtest.LengthPrefixed(5, bytes.Repeat([]byte{0x12, 0x00}, 20_000_000))...), true,
			"2,000,000 fields",
		},
		{
			"20 million enum values in a zip file", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"x.binpb": file(payloadtest.LengthPrefixed(5, bytes.Repeat([]byte{0x12, 0x00}, 20_000_000))...),
			}),
			true, "2,000,000 fields",
		},
		{
			"12 million comments between enums", "x.binpb", payloadtest.LengthPrefixed(1, comments), true,
			"2,000,000 fields",
		},
		{
			"12 million comments between enums in gzip", "x.binpb.gz",
			payloadtest.Gzipped(t, payloadtest.LengthPrefixed(1, comments)), true, "2,000,000 fields",
		},
		{
			"types in types", "x.binpb",
			payloadtest.LengthPrefixed(1, payloadtest.LengthPrefixed(4, payloadtest.Nested(nil, 0x1a, 5000))), true,
			"nested deeper",
		},
		{"70 MiB", "x.binpb", zeros, true, "64 MiB"},
		{"gzip 1000:1", "x.binpb.gz", payloadtest.Gzipped(t, zeros), true, "it unpacks to more than 64 MiB"},
		{
			"gzip in gzip", "x.binpb.gz.gz", payloadtest.Gzipped(t, payloadtest.Gzipped(t, zeros)), false,
			"not a descriptor set",
		},
		{
			"zip 1000:1", "x.zip", payloadtest.Zipped(t, map[string][]byte{"a.binpb": zeros}), true,
			"it unpacks to more than 64 MiB",
		},
		{
			"zip 1000:1, under the cap", "x.zip", payloadtest.Zipped(t, map[string][]byte{"a.binpb": zeros[:60<<20]}),
			false, "not a descriptor set",
		},
		{
			"zip 1000:1 of a source", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{"a.proto": bytes.Repeat([]byte(" "), 60<<20)}), true,
			"16 MiB together",
		},
		{"10,001 files in a zip file", "x.zip", payloadtest.Zipped(t, entries), true, "10,000 files"},
		{"a million entries in a zip file", "x.zip", hollow, true, "10,000 files"},
		{
			"a zip file in a zip file", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{
				"inner.zip": payloadtest.Zipped(t, map[string][]byte{"a.binpb": zeros}),
			}),
			false, "not read",
		},
		{
			"a name above the archive", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{"../../etc/x.proto": []byte(`message X {}`)}), false,
			"leads elsewhere",
		},
		{
			"an absolute name", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{"/etc/x.proto": []byte(`message X {}`)}), false, "leads elsewhere",
		},
		{
			"a name of another system", "x.zip",
			payloadtest.Zipped(t, map[string][]byte{`..\x.proto`: []byte(`message X {}`)}), false, "leads elsewhere",
		},
		{
			"a link", "x.zip", payloadtest.Zipped(t, map[string][]byte{"->x.binpb": []byte("/etc/passwd")}), false,
			"not followed",
		},
		{"deep sources", "x.proto", bytes.Repeat([]byte("message A {"), 1_000_000), true, "nested deeper"},
		{
			"a file that imports itself", "x.binpb",
			payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
				Name:       proto.String("a.proto"),
				Dependency: []string{"a.proto"},
			}),
			false, "import",
		},
		{
			"imports in a circle", "x.binpb",
			payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
				Name:       proto.String("a.proto"),
				Dependency: []string{"b.proto"},
			},
				&descriptorpb.FileDescriptorProto{Name: proto.String("b.proto"), Dependency: []string{"a.proto"}}), false, "cycle",
		},
		{
			"one symbol twice", "x.binpb",
			payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
				Name:        proto.String("a.proto"),
				MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
			},
				&descriptorpb.FileDescriptorProto{Name: proto.String("b.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}}}), false, "M",
		},
	} {
		var err error
		used := payloadtest.Allocated(func() { _, err = ReadUpload(t.Context(), tt.file, tt.content) })
		if err == nil || errors.Is(err, ErrSchemaTooLarge) != tt.large || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if used > 128<<20 {
			t.Errorf("%s: allocated %s", tt.name, deadletter.Bytes(int(used)))
		}
	}
}

func TestADirectoryWithABombHoldsTheOthers(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"good.proto":     []byte(`syntax = "proto3"; message Good {}`),
		"bomb.zip":       payloadtest.Zipped(t, map[string][]byte{"a.binpb": make([]byte, 70<<20)}),
		"image.binpb.gz": payloadtest.Gzipped(t, bufImage(t, descriptorSet(t, true), "x")),
	} {
		if err := os.WriteFile(dir+"/"+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, errs := ReadDir(t.Context(), os.DirFS(dir))
	if len(found) != 2 || found[0].Name != "image.binpb.gz" || found[1].Name != "protos" || len(errs) != 1 ||
		!strings.HasPrefix(errs[0].Error(), "bomb.zip: ") {
		t.Errorf("%+v, %v", found, errs)
	}
}

func FuzzReadUpload(f *testing.F) {
	f.Add("x.binpb", descriptorSet(f, true))
	f.Add("x.binpb.gz", payloadtest.Gzipped(f, descriptorSet(f, false)))
	f.Add(
		"x.proto",
		[]byte(`syntax = "proto3"; package p; message M { string a = 1; map<string, M> b = 2; enum E { Z = 0; } }`),
	)
	f.Add(
		"x.proto",
		[]byte(
			`edition = "2023"; import "google/protobuf/any.proto"; message M { extensions 100 to max; } extend M { string a = 100; }`,
		),
	)
	f.Add("x.zip", payloadtest.Zipped(f, map[string][]byte{
		"a.proto": []byte(`import "b.proto"; message A { optional B b = 1; }`),
		"b.proto": []byte(`message B { optional group G = 1 { optional int32 n = 1; } }`),
	}))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		s, err := ReadUpload(t.Context(), name, b)
		if err != nil {
			if strings.Contains(err.Error(), "of its own") { // the parser crashed the process in which it runs
				t.Fatal(err)
			}
			return
		}
		content, err := s.Content()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadSet(content)
		if err != nil || again.Version() != s.Version() {
			t.Fatalf("what was kept cannot be read: %v", err)
		}
		r := NewRegistry()
		if c := r.Compare("x", s); len(c.Added) < len(s.Types()) {
			t.Fatalf("%d types, %d added", len(s.Types()), len(c.Added))
		}
		r.Add(deadletter.SchemaVersion{Name: "x"}, s)
		if c := r.Compare("x", again); c.Known != KnownCurrent || len(c.Changed)+len(c.Added)+len(c.Removed) > 0 {
			t.Fatalf("%+v", c)
		}
		for _, typ := range s.Types()[:min(3, len(s.Types()))] {
			if _, err := r.Source(typ); err != nil && strings.Contains(err.Error(), "internal error") {
				t.Fatalf("%s: %v", typ, err)
			}
		}
	})
}
