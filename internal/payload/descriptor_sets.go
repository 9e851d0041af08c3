package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Caps of one set, checked before anything is expanded. Google's own API definitions, all of them, are some 6,000 files and 30,000 types.
const (
	maxSetBytes  = 64 << 20
	maxSetFiles  = 10_000
	maxSetTypes  = 50_000
	maxSetFields = 2_000_000 // wire fields of the descriptors, comments not counted
	maxSetDepth  = 64        // types in types, and options in options
	maxSetMemory = 1 << 30   // by the estimate for dynamic messages; the generated ones used here take about a fifth
)

// ErrSchemaTooLarge is what a set above a cap is refused with.
var ErrSchemaTooLarge = errors.New("the schema is too large")

// AddSet adds a serialised google.protobuf.FileDescriptorSet (`buf build -o`, `protoc --descriptor_set_out --include_imports`) as the newest version
// of the set name, and returns the full names of its message types, sorted, without the package google.protobuf. Imports that the set does not
// contain are left unresolved, except for the well-known types, which are brought. On an error nothing has changed; ErrSchemaTooLarge says
// that a cap was passed.
func (r *Registry) AddSet(name string, fileDescriptorSet []byte) ([]string, error) {
	v, err := readSet(name, fileDescriptorSet)
	if err != nil {
		return nil, fmt.Errorf("descriptor set %s: %w", visible(name, ""), err)
	}
	r.add(v)
	return append([]string(nil), v.names...), nil
}

func readSet(name string, b []byte) (*version, error) {
	files, err := splitSet(b)
	if err != nil {
		return nil, err
	}
	return linkSet(name, files)
}

// splitSet reads the files of a set one by one, without their source info (comments and positions: often more than half, not used here).
func splitSet(b []byte) ([]*descriptorpb.FileDescriptorProto, error) {
	if len(b) > maxSetBytes {
		return nil, fmt.Errorf("%w: %s, above %s", ErrSchemaTooLarge, bytesText(len(b)), bytesText(maxSetBytes))
	}
	if len(b) == 0 {
		return nil, errors.New("it is empty")
	}
	var raw [][]byte
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, errors.New("this is no descriptor set")
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 || num != 1 || typ != protowire.BytesType {
			return nil, errors.New("this is no descriptor set")
		}
		if len(raw) == maxSetFiles {
			return nil, fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, count(maxSetFiles))
		}
		file, _ := protowire.ConsumeBytes(b[n:])
		raw = append(raw, file)
		b = b[n+m:]
	}
	// Scan everything before expanding anything.
	budget := &Budget{Bytes: maxSetBytes, Fields: maxSetFields, Depth: maxSetDepth, Memory: maxSetMemory}
	s := &scan{budget: budget, types: wellKnown()}
	types := 0
	for i, file := range raw {
		file, err := dropField(file, 9) // source_code_info
		if err != nil {
			return nil, fmt.Errorf("file %d: this is no descriptor set", i+1)
		}
		raw[i] = file
		if err := s.run(file, fileDescriptorProto); err != nil {
			if tooLarge := (*tooLargeError)(nil); errors.As(err, &tooLarge) {
				return nil, fmt.Errorf("%w: %s", ErrSchemaTooLarge, tooLarge.what)
			}
			return nil, fmt.Errorf("file %d: %w", i+1, err)
		}
		if types += countTypes(file, 4); types > maxSetTypes {
			return nil, fmt.Errorf("%w: more than %s types", ErrSchemaTooLarge, count(maxSetTypes))
		}
	}
	if err := budget.takeMemory(s.memory); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrSchemaTooLarge, err)
	}
	files := make([]*descriptorpb.FileDescriptorProto, len(raw))
	for i := range raw {
		files[i] = new(descriptorpb.FileDescriptorProto)
		// Options may hold extensions of anybody; an empty resolver keeps them as unknown fields.
		if err := (proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}).Unmarshal(raw[i], files[i]); err != nil {
			return nil, fmt.Errorf("file %d: %w", i+1, plainError(err))
		}
	}
	return files, nil
}

var fileDescriptorProto = descriptorpb.File_google_protobuf_descriptor_proto.Messages().ByName("FileDescriptorProto")

// dropField copies b without the fields of that number, or returns b itself when it has none.
func dropField(b []byte, drop protowire.Number) ([]byte, error) {
	var out []byte
	copied := false
	for rest := b; len(rest) > 0; {
		num, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		switch {
		case num == drop && !copied:
			out, copied = append(out, b[:len(b)-len(rest)]...), true
		case num != drop && copied:
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	if !copied {
		return b, nil
	}
	return out, nil
}

// countTypes counts the messages in well-formed b, with those nested in them. Field is 4 (message_type) in a file and 3 (nested_type) in a message.
func countTypes(b []byte, field protowire.Number) int {
	total := 0
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return total
		}
		if num == field && typ == protowire.BytesType {
			_, _, t := protowire.ConsumeTag(b)
			inner, _ := protowire.ConsumeBytes(b[t:])
			total += 1 + countTypes(inner, 3)
		}
		b = b[n:]
	}
	return total
}

// linkSet makes a version of parsed files. Files that are given twice with one content count once.
func linkSet(name string, files []*descriptorpb.FileDescriptorProto) (v *version, err error) {
	defer func() {
		if recover() != nil { // hostile descriptors; see Decode
			v, err = nil, errors.New("internal error while linking")
		}
	}()
	set := &descriptorpb.FileDescriptorSet{}
	hashes := make(map[string][32]byte)
	for _, f := range files {
		b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(f)
		if err != nil {
			return nil, plainError(err)
		}
		h := sha256.Sum256(b)
		if old, twice := hashes[f.GetName()]; twice {
			if old != h {
				return nil, fmt.Errorf("file %s is in it twice, with different content", withoutPath(f.GetName()))
			}
			continue
		}
		hashes[f.GetName()] = h
		set.File = append(set.File, f)
	}
	v = &version{set: name, hash: hashFiles(hashes), files: len(set.File)}
	linked, err := link(set, true)
	if err != nil { // a set may have its own copy of a well-known type under another path
		var again error
		if linked, again = link(set, false); again != nil {
			return nil, plainError(err)
		}
	}
	v.types = newResolver(linked)
	v.types.rangeMessages(func(md protoreflect.MessageDescriptor) {
		if !isGoogle(md.FullName()) {
			v.names = append(v.names, string(md.FullName()))
		}
	})
	sort.Strings(v.names)
	return v, nil
}

// hashFiles is the version of a set: independent of the order of its files.
func hashFiles(hashes map[string][32]byte) string {
	names := make([]string, 0, len(hashes))
	for n := range hashes {
		names = append(names, n)
	}
	sort.Strings(names)
	all := sha256.New()
	for _, n := range names {
		h := hashes[n]
		fmt.Fprintf(all, "%d:%s", len(n), n)
		all.Write(h[:])
	}
	return hex.EncodeToString(all.Sum(nil))
}

func link(set *descriptorpb.FileDescriptorSet, bring bool) (*protoregistry.Files, error) {
	if bring {
		have, want := make(map[string]bool), make(map[string]bool)
		for _, f := range set.File {
			have[f.GetName()] = true
			for _, d := range f.GetDependency() {
				want[d] = true
			}
		}
		with := &descriptorpb.FileDescriptorSet{File: set.File[:len(set.File):len(set.File)]}
		for i := len(wellKnownFiles) - 1; i >= 0; i-- {
			f := wellKnownFiles[i]
			// Api and Type import others of these.
			if !have[f.Path()] && (want[f.Path()] || want["google/protobuf/api.proto"] || want["google/protobuf/type.proto"]) {
				with.File = append(with.File, protodesc.ToFileDescriptorProto(f))
			}
		}
		set = with
	}
	return protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(set)
}
