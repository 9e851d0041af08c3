package descriptor

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// standIns makes it possible to link and show files although some of their imports are missing. It
// returns new files. For each type that the given files use but do not define, the new files define
// an empty type. It also turns each missing file into a placeholder that publicly imports the new
// files.
func standIns(files, missing []*descriptorpb.FileDescriptorProto) (made []*descriptorpb.FileDescriptorProto) {
	if len(missing) == 0 {
		return nil
	}
	r := &references{defined: map[string]bool{}, enums: map[string]bool{}}
	for _, f := range files {
		r.file(f)
	}
	for _, name := range slices.Sorted(maps.Keys(r.enums)) {
		full := protoreflect.FullName(strings.TrimPrefix(name, "."))
		if r.defined[name] || !full.IsValid() {
			continue
		}
		short, parent := string(full.Name()), string(full.Parent())
		f := &descriptorpb.FileDescriptorProto{
			Name:    proto.String("missing" + name),
			Package: &parent,
			Syntax:  proto.String("proto3"),
		}
		if parent == "" {
			f.Package = nil
		}
		if r.enums[name] {
			f.EnumType = []*descriptorpb.EnumDescriptorProto{
				{
					Name: &short,
					Value: []*descriptorpb.EnumValueDescriptorProto{
						{Name: proto.String(short + "_MISSING"), Number: new(int32)},
					},
				},
			}
		} else {
			f.MessageType = []*descriptorpb.DescriptorProto{{Name: &short}}
		}
		for _, m := range missing {
			m.PublicDependency = append(m.PublicDependency, int32(len(m.Dependency)))
			m.Dependency = append(m.Dependency, f.GetName())
		}
		made = append(made, f)
	}
	return made
}

// references holds the types that files define, and the types that files use. Their names begin
// with a dot.
type references struct {
	defined map[string]bool
	enums   map[string]bool // types that files use; true = the type is an enum
}

func (r *references) file(f *descriptorpb.FileDescriptorProto) {
	scope := ""
	if p := f.GetPackage(); p != "" {
		scope = "." + p
	}
	r.fields(f.Extension)
	r.types(scope, f.MessageType, f.EnumType)
	for _, s := range f.Service {
		for _, m := range s.Method {
			r.enums[m.GetInputType()], r.enums[m.GetOutputType()] = false, false
		}
	}
}

func (r *references) types(
	scope string, messages []*descriptorpb.DescriptorProto, enums []*descriptorpb.EnumDescriptorProto,
) {
	for _, e := range enums {
		r.defined[scope+"."+e.GetName()] = true
	}
	for _, m := range messages {
		name := scope + "." + m.GetName()
		r.defined[name] = true
		r.fields(m.Field)
		r.fields(m.Extension)
		r.types(name, m.NestedType, m.EnumType)
	}
}

func (r *references) fields(list []*descriptorpb.FieldDescriptorProto) {
	for _, f := range list {
		if name := f.GetTypeName(); name != "" {
			r.enums[name] = f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_ENUM
		}
		if name := f.GetExtendee(); name != "" {
			r.enums[name] = false
		}
	}
}
