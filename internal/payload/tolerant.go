package payload

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// tolerant is a resolver for protojson. Without it, protojson would reject a whole message because
// of one google.protobuf.Any of an unknown type. For an unknown name, it returns an empty message
// type with that name. It also remembers the name, so that the document can say what the JSON
// omits.
type tolerant struct {
	*descriptor.Resolver
	missing []string
}

func (t *tolerant) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	mt, err := t.Resolver.FindMessageByURL(url)
	if err == nil {
		return mt, nil
	}
	name := protoreflect.FullName(descriptor.TypeName(url))
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
