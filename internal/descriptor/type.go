package descriptor

import "google.golang.org/protobuf/reflect/protoreflect"

// Type is one version of one message type, with the resolver for the types that it refers to.
type Type struct {
	Desc  protoreflect.MessageDescriptor
	Types *Resolver
	Set   string // name and version of the set that defines the type: "notify 1f2e3d4c"
}
