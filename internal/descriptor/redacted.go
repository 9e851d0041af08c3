package descriptor

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// unresolvedOption is the name of an option that marks a field whose type is missing, and that is a
// list of bytes for this reason.
const unresolvedOption = "dlo.unresolved"

func markUnresolved(f *descriptorpb.FieldDescriptorProto) {
	if f.Options == nil {
		f.Options = &descriptorpb.FieldOptions{}
	}
	f.Options.UninterpretedOption = []*descriptorpb.UninterpretedOption{{
		Name: []*descriptorpb.UninterpretedOption_NamePart{
			{NamePart: proto.String(unresolvedOption), IsExtension: proto.Bool(true)},
		},
		IdentifierValue: f.TypeName,
	}}
}

// Unresolved reports whether the type of a field is missing in its set.
func Unresolved(fd protoreflect.FieldDescriptor) bool {
	o, _ := fd.Options().(*descriptorpb.FieldOptions)
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	return fd.Message() != nil && fd.Message().IsPlaceholder() ||
		slices.ContainsFunc(o.GetUninterpretedOption(), func(u *descriptorpb.UninterpretedOption) bool {
			return len(u.Name) == 1 && u.Name[0].GetNamePart() == unresolvedOption
		})
}

func Redacted(fd protoreflect.FieldDescriptor) bool {
	o, ok := fd.Options().(*descriptorpb.FieldOptions)
	return ok && o.GetDebugRedact()
}
