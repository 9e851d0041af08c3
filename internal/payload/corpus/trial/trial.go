// Package trial has what the trials of matching share: the types that a test is linked with, and
// fields that no type has yet.
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

// Types is every linked type but those of google.protobuf, by name.
type Types struct {
	Registry *descriptor.Registry
	All      []protoreflect.MessageDescriptor
}

// Load makes a registry of the types that the program is linked with, without those that leave
// names: messages of the top level that no other has a field of.
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
		if f.Package() == "ttrpc" { // its file does not import what it uses
			return true
		}
		if !strings.HasPrefix(f.Path(), "google/protobuf/") {
			walk(f.Messages())
		}
		file := protodesc.ToFileDescriptorProto(f)
		file.Service = nil // they name messages that are left out
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

// Field is a field on the wire that a type does not have: its next number, or one soon after it.
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

// Percent is how many of all, in percent; 0 of none.
func Percent(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
