package descriptor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

func TestSourceShowsATypeWithItsComments(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	if _, err := r.AddSource("shop", fstest.MapFS{
		"shop/order.proto": payloadtest.File(`syntax = "proto3";
package shop;
import "shop/item.proto";
import "google/protobuf/timestamp.proto";
// An order, as the shop sends it.
message Order {
  // How much.
  int64 cents = 1;
  repeated Item items = 2;
  google.protobuf.Timestamp at = 3;
  // One line.
  message Line { string text = 1 [debug_redact = true]; }
  enum Kind { KIND_UNKNOWN = 0; }
  Line line = 4; // behind it
  oneof way { string mail = 5; Kind kind = 6; }
}
// Not asked for.
message Other {}`),
		"shop/item.proto": payloadtest.File(`syntax = "proto3"; package shop; message Item { string sku = 1; }`),
	}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Source("Order")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"// An order, as the shop sends it.\nmessage Order {", "// How much.", "repeated Item items = 2;",
		"google.protobuf.Timestamp at = 3;", "// One line.", "message Line {", "debug_redact = true", "oneof way {",
		"// behind it",
	} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("%q is missing in\n%s", want, got.Text)
		}
	}
	if strings.Contains(got.Text, "Other") || got.Type != "shop.Order" || got.Cut || len(got.Definitions) != 1 ||
		got.Definitions[0].Fields != 6 || got.Definitions[0].File != "shop/order.proto" || !got.Definitions[0].Current {
		t.Errorf("%+v", got)
	}
	r.Add(deadletter.SchemaVersion{Name: "another"}, compileOne(t, `package shop; message Order {}`))
	if got, err := r.Source("shop.Order"); err != nil || len(got.Definitions) != 2 ||
		got.Definitions[0].Set != "another" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, typ := range []string{"shop.Gone", "", "google.protobuf.Struct", "..", strings.Repeat("a.", 1000)} {
		if _, err := r.Source(typ); !errors.Is(err, ErrNoType) {
			t.Errorf("%q: %v", typ, err)
		}
	}
	if _, err := (*Registry)(nil).Source("x"); !errors.Is(err, ErrNoType) {
		t.Error(err)
	}
}

func TestSourceOfATypeWhoseImportsAreMissing(t *testing.T) {
	t.Parallel()
	msg, enum := descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, descriptorpb.FieldDescriptorProto_TYPE_ENUM
	r := NewRegistry()
	_, err := r.AddSet("x", payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
		Name:       proto.String("a.proto"),
		Package:    proto.String("a"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"gone.proto", "google/protobuf/any.proto"},
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("M"), Field: []*descriptorpb.FieldDescriptorProto{
				{
					Name: proto.String("gone"), Number: proto.Int32(1), Type: &msg,
					TypeName: proto.String(".gone.v1.Type"),
				},
				{Name: proto.String("kind"), Number: proto.Int32(2), Type: &enum, TypeName: proto.String(".Kind")},
				{
					Name: proto.String("any"), Number: proto.Int32(3), Type: &msg,
					TypeName: proto.String(".google.protobuf.Any"),
				},
			}},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Source("a.M")
	if err != nil || !strings.Contains(got.Text, "gone.v1.Type gone = 1;") ||
		!strings.Contains(got.Text, "Kind kind = 2;") || !strings.Contains(
		got.Text, "google.protobuf.Any any = 3;",
	) {
		t.Errorf("%v\n%s", err, got.Text)
	}
}

func TestSourceIsBounded(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	r := NewRegistry()
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "string f%d = %d;\n", i, i+1)
		}
		return b.String()
	}
	r.Add(deadletter.SchemaVersion{Name: "a"}, compileOne(t, `message Wide {`+fields(6000)+`} 
/* `+strings.Repeat("a word ", 100_000)+`*/
message Long { string a = 1; }`))
	if _, err := r.Source("Wide"); !errors.Is(err, ErrSchemaTooLarge) {
		t.Error(err)
	}
	if got, err := r.Source("Long"); err != nil || !got.Cut || len(got.Text) > maxPrinted {
		t.Errorf("%v, %d bytes", err, len(got.Text))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	r.Add(
		deadletter.SchemaVersion{Name: "a"},
		compileOne(
			t,
			`package shop; message Order { string customer_id = 1; repeated int32 n = 2; } message Customer { message Orders {} }`,
		),
	)
	got, more := r.Find("ORDER")
	if more || len(got) != 2 || got[0].Type != "shop.Customer.Orders" || got[1].Type != "shop.Order" {
		t.Errorf("%+v", got)
	}
	got, _ = r.Find("customer")
	if len(got) != 3 || got[2] != (Hit{Type: "shop.Order", Set: "a", Field: "customer_id", Is: "string"}) {
		t.Errorf("%+v", got)
	}
	if got, _ = r.Find("erId"); len(got) != 1 || got[0].Field != "customer_id" {
		t.Errorf("by its JSON name: %+v", got)
	}
	if got, _ := r.Find("nothing"); got != nil {
		t.Error(got)
	}
	if _, more := schemas().Find("a"); more {
		t.Error("more than 200 in a small set")
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	add := func(content string) {
		r.Add(deadletter.SchemaVersion{Name: "a"}, compileOne(t, "package shop; "+content))
	}
	add(`message Order { string old_id = 1; }`)
	add(`import "google/protobuf/struct.proto"; message Order { string order_id = 1; repeated Item line_items = 2; map<string, Item> by_sku = 3; string secret_key = 4 [json_name = "sk"]; google.protobuf.Struct extra = 5; }
		message Item { string full_name = 1; Item next_item = 2; } message Other { string orderId = 1; }`)
	for path, want := range map[string]string{
		"order_id": "order_id", "orderId": "orderId order_id", "oldId": "old_id", "sk": "secret_key", "secretKey": "",
		"order_id.x": "", "orderid": "", "": "",
		"lineItems.[2].fullName":                  "line_items.full_name",
		"line_items.nextItem.next_item.full_name": "line_items.next_item.next_item.full_name", "lineItems.x": "",
		"bySku.a.b.c": "by_sku.a.b.c", "extra.anyThing": "extra.anyThing", "x.order_id": "", "seconds": "",
	} {
		if got := strings.Join(r.Paths(path), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
