package payload

import (
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// resolver finds the messages and extensions of one version of a set, then the well-known types. It does not change, and it never looks at the
// global registry, where every package of the program leaves its types. It serves proto.Unmarshal and protojson.
type resolver struct {
	files *protoregistry.Files
	exts  map[extension]protoreflect.ExtensionType

	once sync.Once
	list []matchable // of matchables

	redactOnce sync.Once
	redactsAny bool     // of redacting
	redactors  sync.Map // full name -> bool, of redacts
}

type extension struct {
	message protoreflect.FullName
	number  protoreflect.FieldNumber
}

func newResolver(files *protoregistry.Files) *resolver {
	t := &resolver{files: files, exts: make(map[extension]protoreflect.ExtensionType)}
	add := func(xs protoreflect.ExtensionDescriptors) {
		for i := range xs.Len() {
			x := xs.Get(i)
			key := extension{x.ContainingMessage().FullName(), x.Number()}
			if _, twice := t.exts[key]; !twice {
				t.exts[key] = dynamicpb.NewExtensionType(x)
			}
		}
	}
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		add(f.Extensions())
		return true
	})
	t.rangeMessages(func(md protoreflect.MessageDescriptor) { add(md.Extensions()) })
	return t
}

// rangeMessages calls f for each message type, nested ones too, map entries not. The order is not defined.
func (t *resolver) rangeMessages(f func(protoreflect.MessageDescriptor)) {
	var walk func(protoreflect.MessageDescriptors)
	walk = func(list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			if md := list.Get(i); !md.IsMapEntry() {
				f(md)
				walk(md.Messages())
			}
		}
	}
	t.files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		walk(f.Messages())
		return true
	})
}

// message returns nil when there is none of that name.
func (t *resolver) message(name protoreflect.FullName) protoreflect.MessageDescriptor {
	if d, err := t.files.FindDescriptorByName(name); err == nil {
		md, _ := d.(protoreflect.MessageDescriptor)
		return md
	}
	if w := wellKnown(); w != t {
		return w.message(name)
	}
	return nil
}

// field returns the field of md with that number, or the extension, or nil. It does not allocate.
func (t *resolver) field(md protoreflect.MessageDescriptor, n protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByNumber(n); fd != nil {
		return fd
	}
	if x, ok := t.exts[extension{md.FullName(), n}]; ok && md.ExtensionRanges().Has(n) {
		return x.TypeDescriptor()
	}
	return nil
}

// anyContent returns the type that a type URL of google.protobuf.Any names, or nil.
func (t *resolver) anyContent(url string) protoreflect.MessageDescriptor {
	name := protoreflect.FullName(trimTypeName(url))
	if !name.IsValid() {
		return nil
	}
	return t.message(name)
}

func (t *resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if md := t.message(name); md != nil {
		return dynamicpb.NewMessageType(md), nil
	}
	return nil, protoregistry.NotFound
}

func (t *resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return t.FindMessageByName(protoreflect.FullName(trimTypeName(url)))
}

func (t *resolver) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	d, err := t.files.FindDescriptorByName(name)
	if err != nil {
		return nil, err
	}
	x, ok := d.(protoreflect.ExtensionDescriptor)
	if !ok {
		return nil, protoregistry.NotFound
	}
	return dynamicpb.NewExtensionType(x), nil
}

func (t *resolver) FindExtensionByNumber(m protoreflect.FullName, n protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	if x, ok := t.exts[extension{m, n}]; ok {
		return x, nil
	}
	return nil, protoregistry.NotFound
}

// tolerant is a resolver for protojson, which otherwise refuses a whole message for one google.protobuf.Any of an unknown type. It answers with
// an empty message type of that name, and remembers the name so that the document can say what the JSON leaves out.
type tolerant struct {
	*resolver
	missing []string
}

func (t *tolerant) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	mt, err := t.resolver.FindMessageByURL(url)
	if err == nil {
		return mt, nil
	}
	name := protoreflect.FullName(trimTypeName(url))
	if !name.IsValid() || len(name) > 512 || len(t.missing) >= 100 {
		return nil, err
	}
	file := &descriptorpb.FileDescriptorProto{MessageType: []*descriptorpb.DescriptorProto{{}}}
	path, base := "unknown.proto", string(name.Name())
	file.Name, file.MessageType[0].Name = &path, &base
	if pkg := string(name.Parent()); pkg != "" {
		file.Package = &pkg
	}
	fd, err := protodesc.NewFile(file, nil)
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", name, err)
	}
	t.missing = append(t.missing, string(name))
	return dynamicpb.NewMessageType(fd.Messages().Get(0)), nil
}

// wellKnownFiles are the files that schemas import without bringing them.
var wellKnownFiles = []protoreflect.FileDescriptor{
	anypb.File_google_protobuf_any_proto,
	sourcecontextpb.File_google_protobuf_source_context_proto,
	typepb.File_google_protobuf_type_proto,
	apipb.File_google_protobuf_api_proto,
	durationpb.File_google_protobuf_duration_proto,
	emptypb.File_google_protobuf_empty_proto,
	fieldmaskpb.File_google_protobuf_field_mask_proto,
	structpb.File_google_protobuf_struct_proto,
	timestamppb.File_google_protobuf_timestamp_proto,
	wrapperspb.File_google_protobuf_wrappers_proto,
	descriptorpb.File_google_protobuf_descriptor_proto,
}

// wellKnown is the resolver of google.protobuf.
var wellKnown = sync.OnceValue(func() *resolver {
	files := new(protoregistry.Files)
	for _, f := range wellKnownFiles {
		if err := files.RegisterFile(f); err != nil {
			panic("payload: well-known types: " + err.Error()) // constant input
		}
	}
	return newResolver(files)
})

// withoutPath names a file as errors show it.
func withoutPath(name string) string { return visible(strings.TrimPrefix(name, "./"), "") }
