package descriptor

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

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schemas returns a registry that has the schemas of the tests of package payload.
var schemas = sync.OnceValue(func() *Registry {
	r := NewRegistry()
	if _, err := r.AddSource("acme", os.DirFS("../payload/testdata/schemas")); err != nil {
		panic(err)
	}
	return r
})

var wantTypes = []string{
	"acme.notify.v1.Attachment", "acme.notify.v1.EmailAddress", "acme.notify.v1.EmailRequested", "acme.notify.v1.Kinds",
	"acme.notify.v1.TemplateRef",
	"acme.odd.Line2", "acme.odd.Order", "acme.odd.Order.Extra", "acme.odd.Order.Line", "acme.shop.v1.Cart",
	"acme.shop.v1.Order", "acme.shop.v1.Owner",
}

// descriptorSet returns the files of testdata/schemas as a serialised set, with or without the
// files of google.protobuf.
func descriptorSet(t testing.TB, google bool) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	schemas().sets["acme"][0].types.Files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
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

func TestAddSetRefuses(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	name := func(s string) *string { return &s }
	big := make([]byte, maxSetBytes+1)
	manyFiles := bytes.Repeat([]byte{0x0a, 0x00}, MaxFiles+1)
	manyTypes := payloadtest.LengthPrefixed(
		1, append(payloadtest.LengthPrefixed(1, []byte("x.proto")), bytes.Repeat([]byte{0x22, 0x00}, maxSetTypes+1)...),
	)
	manyValues := payloadtest.LengthPrefixed(
		1, payloadtest.LengthPrefixed(5, bytes.Repeat([]byte{0x12, 0x00}, 20_000_000)),
	)
	deep := payloadtest.Nested(nil, 0x1a, 500)
	deep = payloadtest.LengthPrefixed(1, payloadtest.LengthPrefixed(4, deep))
	tests := []struct {
		name     string
		set      []byte
		tooLarge bool
		want     string
	}{
		{"empty", nil, false, "it is empty"},
		{"text", []byte("syntax = \"proto3\";"), false, "not a descriptor set"},
		{"noise in a file", payloadtest.LengthPrefixed(1, []byte{0xff, 0xff}), false, "not a descriptor set"},
		{"a message of another type", payloadtest.Sample(t), false, ""},
		{"too many bytes", big, true, "above 64 MiB"},
		{"too many files", manyFiles, true, "more than 10,000 files"},
		{"too many types", manyTypes, true, "more than 50,000 types"},
		{"40 MB of empty enum values", manyValues, true, "more than 2,000,000 fields"},
		{"types in types", deep, true, "nested deeper"},
		{"no name", payloadtest.Set(t, &descriptorpb.FileDescriptorProto{}), false, "path must be populated"},
		{
			"one name twice",
			payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
				Name: name("a.proto"),
			}, &descriptorpb.FileDescriptorProto{
				Name: name("a.proto"), Package: name("b"),
			}),
			false, "twice",
		},
		{
			"one type twice",
			payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
				Name:        name("a.proto"),
				MessageType: []*descriptorpb.DescriptorProto{{Name: name("M")}},
			},
				&descriptorpb.FileDescriptorProto{Name: name("b.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: name("M")}}}), false, "M",
		},
		{
			"imports in a circle",
			payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
				Name:       name("a.proto"),
				Dependency: []string{"b.proto"},
			},
				&descriptorpb.FileDescriptorProto{Name: name("b.proto"), Dependency: []string{"a.proto"}}), false, "cycle",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRegistry()
			_, err := r.AddSet("x", tt.set)
			if err == nil || errors.Is(err, ErrSchemaTooLarge) != tt.tooLarge ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if len(r.Types()) != 0 || len(r.Sets()) != 0 {
				t.Error("something was added")
			}
		})
	}
}

func TestDescriptorBombsAllocateLittle(t *testing.T) {
	bomb := payloadtest.LengthPrefixed(1, payloadtest.LengthPrefixed(5, bytes.Repeat([]byte{0x12, 0x00}, 20_000_000)))
	if got := payloadtest.Allocated(func() { _, _ = NewRegistry().AddSet("x", bomb) }); got > 128<<20 {
		t.Errorf("allocated %s", deadletter.Bytes(int(got)))
	}
}

func TestAddSource(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fs   fstest.MapFS
		want string // the types, or "!" and a part of the error
	}{
		{
			"imports from the top",
			fstest.MapFS{
				"a/x.proto": payloadtest.File(`syntax = "proto3"; import "a/y.proto"; message X { Y y = 1; }`),
				"a/y.proto": payloadtest.File(`syntax = "proto3"; message Y {}`),
			},
			"X Y",
		},
		{"imports from a directory in it", fstest.MapFS{
			"src/main/proto/a/x.proto": payloadtest.File(
				`syntax = "proto3"; import "a/y.proto"; message X { Y y = 1; }`,
			),
			"src/main/proto/a/y.proto": payloadtest.File(`syntax = "proto3"; message Y {}`),
			"src/main/proto/z.proto":   payloadtest.File(`syntax = "proto3"; message Z {}`),
		}, "X Y Z"},
		{
			"well-known types",
			fstest.MapFS{
				"x.proto": payloadtest.File(
					`syntax = "proto3"; import "google/protobuf/any.proto"; message X { google.protobuf.Any a = 1; }`,
				),
			},
			"X",
		},
		{"two trees", fstest.MapFS{
			"p/x.proto": payloadtest.File(`import "y.proto"; message X { optional Y y = 1; }`),
			"p/y.proto": payloadtest.File(`message Y {}`),
			"q/x.proto": payloadtest.File(`import "y.proto"; message X { optional Y y = 1; }`),
			"q/y.proto": payloadtest.File(`message Y {}`),
		}, "!several directories (p, q)"},
		{"nothing", fstest.MapFS{"README": payloadtest.File("hello")}, "!no .proto file"},
		{
			"syntax error",
			fstest.MapFS{"x.proto": payloadtest.File("syntax = \"proto3\";\nmessage X {")},
			"!x.proto: line 2, column",
		},
		{
			"missing import",
			fstest.MapFS{"x.proto": payloadtest.File(`syntax = "proto3"; import "gone.proto"; message X {}`)},
			"X",
		},
		{
			"edition 2024",
			fstest.MapFS{"x.proto": payloadtest.File(`edition = "2024"; message X {}`)},
			"!upload a descriptor set",
		},
		{
			"import above the directory",
			fstest.MapFS{"x.proto": payloadtest.File(`syntax = "proto3"; import "../../etc/passwd"; message X {}`)},
			"X",
		},
		{
			"deep",
			fstest.MapFS{"x.proto": payloadtest.File(`syntax = "proto3"; ` + strings.Repeat("message A {", 100_000))},
			"!nested deeper than 64 levels",
		},
		{
			"deep option",
			fstest.MapFS{"x.proto": payloadtest.File(`option (x) = ` + strings.Repeat("{a:", 100_000))},
			"!nested deeper than 64 levels",
		},
		{
			"many types",
			fstest.MapFS{"x.proto": payloadtest.File(strings.Repeat("message A {}\n", 50_001))},
			"!more than 50,000 types",
		},
		{
			"many statements",
			fstest.MapFS{"x.proto": payloadtest.File(strings.Repeat(";", 500_001))},
			"!more than 500,000 statements",
		},
		{"large", fstest.MapFS{"x.proto": payloadtest.File(strings.Repeat(" ", maxSourceBytes+1))}, "!too large"},
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
	for name, body := range map[string]string{
		"zipped/z.proto": `syntax = "proto3"; message Zipped {}`, "bad.pb": "nothing", "inner.zip": "x",
	} {
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
		"sets/acme.binpb": {Data: descriptorSet(t, true)},
		"broken.desc":     payloadtest.File("nothing"),
		"good.proto":      payloadtest.File(`syntax = "proto3"; message Good {}`),
		"bad.proto":       payloadtest.File(`syntax = "proto3"; message Bad { nope }`),
		"on-bad.proto":    payloadtest.File(`syntax = "proto3"; import "bad.proto"; message OnBad {}`),
		"orphan.proto":    payloadtest.File(`syntax = "proto3"; import "gone.proto"; message Orphan { Gone g = 1; }`),
		"new.proto":       payloadtest.File(`edition = "2024"; message New {}`),
		"tree/a/x.proto": payloadtest.File(
			`syntax = "proto3"; import "a/y.proto"; message TreeX { TreeY y = 1; }`,
		),
		"tree/a/y.proto":        payloadtest.File(`syntax = "proto3"; message TreeY {}`),
		"bundle.zip":            {Data: bundle.Bytes()},
		"README.md":             payloadtest.File("read me"),
		"..data/good.proto":     payloadtest.File(`syntax = "proto3"; message Hidden {}`),
		".git/objects/x.binpb":  payloadtest.File("nothing"),
		"empty.pb":              payloadtest.File(""),
		"not-a-zip.zip":         payloadtest.File("PK"),
		"deep.proto":            payloadtest.File(strings.Repeat("{", 1000)),
		"dir.proto/inner.proto": payloadtest.File(`syntax = "proto3"; message Inner {}`),
	}
	r := NewRegistry()
	err := r.LoadDir(fsys)
	want := append([]string{"Good", "Inner", "Orphan", "TreeX", "TreeY", "Zipped"}, wantTypes...)
	if got := r.Types(); !reflect.DeepEqual(got, want) {
		t.Errorf("types %v", got)
	}
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, file := range []string{
		"broken.desc", "bad.proto", "on-bad.proto", "new.proto", "bundle.zip/bad.pb",
		"bundle.zip/inner.zip", "empty.pb", "not-a-zip.zip", "deep.proto",
	} {
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
	if len(lines) != 9 {
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
	if err := NewRegistry().LoadDir(os.DirFS("../payload/testdata/schemas")); err != nil {
		t.Errorf("testdata/schemas: %v", err)
	}
}

func TestManyBadFilesDoNotHinderAGoodOne(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"good.proto": payloadtest.File(`syntax = "proto3"; message Good {}`)}
	for i := range 30 {
		fsys[fmt.Sprintf("bad%d.proto", i)] = payloadtest.File([]string{
			`syntax = "proto3"; message {`, `syntax = "proto3"; import "good.proto"; message Good {}`,
			`syntax = "proto3"; message X { Gone g = 1; }`,
		}[i%3])
	}
	r := NewRegistry()
	err := r.LoadDir(fsys)
	if got := r.Types(); len(got) != 1 || err == nil || len(strings.Split(err.Error(), "\n")) != 30 {
		t.Errorf("types %v, errors\n%v", got, err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	// The files are links into a hidden directory. Kubernetes mounts a ConfigMap in this way.
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
	if got := r.Types(); !reflect.DeepEqual(got, []string{"M"}) || err == nil ||
		err.Error() != "linked: a link to a directory is not followed" {
		t.Errorf("types %v, error %v", got, err)
	}
}

func TestTheSchemasOfTheTests(t *testing.T) {
	t.Parallel()
	if got := schemas().Types(); !reflect.DeepEqual(got, wantTypes) {
		t.Errorf("from sources: %v", got)
	}
}
