package descriptor

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Own returns the schema of dlo's own types, which are used in the letters that dlo makes for
// trials. The schema is in no set, and its types are found only by their full names. Therefore dlo
// mistakes no foreign body for one of these types, and no list shows them.
var Own = sync.OnceValue(func() *Schema {
	field := func(
		name string, number int32, kind descriptorpb.FieldDescriptorProto_Type,
	) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name:     &name,
			JsonName: &name,
			Number:   &number,
			Type:     &kind,
			Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	at := field("at", 4, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
	at.TypeName = proto.String(".google.protobuf.Timestamp")
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name:       proto.String("dlo/v1/trial.proto"),
		Package:    proto.String("dlo.v1"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"google/protobuf/timestamp.proto"},
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("Trial"), Field: []*descriptorpb.FieldDescriptorProto{
				field("text", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING),
				field("broker", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING),
				field("started_by", 3, descriptorpb.FieldDescriptorProto_TYPE_STRING), at,
			}},
		},
	}}})
	if err == nil {
		var s *Schema
		if s, err = ReadSet(set); err == nil && s.types.Message(deadletter.TrialType) != nil {
			return s
		}
	}
	panic("descriptor: the types of dlo: " + PlainError(err).Error()) // constant input
})

// ownSet is the name that is shown for the set of dlo's own types.
const ownSet = "dlo"
