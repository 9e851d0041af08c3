package payload

import (
	archive "archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

var wantTypes = []string{
	"acme.notify.v1.Attachment", "acme.notify.v1.EmailAddress", "acme.notify.v1.EmailRequested", "acme.notify.v1.Kinds", "acme.notify.v1.TemplateRef",
	"acme.odd.Line2", "acme.odd.Order", "acme.odd.Order.Extra", "acme.odd.Order.Line", "acme.shop.v1.Cart", "acme.shop.v1.Order", "acme.shop.v1.Owner",
}

// descriptorSet serialises the files of testdata/schemas; with those of google.protobuf or without.
func descriptorSet(t testing.TB, google bool) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	schemas().sets["acme"][0].types.files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if google || !strings.HasPrefix(f.Path(), "google/") {
			set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
		}
		return true
	})
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func set(t testing.TB, files ...*descriptorpb.FileDescriptorProto) []byte {
	t.Helper()
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func TestAddSet(t *testing.T) {
	t.Parallel()
	for _, google := range []bool{true, false} {
		r := NewRegistry()
		got, err := r.AddSet("acme", descriptorSet(t, google))
		if err != nil || !reflect.DeepEqual(got, wantTypes) || !reflect.DeepEqual(r.Types(), wantTypes) {
			t.Errorf("with google/protobuf %v: %v, %v", google, got, err)
		}
		doc := (&Decoder{Types: r}).Decode(sample(t), Hints{Type: email}, nil)
		if n := at(t, doc, "created_at"); n.Kind != Timestamp {
			t.Errorf("with google/protobuf %v: created_at %+v", google, n)
		}
	}
	if got := schemas().Types(); !reflect.DeepEqual(got, wantTypes) {
		t.Errorf("from sources: %v", got)
	}
}

func TestAddSetRefuses(t *testing.T) {
	t.Parallel()
	name := func(s string) *string { return &s }
	big := make([]byte, maxSetBytes+1)
	manyFiles := bytes.Repeat([]byte{0x0a, 0x00}, maxSetFiles+1)
	manyTypes := lengthPrefixed(1, append(lengthPrefixed(1, []byte("x.proto")), bytes.Repeat([]byte{0x22, 0x00}, maxSetTypes+1)...))
	manyValues := lengthPrefixed(1, lengthPrefixed(5, bytes.Repeat([]byte{0x12, 0x00}, 20_000_000)))
	deep := nested(nil, 0x1a, 500)
	deep = lengthPrefixed(1, lengthPrefixed(4, deep))
	tests := []struct {
		name     string
		set      []byte
		tooLarge bool
		want     string
	}{
		{"empty", nil, false, "it is empty"},
		{"text", []byte("syntax = \"proto3\";"), false, "no descriptor set"},
		{"noise in a file", lengthPrefixed(1, []byte{0xff, 0xff}), false, "no descriptor set"},
		{"a message of another type", sample(t), false, ""},
		{"too many bytes", big, true, "above 64 MiB"},
		{"too many files", manyFiles, true, "more than 10,000 files"},
		{"too many types", manyTypes, true, "more than 50,000 types"},
		{"40 MB of empty enum values", manyValues, true, "more than 2,000,000 fields"},
		{"types in types", deep, true, "nested deeper"},
		{"no name", set(t, &descriptorpb.FileDescriptorProto{}), false, "path must be populated"},
		{"one name twice", set(t, &descriptorpb.FileDescriptorProto{Name: name("a.proto")}, &descriptorpb.FileDescriptorProto{Name: name("a.proto"), Package: name("b")}), false, "twice"},
		{"one type twice", set(t, &descriptorpb.FileDescriptorProto{Name: name("a.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: name("M")}}},
			&descriptorpb.FileDescriptorProto{Name: name("b.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: name("M")}}}), false, "M"},
		{"imports in a circle", set(t, &descriptorpb.FileDescriptorProto{Name: name("a.proto"), Dependency: []string{"b.proto"}},
			&descriptorpb.FileDescriptorProto{Name: name("b.proto"), Dependency: []string{"a.proto"}}), false, "cycle"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRegistry()
			_, err := r.AddSet("x", tt.set)
			if err == nil || errors.Is(err, ErrSchemaTooLarge) != tt.tooLarge || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if len(r.Types()) != 0 || len(r.Sets()) != 0 {
				t.Error("something was added")
			}
		})
	}
}

func TestDescriptorBombsAllocateLittle(t *testing.T) {
	bomb := lengthPrefixed(1, lengthPrefixed(5, bytes.Repeat([]byte{0x12, 0x00}, 20_000_000)))
	if got := allocated(func() { _, _ = NewRegistry().AddSet("x", bomb) }); got > 128<<20 {
		t.Errorf("allocated %s", bytesText(int(got)))
	}
}

func TestImportsThatAreMissingStayUnresolved(t *testing.T) {
	t.Parallel()
	s := func(s string) *string { return &s }
	msg := descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	str := descriptorpb.FieldDescriptorProto_TYPE_STRING
	n1, n2 := int32(1), int32(2)
	r := NewRegistry()
	_, err := r.AddSet("x", set(t, &descriptorpb.FileDescriptorProto{
		Name: s("a.proto"), Package: s("a"), Syntax: s("proto3"), Dependency: []string{"gone.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: s("M"), Field: []*descriptorpb.FieldDescriptorProto{
			{Name: s("gone"), Number: &n1, Type: &msg, TypeName: s(".gone.Type")}, {Name: s("name"), Number: &n2, Type: &str},
		}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	doc := (&Decoder{Types: r}).Decode([]byte("\x0a\x02\x08\x01\x12\x01n"), Hints{Type: "a.M"}, nil)
	if n := at(t, doc, "gone"); n.Note != "its type is missing in the descriptor set" || len(n.Children) != 1 || doc.UnknownFields != 1 {
		t.Errorf("got %+v, %s", n, doc.Problem)
	}
	if n := at(t, doc, "name"); n.Value != `"n"` {
		t.Errorf("got %+v", n)
	}
}

func TestVersionsAndSetsThatDisagree(t *testing.T) {
	t.Parallel()
	proto := func(fields string) fstest.MapFS {
		return fstest.MapFS{"m.proto": text(`syntax = "proto3"; package p; message M { ` + fields + ` }`)}
	}
	r := NewRegistry()
	add := func(name, fields string) {
		t.Helper()
		if _, err := r.AddSource(name, proto(fields)); err != nil {
			t.Fatal(err)
		}
	}
	add("one", "string a = 1;")
	add("one", "string a = 1; int32 b = 2;")
	add("one", "string a = 1; int32 b = 2;")
	if got := r.Sets(); len(got) != 2 || !got[0].Current || got[1].Current || got[0].Version == got[1].Version || len(got[0].Version) != 64 {
		t.Errorf("sets %+v", got)
	}
	dec := &Decoder{Types: r}
	newest := r.Sets()[0].Version[:8]
	doc := dec.Decode([]byte("\x0a\x01x\x10\x05"), Hints{Type: "M"}, nil)
	if doc.Set != "one "+newest || doc.UnknownFields != 0 || len(doc.Also) != 1 {
		t.Errorf("set %s, also %v", doc.Set, doc.Also)
	}
	add("two", "int32 a = 1; string c = 3;")
	// Only the definition in two knows field 3.
	doc = dec.Decode([]byte("\x08\x07\x1a\x01c"), Hints{Type: "p.M"}, nil)
	if !strings.HasPrefix(doc.Set, "two ") || doc.UnknownFields != 0 || len(doc.Also) != 2 {
		t.Errorf("set %s, also %v, unknown %d", doc.Set, doc.Also, doc.UnknownFields)
	}
	// An old content that comes again is the current one.
	add("one", "string a = 1;")
	if got := r.Sets(); len(got) != 3 || got[1].Version[:8] != newest {
		t.Errorf("sets %+v", got)
	}
}

func TestAddSource(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fs   fstest.MapFS
		want string // types, or part of the error behind "!"
	}{
		{"imports from the top", fstest.MapFS{"a/x.proto": text(`syntax = "proto3"; import "a/y.proto"; message X { Y y = 1; }`), "a/y.proto": text(`syntax = "proto3"; message Y {}`)}, "X Y"},
		{"imports from a directory in it", fstest.MapFS{
			"src/main/proto/a/x.proto": text(`syntax = "proto3"; import "a/y.proto"; message X { Y y = 1; }`),
			"src/main/proto/a/y.proto": text(`syntax = "proto3"; message Y {}`), "src/main/proto/z.proto": text(`syntax = "proto3"; message Z {}`),
		}, "X Y Z"},
		{"well-known types", fstest.MapFS{"x.proto": text(`syntax = "proto3"; import "google/protobuf/any.proto"; message X { google.protobuf.Any a = 1; }`)}, "X"},
		{"two trees", fstest.MapFS{
			"p/x.proto": text(`import "y.proto"; message X { optional Y y = 1; }`), "p/y.proto": text(`message Y {}`),
			"q/x.proto": text(`import "y.proto"; message X { optional Y y = 1; }`), "q/y.proto": text(`message Y {}`),
		}, "!several directories (p, q)"},
		{"nothing", fstest.MapFS{"README": text("hello")}, "!no .proto file"},
		{"syntax error", fstest.MapFS{"x.proto": text("syntax = \"proto3\";\nmessage X {")}, "!x.proto: line 2, column"},
		{"missing import", fstest.MapFS{"x.proto": text(`syntax = "proto3"; import "gone.proto"; message X {}`)}, "!gone.proto"},
		{"edition 2024", fstest.MapFS{"x.proto": text(`edition = "2024"; message X {}`)}, "!upload a descriptor set"},
		{"import above the directory", fstest.MapFS{"x.proto": text(`syntax = "proto3"; import "../../etc/passwd"; message X {}`)}, "!passwd"},
		{"deep", fstest.MapFS{"x.proto": text(`syntax = "proto3"; ` + strings.Repeat("message A {", 100_000))}, "!nested deeper than 64 levels"},
		{"deep option", fstest.MapFS{"x.proto": text(`option (x) = ` + strings.Repeat("{a:", 100_000))}, "!nested deeper than 64 levels"},
		{"many types", fstest.MapFS{"x.proto": text(strings.Repeat("message A {}\n", 50_001))}, "!more than 50,000 types"},
		{"many statements", fstest.MapFS{"x.proto": text(strings.Repeat(";", 500_001))}, "!more than 500,000 statements"},
		{"large", fstest.MapFS{"x.proto": text(strings.Repeat(" ", maxSourceBytes+1))}, "!too large"},
		{"link", fstest.MapFS{"x.proto": {Mode: os.ModeSymlink, Data: []byte("gone.proto")}}, "!x.proto"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRegistry()
			got, err := r.AddSource("s", tt.fs)
			if want, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
					t.Errorf("got %v, error %v", got, err)
				}
			} else if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}

func TestLoadDir(t *testing.T) {
	t.Parallel()
	var bundle bytes.Buffer
	z := archive.NewWriter(&bundle)
	for name, body := range map[string]string{"zipped/z.proto": `syntax = "proto3"; message Zipped {}`, "bad.pb": "nothing", "inner.zip": "x"} {
		f, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte(body))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{
		"sets/acme.binpb":       {Data: descriptorSet(t, true)},
		"broken.desc":           text("nothing"),
		"good.proto":            text(`syntax = "proto3"; message Good {}`),
		"bad.proto":             text(`syntax = "proto3"; message Bad { nope }`),
		"on-bad.proto":          text(`syntax = "proto3"; import "bad.proto"; message OnBad {}`),
		"orphan.proto":          text(`syntax = "proto3"; import "gone.proto"; message Orphan {}`),
		"new.proto":             text(`edition = "2024"; message New {}`),
		"tree/a/x.proto":        text(`syntax = "proto3"; import "a/y.proto"; message TreeX { TreeY y = 1; }`),
		"tree/a/y.proto":        text(`syntax = "proto3"; message TreeY {}`),
		"bundle.zip":            {Data: bundle.Bytes()},
		"README.md":             text("read me"),
		"..data/good.proto":     text(`syntax = "proto3"; message Hidden {}`),
		".git/objects/x.binpb":  text("nothing"),
		"empty.pb":              text(""),
		"not-a-zip.zip":         text("PK"),
		"deep.proto":            text(strings.Repeat("{", 1000)),
		"dir.proto/inner.proto": text(`syntax = "proto3"; message Inner {}`),
	}
	r := NewRegistry()
	err := r.LoadDir(fsys)
	want := append([]string{"Good", "Inner", "TreeX", "TreeY", "Zipped"}, wantTypes...)
	if got := r.Types(); !reflect.DeepEqual(got, want) {
		t.Errorf("types %v", got)
	}
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, file := range []string{"broken.desc", "bad.proto", "on-bad.proto", "orphan.proto", "new.proto", "bundle.zip/bad.pb", "bundle.zip/inner.zip", "empty.pb", "not-a-zip.zip", "deep.proto"} {
		n := 0
		for _, l := range lines {
			if strings.HasPrefix(l, file+": ") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s has %d lines in\n%v", file, n, err)
		}
	}
	if len(lines) != 10 {
		t.Errorf("%d errors:\n%v", len(lines), err)
	}
	var names []string
	for _, s := range r.Sets() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "bundle.zip/protos protos sets/acme.binpb tree" {
		t.Errorf("sets %s", got)
	}
	if err := NewRegistry().LoadDir(os.DirFS("testdata/gone")); err == nil {
		t.Error("a directory that is not there is no error")
	}
	if err := NewRegistry().LoadDir(os.DirFS("testdata/schemas")); err != nil {
		t.Errorf("testdata/schemas: %v", err)
	}
}

func TestRegistryServesReadersWhileSetsAreAdded(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	if _, err := r.AddSet("acme", descriptorSet(t, true)); err != nil {
		t.Fatal(err)
	}
	body := sample(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				if g == 0 {
					src := fmt.Sprintf(`syntax = "proto3"; message M%d {}`, i)
					if _, err := r.AddSource("m", fstest.MapFS{"m.proto": text(src)}); err != nil {
						t.Error(err)
					}
				} else if doc := (&Decoder{Types: r}).Decode(body, Hints{Type: email}, nil); doc.Kind != Protobuf {
					t.Errorf("kind %s", doc.Kind)
				}
				r.Types()
				r.Sets()
			}
		})
	}
	wg.Wait()
}

func TestTypesOfGoogleWithoutARegistry(t *testing.T) {
	t.Parallel()
	any := lengthPrefixed(1, append(lengthPrefixed(1, []byte("k")), lengthPrefixed(2, lengthPrefixed(3, []byte("v")))...))
	doc := (&Decoder{}).Decode(any, Hints{Type: "type.googleapis.com/google.protobuf.Struct"}, nil)
	if n := at(t, doc, "value", `"k"`); n.Value != `"v"` || doc.JSON != "{\n  \"k\": \"v\"\n}" {
		t.Errorf("got %+v, JSON %s", n, doc.JSON)
	}
}

// A set may define google.protobuf.Timestamp as it likes; no decoder may fall over that.
func TestOddWellKnownTypes(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	s := func(s string) *string { return &s }
	str, msg := descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	one, two := int32(1), int32(2)
	odd := func(names ...string) (list []*descriptorpb.DescriptorProto) {
		for _, n := range names {
			list = append(list, &descriptorpb.DescriptorProto{Name: s(n), Field: []*descriptorpb.FieldDescriptorProto{{Name: s("seconds"), Number: &two, Type: &str}}})
		}
		return list
	}
	kinds := []string{"Timestamp", "Duration", "Any", "Struct", "Value", "ListValue", "FieldMask", "StringValue", "BytesValue", "Empty"}
	m := &descriptorpb.DescriptorProto{Name: s("M")}
	for i, k := range kinds {
		n := one + int32(i)
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{Name: s("f" + k), Number: &n, Type: &msg, TypeName: s(".google.protobuf." + k)})
	}
	if _, err := r.AddSet("odd", set(t, &descriptorpb.FileDescriptorProto{Name: s("odd.proto"), Package: s("google.protobuf"), Syntax: s("proto3"), MessageType: odd(kinds...)},
		&descriptorpb.FileDescriptorProto{Name: s("m.proto"), Syntax: s("proto3"), Dependency: []string{"odd.proto"}, MessageType: []*descriptorpb.DescriptorProto{m}})); err != nil {
		t.Fatal(err)
	}
	for i := range kinds {
		body := lengthPrefixed(protowire.Number(i+1), lengthPrefixed(2, []byte("x")))
		for _, mask := range []*Mask{nil, pattern} {
			doc := (&Decoder{Types: r, Mask: mask}).Decode(body, Hints{Type: "M"}, nil)
			if n := at(t, doc, "f"+kinds[i], "seconds"); doc.Kind != Protobuf || n.Value != `"x"` {
				t.Errorf("%s: %s, %+v, %s", kinds[i], doc.Kind, doc.Fields, doc.Problem)
			}
			doc.Hexdump(100)
		}
	}
}

func TestManyBadFilesDoNotHinderAGoodOne(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"good.proto": text(`syntax = "proto3"; message Good {}`)}
	for i := range 30 {
		fsys[fmt.Sprintf("bad%d.proto", i)] = text([]string{`syntax = "proto3"; message {`, `syntax = "proto3"; import "gone.proto";`, `syntax = "proto3"; message X { Gone g = 1; }`}[i%3])
	}
	r := NewRegistry()
	err := r.LoadDir(fsys)
	if got := r.Types(); len(got) != 1 || err == nil || len(strings.Split(err.Error(), "\n")) != 30 {
		t.Errorf("types %v, errors\n%v", got, err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	// As Kubernetes mounts a ConfigMap: the files are links into a hidden directory.
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(dir+"/..data", 0o700),
		os.WriteFile(dir+"/..data/m.proto", []byte(`syntax = "proto3"; message M {}`), 0o600),
		os.Symlink("..data/m.proto", dir+"/m.proto"),
		os.Symlink("..data", dir+"/linked"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := NewRegistry()
	err := r.LoadDir(os.DirFS(dir))
	if got := r.Types(); !reflect.DeepEqual(got, []string{"M"}) || err == nil || err.Error() != "linked: a link to a directory is not followed" {
		t.Errorf("types %v, error %v", got, err)
	}
}
