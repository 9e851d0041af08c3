package descriptor

import (
	"slices"
	"strings"
	"sync"

	"github.com/deadletteroffice/dlo/internal/deadletter"
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

// Resolver finds the messages and extensions of one version of a set. It looks for all other names
// among the well-known types. It is immutable. It never uses the global registry, in which every
// package of the program registers its types. A Resolver can be used with proto.Unmarshal and
// protojson.
type Resolver struct {
	Files *protoregistry.Files
	Lacks bool // an imported file is missing, so that fields can be unresolved
	exts  map[extension]protoreflect.ExtensionType

	made   *sync.Map        // key -> func() any; used by Memo
	sets   *Registry        // the registry that the version is in; nil = none
	chosen map[string]*Type // by type URL, the definitions that fit the Anys of one body best
}

// in returns the resolver of a version that is in the registry r. The content of an Any may then
// have a type of any set.
func (t *Resolver) in(r *Registry) *Resolver {
	inside := *t
	inside.sets = r
	return &inside
}

// Sets returns the registry that the version is in, or nil.
func (t *Resolver) Sets() *Registry { return t.sets }

// Memo returns the result of "make", and caches it under the given key. It calls "make" only once
// for each key.
func (t *Resolver) Memo(key any, make func() any) any {
	made, ok := t.made.Load(key)
	if !ok {
		made, _ = t.made.LoadOrStore(key, sync.OnceValue(make))
	}
	return made.(func() any)()
}

type extension struct {
	message protoreflect.FullName
	number  protoreflect.FieldNumber
}

func newResolver(files *protoregistry.Files) *Resolver {
	t := &Resolver{Files: files, exts: make(map[extension]protoreflect.ExtensionType), made: &sync.Map{}}
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
	t.RangeMessages(func(md protoreflect.MessageDescriptor) { add(md.Extensions()) })
	return t
}

// RangeMessages calls f for each message type, in no particular order. It includes nested types,
// but not map entries.
func (t *Resolver) RangeMessages(f func(protoreflect.MessageDescriptor)) {
	var walk func(protoreflect.MessageDescriptors)
	walk = func(list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			if md := list.Get(i); !md.IsMapEntry() {
				f(md)
				walk(md.Messages())
			}
		}
	}
	t.Files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		walk(f.Messages())
		return true
	})
}

// RangeExtensions calls f for each extension, together with the message type that it extends. The
// order is undefined.
func (t *Resolver) RangeExtensions(f func(of protoreflect.FullName, x protoreflect.ExtensionTypeDescriptor)) {
	for key, x := range t.exts {
		f(key.message, x.TypeDescriptor())
	}
}

// Message returns the message type with the given name, or nil if none exists.
func (t *Resolver) Message(name protoreflect.FullName) protoreflect.MessageDescriptor {
	if d, err := t.Files.FindDescriptorByName(name); err == nil {
		md, _ := d.(protoreflect.MessageDescriptor)
		return md
	}
	if w := WellKnown(); w != t {
		return w.Message(name)
	}
	return nil
}

// Field returns the field or extension with the given number in a message type. If there is none,
// it returns nil. It does not allocate memory.
func (t *Resolver) Field(md protoreflect.MessageDescriptor, n protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByNumber(n); fd != nil {
		return fd
	}
	if x, ok := t.exts[extension{md.FullName(), n}]; ok && md.ExtensionRanges().Has(n) {
		return x.TypeDescriptor()
	}
	return nil
}

// FieldNamed returns the field of a message type that has the given name. The name may be the JSON
// name of the field, its name in the schema, or [pkg.name] for an extension. If there is no such
// field, FieldNamed returns nil.
func (t *Resolver) FieldNamed(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	fd := md.Fields().ByJSONName(name)
	if fd == nil {
		fd = md.Fields().ByTextName(name)
	}
	if fd == nil && strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		x, err := t.FindExtensionByName(protoreflect.FullName(name[1 : len(name)-1]))
		if err == nil && x.TypeDescriptor().ContainingMessage().FullName() == md.FullName() {
			return x.TypeDescriptor()
		}
	}
	return fd
}

// AnyContent returns the definitions of the message type that a type URL of google.protobuf.Any
// names. The first is the one that fits best. This is the definition of the set itself, unless a
// definition of another set fits the content of the body better: see Scan. Definitions of other
// sets follow, with the newest versions first.
func (t *Resolver) AnyContent(url string) []*Type {
	name := protoreflect.FullName(TypeName(url))
	if !name.IsValid() {
		return nil
	}
	var list []*Type
	add := func(def *Type) {
		if !slices.ContainsFunc(list, func(d *Type) bool { return d.Desc == def.Desc }) && len(list) < MaxDefinitions {
			list = append(list, def)
		}
	}
	if def := t.chosen[url]; def != nil {
		add(def)
	}
	if md := t.Message(name); md != nil {
		add(&Type{Desc: md, Types: t})
	}
	if t.sets != nil && (len(list) == 0 || !IsGoogle(name)) {
		for _, def := range t.sets.ordered(name) {
			add(def.Choosing(t.chosen))
		}
	}
	return list
}

// MaxDefinitions is the maximum number of definitions of one type name that are tried. The newest
// versions are tried first.
const MaxDefinitions = 8

func (t *Resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if md := t.Message(name); md != nil {
		return dynamicpb.NewMessageType(md), nil
	}
	return nil, protoregistry.NotFound
}

func (t *Resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if defs := t.AnyContent(url); len(defs) > 0 {
		return dynamicpb.NewMessageType(defs[0].Desc), nil
	}
	return nil, protoregistry.NotFound
}

func (t *Resolver) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	d, err := t.Files.FindDescriptorByName(name)
	if err != nil {
		return nil, err
	}
	x, ok := d.(protoreflect.ExtensionDescriptor)
	if !ok {
		return nil, protoregistry.NotFound
	}
	return dynamicpb.NewExtensionType(x), nil
}

func (t *Resolver) FindExtensionByNumber(
	m protoreflect.FullName, n protoreflect.FieldNumber,
) (protoreflect.ExtensionType, error) {
	if x, ok := t.exts[extension{m, n}]; ok {
		return x, nil
	}
	return nil, protoregistry.NotFound
}

// wellKnownFiles lists the files that schemas may import without including them.
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

// wellKnownFile returns the index of the file with that name, or -1.
func wellKnownFile(name string) int {
	return slices.IndexFunc(wellKnownFiles, func(f protoreflect.FileDescriptor) bool { return f.Path() == name })
}

// WellKnown returns the resolver for the types of google.protobuf.
var WellKnown = sync.OnceValue(func() *Resolver {
	files := new(protoregistry.Files)
	for _, f := range wellKnownFiles {
		if err := files.RegisterFile(f); err != nil {
			panic("payload: well-known types: " + err.Error()) // constant input
		}
	}
	return newResolver(files)
})

// withoutPath returns the name of a file as errors show it.
func withoutPath(name string) string { return deadletter.Visible(strings.TrimPrefix(name, "./")) }
