// Package trial contains helpers for the tests of matching: the types that are linked into a test,
// and fields that no type has yet.
package trial

import (
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Types contains every type that is linked into the program, by name, except those of
// google.protobuf.
type Types struct {
	Registry *descriptor.Registry
	All      []protoreflect.MessageDescriptor
}

// Load makes a registry of the types that are linked into the program. If the function "leave"
// returns true for a type, Load omits the type. Such a type must be a top-level message that no
// other message uses.
func Load(leave func(protoreflect.FullName) bool) Types {
	set := &descriptorpb.FileDescriptorSet{}
	var all []protoreflect.MessageDescriptor
	var walk func(protoreflect.MessageDescriptors)
	walk = func(list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			if md := list.Get(i); !md.IsMapEntry() {
				all = append(all, md)
				walk(md.Messages())
			}
		}
	}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if f.Package() == "ttrpc" { // the file of this package does not import what it uses
			return true
		}
		if !strings.HasPrefix(f.Path(), "google/protobuf/") {
			walk(f.Messages())
		}
		file := protodesc.ToFileDescriptorProto(f)
		file.Service = nil // services may refer to omitted messages
		file.MessageType = slices.DeleteFunc(file.MessageType, func(m *descriptorpb.DescriptorProto) bool {
			return leave(f.Package().Append(protoreflect.Name(m.GetName())))
		})
		set.File = append(set.File, file)
		return true
	})
	b, err := proto.Marshal(set)
	if err != nil {
		panic(err)
	}
	r := descriptor.NewRegistry()
	if _, err := r.AddSet("corpus", b); err != nil {
		panic(err)
	}
	slices.SortFunc(all, func(a, b protoreflect.MessageDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return Types{r, all}
}

// Field returns an encoded field that a type does not have. Its number is one to three above the
// highest number of the type.
func Field(md protoreflect.MessageDescriptor, r *rand.Rand) (b []byte) {
	number := protowire.Number(1)
	for i := range md.Fields().Len() {
		number = max(number, md.Fields().Get(i).Number())
	}
	number += protowire.Number(1 + r.IntN(3))
	switch r.IntN(4) {
	case 0:
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), 1)
	case 1:
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(r.IntN(1<<20)))
	case 2:
		return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), "sixty6")
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), "seventeen bytes..")
}

// Percent returns the number n as a percentage of the number "all". If "all" is 0, it returns 0.
func Percent(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
