package descriptor

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Complete repairs the files of some reflection servers, for example of the package
// @grpc/reflection for Node. These servers leave out the list of imports, and the first part of
// type names. Complete adds both. A type that no file defines stays unresolved. Complete returns
// the same errors as ReadSet.
func Complete(set []byte) ([]byte, error) {
	files, err := splitSet(set)
	if err != nil {
		return nil, err
	}
	complete(files)
	return proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
}

// complete does what Complete says, and sets the kinds of fields that a parser left open. It
// returns one type that is not defined for each file that uses such a type. It cannot know whether
// that type is a message or an enum. A field of this type becomes a message without fields, or a
// list of bytes if it is repeated, so that each body can still be read.
func complete(files []*descriptorpb.FileDescriptorProto) (unresolved map[string]string) {
	c := completion{in: map[string]string{}, enums: map[string]bool{}, unresolved: map[string]string{}}
	for _, f := range files {
		c.types(f, scopeOf(f), f.MessageType, f.EnumType)
	}
	for _, f := range files {
		c.file, c.imports = f, map[string]bool{f.GetName(): true}
		for _, file := range f.Dependency {
			c.imports[file] = true
		}
		scope := scopeOf(f)
		c.fields(scope, f.Extension)
		c.messages(scope, f.MessageType)
		for _, s := range f.Service {
			for _, m := range s.Method {
				c.completeName(scope, m.InputType)
				c.completeName(scope, m.OutputType)
			}
		}
	}
	return c.unresolved
}

// scopeOf returns the package of a file with a leading dot. If the file has no package, it returns
// "".
func scopeOf(f *descriptorpb.FileDescriptorProto) string {
	if f.GetPackage() == "" {
		return ""
	}
	return "." + f.GetPackage()
}

type completion struct {
	in         map[string]string // the file that defines each type, by type name with a leading dot
	enums      map[string]bool   // the types of in that are enums
	unresolved map[string]string // a type that no file defines, by the file that uses it
	file       *descriptorpb.FileDescriptorProto
	imports    map[string]bool // files that the current file imports, and the current file itself
}

func (c *completion) types(
	f *descriptorpb.FileDescriptorProto, scope string, messages []*descriptorpb.DescriptorProto,
	enums []*descriptorpb.EnumDescriptorProto,
) {
	for _, e := range enums {
		c.in[scope+"."+e.GetName()], c.enums[scope+"."+e.GetName()] = f.GetName(), true
	}
	for _, m := range messages {
		name := scope + "." + m.GetName()
		c.in[name] = f.GetName()
		c.types(f, name, m.NestedType, m.EnumType)
	}
}

func (c *completion) messages(scope string, list []*descriptorpb.DescriptorProto) {
	for _, m := range list {
		name := scope + "." + m.GetName()
		c.fields(name, m.Field)
		c.fields(name, m.Extension)
		c.messages(name, m.NestedType)
	}
}

func (c *completion) fields(scope string, list []*descriptorpb.FieldDescriptorProto) {
	for _, f := range list {
		c.completeName(scope, f.TypeName)
		c.completeName(scope, f.Extendee)
		if f.Type != nil || f.GetTypeName() == "" {
			continue
		}
		kind := descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		switch {
		case c.isEnum(f.GetTypeName()):
			kind = descriptorpb.FieldDescriptorProto_TYPE_ENUM
		case c.fileOf(f.GetTypeName()) == "":
			f.DefaultValue = nil // of an enum that is missing
			if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
				markUnresolved(f)
				kind, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_BYTES, nil // messages, or packed enums
			}
		}
		f.Type = kind.Enum()
	}
}

const maxScope = 100 // maximum number of parts of a scope; names in deeper scopes stay as they are

// completeName replaces a relative type name by the full name of the type. The parameter "scope" is
// the full name of the message or package in which the relative name is used. completeName also
// adds an import of the file that defines the type.
func (c *completion) completeName(scope string, name *string) {
	if name == nil || *name == "" {
		return
	}
	if !strings.HasPrefix(*name, ".") {
		if strings.Count(scope, ".") > maxScope {
			return
		}
		for c.fileOf(scope+"."+*name) == "" && scope != "" {
			scope = scope[:strings.LastIndexByte(scope, '.')]
		}
		*name = scope + "." + *name
	}
	switch file := c.fileOf(*name); {
	case file == "":
		c.unresolved[c.file.GetName()] = (*name)[1:]
	case !c.imports[file]:
		c.imports[file] = true
		c.file.Dependency = append(c.file.Dependency, file)
	}
}

// isEnum reports whether a type, with a leading dot, is an enum.
func (c *completion) isEnum(name string) bool {
	d, _ := WellKnown().Files.FindDescriptorByName(protoreflect.FullName(name[1:]))
	_, enum := d.(protoreflect.EnumDescriptor)
	return enum || c.enums[name]
}

// fileOf returns the file that defines a type. It returns "" if no file defines it.
func (c *completion) fileOf(name string) string {
	if file, ok := c.in[name]; ok {
		return file
	}
	d, err := WellKnown().Files.FindDescriptorByName(protoreflect.FullName(name[1:]))
	if err != nil {
		return ""
	}
	return d.ParentFile().Path()
}
