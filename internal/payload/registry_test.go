package payload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

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
	s, _ := schemas().Current("acme")
	content, err := s.Content()
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	set.File = slices.DeleteFunc(
		set.File, func(f *descriptorpb.FileDescriptorProto) bool { return strings.HasPrefix(f.GetName(), "google/") },
	)
	if google {
		for _, f := range []protoreflect.FileDescriptor{
			anypb.File_google_protobuf_any_proto, durationpb.File_google_protobuf_duration_proto,
			timestamppb.File_google_protobuf_timestamp_proto, structpb.File_google_protobuf_struct_proto,
			wrapperspb.File_google_protobuf_wrappers_proto, fieldmaskpb.File_google_protobuf_field_mask_proto,
			emptypb.File_google_protobuf_empty_proto,
		} {
			set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
		}
	}
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAddSet(t *testing.T) {
	t.Parallel()
	for _, google := range []bool{true, false} {
		r := descriptor.NewRegistry()
		got, err := r.AddSet("acme", descriptorSet(t, google))
		if err != nil || !reflect.DeepEqual(got, wantTypes) || !reflect.DeepEqual(r.Types(), wantTypes) {
			t.Errorf("with google/protobuf %v: %v, %v", google, got, err)
		}
		doc := (&Decoder{Types: r}).Decode(sample(t), Hints{Type: email}, nil)
		if n := nodeAt(t, doc, "created_at"); n.Kind != Timestamp {
			t.Errorf("with google/protobuf %v: created_at %+v", google, n)
		}
	}
	if got := schemas().Types(); !reflect.DeepEqual(got, wantTypes) {
		t.Errorf("from sources: %v", got)
	}
}

func TestImportsThatAreMissingStayUnresolved(t *testing.T) {
	t.Parallel()
	s := func(s string) *string { return &s }
	msg := descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	str := descriptorpb.FieldDescriptorProto_TYPE_STRING
	n1, n2 := int32(1), int32(2)
	r := descriptor.NewRegistry()
	_, err := r.AddSet("x", payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
		Name: s("a.proto"), Package: s("a"), Syntax: s("proto3"), Dependency: []string{"gone.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: s("M"), Field: []*descriptorpb.FieldDescriptorProto{
			{Name: s("gone"), Number: &n1, Type: &msg, TypeName: s(".gone.Type")},
			{Name: s("name"), Number: &n2, Type: &str},
		}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	doc := (&Decoder{Types: r}).Decode([]byte("\x0a\x02\x08\x01\x12\x01n"), Hints{Type: "a.M"}, nil)
	if n := nodeAt(
		t, doc, "gone",
	); n.Note != "its type is missing in the descriptor set" || len(n.Children) != 1 || doc.UnknownFields != 1 {
		t.Errorf("got %+v, %s", n, doc.Problem)
	}
	if n := nodeAt(t, doc, "name"); n.Value != `"n"` {
		t.Errorf("got %+v", n)
	}
}

func TestVersionsAndSetsThatDisagree(t *testing.T) {
	t.Parallel()
	proto := func(fields string) fstest.MapFS {
		return fstest.MapFS{"m.proto": payloadtest.File(`syntax = "proto3"; package p; message M { ` + fields + ` }`)}
	}
	r := descriptor.NewRegistry()
	add := func(name, fields string) {
		t.Helper()
		if _, err := r.AddSource(name, proto(fields)); err != nil {
			t.Fatal(err)
		}
	}
	add("one", "string a = 1;")
	add("one", "string a = 1; int32 b = 2;")
	add("one", "string a = 1; int32 b = 2;")
	if got := r.Sets(); len(got) != 2 || !got[0].Current || got[1].Current || got[0].Version == got[1].Version ||
		len(got[0].Version) != 64 {
		t.Errorf("sets %+v", got)
	}
	dec := &Decoder{Types: r}
	newest := r.Sets()[0].Version[:8]
	doc := dec.Decode([]byte("\x0a\x01x\x10\x05"), Hints{Type: "M"}, nil)
	if doc.Set != "one "+newest || doc.UnknownFields != 0 || len(doc.Also) != 1 {
		t.Errorf("set %s, also %v", doc.Set, doc.Also)
	}
	add("two", "int32 a = 1; string c = 3;")
	// This body has a field 3, which only the definition of the type in the set "two" knows.
	doc = dec.Decode([]byte("\x08\x07\x1a\x01c"), Hints{Type: "p.M"}, nil)
	if !strings.HasPrefix(doc.Set, "two ") || doc.UnknownFields != 0 || len(doc.Also) != 2 {
		t.Errorf("set %s, also %v, unknown %d", doc.Set, doc.Also, doc.UnknownFields)
	}
	// Old content that is added again becomes the newest version.
	add("one", "string a = 1;")
	if got := r.Sets(); len(got) != 3 || got[1].Version[:8] != newest {
		t.Errorf("sets %+v", got)
	}
}

func TestRegistryServesReadersWhileSetsAreAdded(t *testing.T) {
	t.Parallel()
	r := descriptor.NewRegistry()
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
					if _, err := r.AddSource("m", fstest.MapFS{"m.proto": payloadtest.File(src)}); err != nil {
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
	any := payloadtest.LengthPrefixed(
		1,
		append(
			payloadtest.LengthPrefixed(1, []byte("k")),
			payloadtest.LengthPrefixed(2, payloadtest.LengthPrefixed(3, []byte("v")))...,
		),
	)
	doc := (&Decoder{}).Decode(any, Hints{Type: "type.googleapis.com/google.protobuf.Struct"}, nil)
	if n := nodeAt(t, doc, "value", `"k"`); n.Value != `"v"` || doc.JSON != "{\n  \"k\": \"v\"\n}" {
		t.Errorf("got %+v, JSON %s", n, doc.JSON)
	}
}

// TestOddWellKnownTypes checks that no decoder fails if a set defines google.protobuf.Timestamp in
// its own way.
func TestOddWellKnownTypes(t *testing.T) {
	t.Parallel()
	r := descriptor.NewRegistry()
	s := func(s string) *string { return &s }
	str, msg := descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	one, two := int32(1), int32(2)
	odd := func(names ...string) (list []*descriptorpb.DescriptorProto) {
		for _, n := range names {
			list = append(list, &descriptorpb.DescriptorProto{
				Name:  s(n),
				Field: []*descriptorpb.FieldDescriptorProto{{Name: s("seconds"), Number: &two, Type: &str}},
			})
		}
		return list
	}
	kinds := []string{
		"Timestamp", "Duration", "Any", "Struct", "Value", "ListValue", "FieldMask", "StringValue", "BytesValue",
		"Empty",
	}
	m := &descriptorpb.DescriptorProto{Name: s("M")}
	for i, k := range kinds {
		n := one + int32(i)
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: s("f" + k), Number: &n, Type: &msg, TypeName: s(".google.protobuf." + k),
		})
	}
	if _, err := r.AddSet("odd", payloadtest.Set(t, &descriptorpb.FileDescriptorProto{
		Name: s("odd.proto"), Package: s("google.protobuf"), Syntax: s("proto3"), MessageType: odd(kinds...),
	},
		&descriptorpb.FileDescriptorProto{
			Name:        s("m.proto"),
			Syntax:      s("proto3"),
			Dependency:  []string{"odd.proto"},
			MessageType: []*descriptorpb.DescriptorProto{m},
		})); err != nil {
		t.Fatal(err)
	}
	for i := range kinds {
		body := payloadtest.LengthPrefixed(protowire.Number(i+1), payloadtest.LengthPrefixed(2, []byte("x")))
		for _, mask := range []*Mask{nil, pattern} {
			doc := (&Decoder{Types: r, Mask: mask}).Decode(body, Hints{Type: "M"}, nil)
			if n := nodeAt(t, doc, "f"+kinds[i], "seconds"); doc.Kind != Protobuf || n.Value != `"x"` {
				t.Errorf("%s: %s, %+v, %s", kinds[i], doc.Kind, doc.Fields, doc.Problem)
			}
			doc.Hexdump(100)
		}
	}
}
