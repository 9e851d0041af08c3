package descriptor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	//lint:ignore SA1019 protocompile has no printer; only this file uses it
	"github.com/jhump/protoreflect/desc"
	"github.com/jhump/protoreflect/desc/protoprint"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// These are the limits for showing a type as .proto.
const (
	maxPrinted       = 256 << 10 // bytes of text; the rest is omitted
	maxPrintedFields = 5_000     // fields, enum values, and fields of nested types
	maxPrintedFrom   = 8 << 20   // bytes of the type's file and of all its imports, without comments
	// bytes of comments and positions in the type's file; if they are larger, they are omitted
	maxComments = 2 << 20
)

// Definition is one definition of a type.
type Definition struct {
	Set     string `json:"set"`
	Version string `json:"version"`
	Current bool   `json:"current"` // the definition belongs to the newest version of its set
	File    string `json:"file"`    // the name of the file in the set
	Fields  int    `json:"fields"`
}

// Source is a type in .proto syntax.
type Source struct {
	Type        string       `json:"type"`
	Text        string       `json:"text"`        // untrusted, with comments and nested types, at most 256 KiB
	Cut         bool         `json:"cut"`         // a part of the text is omitted
	Definitions []Definition `json:"definitions"` // the current ones come first; Text shows the first
}

// ErrNoType means that no set defines a type.
var ErrNoType = errors.New("no set defines this type")

// Source returns a type in .proto syntax. The parameter "typ" is the full name of the type. It may
// also be a short name, if only one type has this short name.
func (r *Registry) Source(typ string) (Source, error) {
	defs, ambiguous := r.Lookup(typ)
	if len(ambiguous) > 0 {
		return Source{}, fmt.Errorf(
			"%w: several types have this short name: %s", ErrNoType, strings.Join(ambiguous, ", "),
		)
	}
	if len(defs) == 0 || defs[0].Types.Files == WellKnown().Files {
		return Source{}, ErrNoType
	}
	out := Source{Type: string(defs[0].Desc.FullName())}
	shown := Own()
	if defs[0].Types == shown.types {
		out.Definitions = []Definition{
			{ownSet, shown.hash, true, defs[0].Desc.ParentFile().Path(), defs[0].Desc.Fields().Len()},
		}
	} else {
		out.Definitions, shown = r.definitions(defs)
	}
	if shown == nil {
		return Source{}, ErrNoType // the set was removed in the meantime
	}
	text, err := shown.print(defs[0].Desc)
	if err != nil {
		return Source{}, fmt.Errorf("show %s: %w", out.Type, err)
	}
	end := min(len(text), maxPrinted)
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	out.Text, out.Cut = text[:end], end < len(text)
	return out, nil
}

// definitions lists the places where the sets define a type. The result "shown" is the schema of
// the first definition. It is nil if that schema has been removed in the meantime.
func (r *Registry) definitions(defs []*Type) (list []Definition, shown *Schema) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, d := range defs {
		for _, versions := range r.sets {
			for i, v := range versions {
				if v.types != d.Types {
					continue
				}
				list = append(list, Definition{
					v.about.Name, v.hash, i == len(versions)-1, d.Desc.ParentFile().Path(), d.Desc.Fields().Len(),
				})
				if shown == nil {
					shown = v.Schema
				}
			}
		}
	}
	return list, shown
}

// print returns a type of the schema in .proto syntax.
func (s *Schema) print(md protoreflect.MessageDescriptor) (text string, err error) {
	if n := countElements(md); n > maxPrintedFields {
		return "", fmt.Errorf("%w to be shown: %s fields and values", ErrSchemaTooLarge, deadletter.Count(n))
	}
	content, err := s.Content()
	if err != nil {
		return "", err
	}
	files, missing, err := importedBy(content, md.ParentFile().Path())
	if err != nil {
		return "", err
	}
	defer func() {
		if recover() != nil { // hostile descriptors can cause a panic; see Decode
			text, err = "", errors.New("internal error while writing it")
		}
	}()
	files = slices.Concat(standIns(files, missing), files)
	fd, err := desc.CreateFileDescriptorFromSet(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		return "", PlainError(err)
	}
	m := fd.FindMessage(string(md.FullName()))
	if m == nil {
		return "", ErrNoType
	}
	p := protoprint.Printer{OmitComments: protoprint.CommentsDetached | protoprint.CommentsTokens, Compact: true}
	return p.PrintProtoToString(m)
}

// countElements returns the size of a message type in .proto syntax: the number of its fields,
// extensions, enum values and nested messages, at all levels.
func countElements(md protoreflect.MessageDescriptor) int {
	n := md.Fields().Len() + md.Extensions().Len()
	for i := range md.Enums().Len() {
		n += md.Enums().Get(i).Values().Len()
	}
	for i := range md.Messages().Len() {
		n += 1 + countElements(md.Messages().Get(i))
	}
	return n
}

// importedBy returns a file of a set and all files that it imports. The file itself comes last and
// keeps its comments; the imported files have none. If the set lacks an imported file, the result
// "missing" contains an empty file with that name.
func importedBy(content []byte, name string) (files, missing []*descriptorpb.FileDescriptorProto, err error) {
	raw := make(map[string][]byte)
	for b := content; len(b) > 0; {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 || num != 1 {
			return nil, nil, errNoSet
		}
		_, _, t := protowire.ConsumeTag(b)
		file, _ := protowire.ConsumeBytes(b[t:])
		if path := FileName(file); raw[path] == nil {
			raw[path] = file
		}
		b = b[n:]
	}
	seen := map[string]bool{}
	size := 0
	var add func(path string) error
	add = func(path string) error {
		if seen[path] {
			return nil
		}
		seen[path] = true
		f := new(descriptorpb.FileDescriptorProto)
		if b := raw[path]; b != nil {
			comments := len(b)
			err := eachPart(b, func(part []byte) error {
				if size += len(part); size > maxPrintedFrom {
					return fmt.Errorf(
						"%w to be shown: its file and what it imports have more than %s", ErrSchemaTooLarge,
						deadletter.Bytes(maxPrintedFrom),
					)
				}
				comments -= len(part)
				return proto.UnmarshalOptions{Resolver: new(protoregistry.Types), Merge: true}.Unmarshal(part, f)
			})
			if err != nil {
				return err
			}
			if path == name && comments <= maxComments {
				if err := (proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}).Unmarshal(b, f); err != nil {
					return PlainError(err)
				}
			}
		} else if i := wellKnownFile(path); i >= 0 {
			f = protodesc.ToFileDescriptorProto(wellKnownFiles[i])
		} else {
			f.Name = &path
			missing = append(missing, f)
		}
		for _, d := range f.GetDependency() {
			if err := add(d); err != nil {
				return err
			}
		}
		files = append(files, f)
		return nil
	}
	err = add(name)
	return files, missing, err
}

// FileName returns the file name that a serialised FileDescriptorProto contains.
func FileName(b []byte) (name string) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return name
		}
		if num == 1 && typ == protowire.BytesType {
			_, _, t := protowire.ConsumeTag(b)
			v, _ := protowire.ConsumeBytes(b[t:])
			name = string(v)
		}
		b = b[n:]
	}
	return name
}

// Imports reports whether a serialised FileDescriptorProto imports any file.
func Imports(b []byte) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		switch {
		case n < 0:
			return false
		case num == 3 && typ == protowire.BytesType:
			return true
		}
		b = b[n:]
	}
	return false
}
