package descriptor

import "google.golang.org/protobuf/reflect/protoreflect"

// Type is one version of one message type, with the resolver for the types that it refers to.
type Type struct {
	Desc  protoreflect.MessageDescriptor
	Types *Resolver
	Set   string // name and version of the set that defines the type: "notify 1f2e3d4c"
}

// Choosing returns the type for one body, whose Anys have the given definitions, by type URL.
func (t *Type) Choosing(chosen map[string]*Type) *Type {
	if len(chosen) == 0 {
		return t
	}
	types := *t.Types
	types.chosen = chosen
	return &Type{Desc: t.Desc, Types: &types, Set: t.Set}
}
