package descriptor

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestSourcesAsTheyStandInGit checks .proto files of repositories. Their imports are relative to
// several directories, and some imported files are not there, most often those that define options.
func TestSourcesAsTheyStandInGit(t *testing.T) {
	t.Parallel()
	const (
		price = `syntax = "proto3"; package shop; import "shop/region.proto"; import "google/type/money.proto";
message Price { string sku = 1; google.type.Money amount = 2; Region region = 3; }`
		region = `syntax = "proto3"; package shop; enum Region { UNKNOWN = 0; NORTH = 1; }`
		money  = `syntax = "proto3"; package google.type; message Money { int64 units = 1; }`
	)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // the types, "!" and a part of the error
		lacks string // the missing imports
	}{
		{"two roots", map[string]string{
			"proto/shop/price.proto": price, "proto/shop/region.proto": region,
			"third_party/google/type/money.proto": money,
		}, "google.type.Money shop.Price", ""},
		{"roots below other names", map[string]string{
			"services/prices/api/shop/price.proto": price, "services/prices/api/shop/region.proto": region,
			"libs/common/google/type/money.proto": money,
		}, "google.type.Money shop.Price", ""},
		{"each import from another root", map[string]string{
			"shop/price.proto": price, "a/shop/region.proto": region, "b/google/type/money.proto": money,
		}, "google.type.Money shop.Price", ""},
		{"copies of others are read only if they are imported", map[string]string{
			"proto/shop/region.proto": region, "vendor/x/broken.proto": "message {",
			"node_modules/y/z.proto": `syntax = "proto3"; import "y/q.proto"; message Z {}`,
			"third_party/y/w.proto":  `syntax = "proto3"; message W {}`,
			"proto/shop/one.proto":   `syntax = "proto3"; import "y/w.proto"; message One { W w = 1; }`,
		}, "One W", ""},
		{"only copies of others", map[string]string{"vendor/google/type/money.proto": money}, "google.type.Money", ""},
		{"two roots with one name", map[string]string{
			"a/x.proto": `syntax = "proto3"; import "y.proto"; import "q/z.proto"; message X {}`,
			"a/y.proto": `syntax = "proto3"; message Y {}`, "b/q/z.proto": `syntax = "proto3"; import "y.proto"; message Z {}`,
			"b/y.proto": `syntax = "proto3"; message Other {}`,
		}, "!b/q/z.proto: it imports b/y.proto as y.proto, and a/y.proto has that name, too, and differs", ""},
		{"two teams with copies of one file", map[string]string{
			"a/proto/shop/price.proto": price, "a/proto/shop/region.proto": region,
			"a/third_party/google/type/money.proto": money, "b/third_party/google/type/money.proto": money,
			"b/proto/b.proto": `syntax = "proto3"; import "google/type/money.proto"; message B { google.type.Money m = 1; }`,
		}, "B google.type.Money shop.Price", ""},
		{"two teams with a file of the same name, and a shared one", map[string]string{
			"a/proto/x.proto":      `syntax = "proto3"; import "common.proto"; import "google/type/money.proto"; message A { C c = 1; }`,
			"a/proto/common.proto": `syntax = "proto3"; message C {}`, "third_party/google/type/money.proto": money,
			"b/proto/y.proto":      `syntax = "proto3"; import "shared.proto"; import "google/type/money.proto"; message B { D d = 1; }`,
			"b/proto/shared.proto": `syntax = "proto3"; message D {}`,
		}, "A B C D google.type.Money", ""},
		{"modules of buf", map[string]string{
			"buf.yaml": "version: v2\nmodules:\n  - path: proto\n  - path: vendor/other\n", "proto/a.proto": money,
			"proto/b.proto": `syntax = "proto3"; import "a.proto"; message B {}`,
			"old/a.proto":   money, "old/b/b.proto": `syntax = "proto3"; message B {}`,
		}, "B google.type.Money", ""},
		{"a workspace of buf", map[string]string{
			"buf.work.yaml": "version: v1\ndirectories: [one, two]\n",
			"one/x/a.proto": `syntax = "proto3"; import "y/b.proto"; message A {}`, "two/y/b.proto": `syntax = "proto3"; message B {}`,
		}, "A B", ""},
		{"copies of others that are a module of buf", map[string]string{
			"proto/b.proto": `syntax = "proto3"; import "google/type/money.proto"; message B { google.type.Money m = 1; }`,
			"third_party/googleapis/google/type/money.proto": money, "third_party/googleapis/buf.yaml": "version: v1\n",
		}, "B google.type.Money", ""},
		{"a module of buf beside files of another team", map[string]string{
			"a/buf.yaml": "version: v1\n", "a/a.proto": money, "b/b.proto": `syntax = "proto3"; message B {}`,
		}, "B google.type.Money", ""},
		{"imports that only bring options", map[string]string{
			"x.proto": `syntax = "proto3"; package x; import "validate/validate.proto"; import "google/api/annotations.proto";
option (acme.owner) = "team"; option java_package = "x";
message X { option (validate.disabled) = true; string a = 1 [(validate.rules).string = {min_len: 1}, deprecated = true];
  repeated E e = 2 [packed = false, (validate.rules).repeated.min_items = 1]; map<string, X> m = 3; }
enum E { option allow_alias = true; A = 0 [(acme.text) = "a"]; B = 0; }
service S { rpc Get(X) returns (X) { option (google.api.http) = { get: "/v1/x" }; } }`,
		}, "x.X", "google/api/annotations.proto validate/validate.proto"},
		{"a field whose type is missing", map[string]string{
			"shop/price.proto": price, "shop/region.proto": region,
		}, "shop.Price", "google/type/money.proto"},
		{"an enum that is missing, with a default", map[string]string{
			"x.proto": `syntax = "proto2"; import "e.proto"; message X { optional far.E e = 1 [default = ON]; optional F f = 2 [default = B]; }
enum F { A = 0; B = 1; }`,
		}, "X", "e.proto"},
		{"an edition", map[string]string{
			"x.proto": `edition = "2023"; import "gone.proto"; option features.field_presence = IMPLICIT;
message X { int32 a = 1 [(far.opt) = 1]; }`,
		}, "X", "gone.proto"},
		{"a type that nothing can define", map[string]string{
			"x.proto": `syntax = "proto3"; import "gone.proto"; message X { Gone g = 1; }`,
			"y.proto": `syntax = "proto3"; message Y { Typo t = 1; }`,
		}, "!y.proto: the type Typo is not defined", ""},
		{"a public import that is missing further down", map[string]string{
			"x.proto": `syntax = "proto3"; import "y.proto"; message X { Gone g = 1; }`,
			"y.proto": `syntax = "proto3"; import public "gone.proto"; message Y {}`,
		}, "X Y", "gone.proto"},
	} {
		files := map[string][]byte{}
		for name, text := range tt.files {
			files[name] = []byte(text)
		}
		s, err := ReadUpload(t.Context(), "x.zip", payloadtest.Zipped(t, files))
		if want, bad := strings.CutPrefix(tt.want, "!"); bad || err != nil {
			if err == nil || !bad || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if got := strings.Join(s.Types(), " "); got != tt.want {
			t.Errorf("%s: types %s", tt.name, got)
		}
		if got := strings.Join(s.Missing(), " "); got != tt.lacks {
			t.Errorf("%s: it lacks %s", tt.name, got)
		}
		if p := s.types.Message("shop.Price"); p != nil && tt.lacks == "" {
			if f := p.Fields().ByName("amount"); f.Message().IsPlaceholder() {
				t.Errorf("%s: the type of %s is not resolved", tt.name, f.FullName())
			}
			if f := p.Fields().ByName("region"); f.Kind() != protoreflect.EnumKind {
				t.Errorf("%s: %s is %s", tt.name, f.FullName(), f.Kind())
			}
		}
	}
}
