package descriptor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// These constants are the limits of one schema set. They are checked before any file of the set is
// decoded. They leave enough room for large sets: all of Google's own API definitions together have
// about 6,000 files and 30,000 types.
const (
	maxSetBytes  = 64 << 20
	MaxFiles     = 10_000
	maxSetTypes  = 50_000
	maxSetFields = 2_000_000 // fields in the serialised descriptors, without comments
	maxMissing   = 100       // names of missing imports that are kept
	maxSetDepth  = 64        // nesting levels of types, and of options
	// bytes, as estimated for dynamic messages; the generated ones that are used here need about a
	// fifth
	maxSetMemory = 1 << 30
)

// ErrSchemaTooLarge means that a schema exceeds a limit.
var ErrSchemaTooLarge = errors.New("the schema is too large")

// AddSet adds a serialised FileDescriptorSet (`buf build -o`, `protoc --descriptor_set_out
// --include_imports`) as the newest version of the set with the given name. It returns the sorted
// full names of the message types in the set, without the package google.protobuf. If it returns an
// error, it has changed nothing. For the errors, see ReadSet.
func (r *Registry) AddSet(name string, fileDescriptorSet []byte) ([]string, error) {
	s, err := ReadSet(fileDescriptorSet)
	if err != nil {
		return nil, fmt.Errorf("descriptor set %s: %w", deadletter.Visible(name), err)
	}
	r.Add(deadletter.SchemaVersion{Name: name}, s)
	return s.Types(), nil
}

// splitSet parses the files of a set one by one. It skips everything that has no effect on how
// bodies are decoded.
func splitSet(b []byte) ([]*descriptorpb.FileDescriptorProto, error) {
	if len(b) > maxSetBytes {
		return nil, fmt.Errorf(
			"%w: %s, above %s", ErrSchemaTooLarge, deadletter.Bytes(len(b)), deadletter.Bytes(maxSetBytes),
		)
	}
	if len(b) == 0 {
		return nil, errors.New("it is empty")
	}
	var raw [][]byte
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, errNoSet
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 || num != 1 || typ != protowire.BytesType {
			return nil, errNoSet
		}
		if len(raw) == MaxFiles {
			return nil, fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, deadletter.Count(MaxFiles))
		}
		file, _ := protowire.ConsumeBytes(b[n:])
		raw = append(raw, file)
		b = b[n+m:]
	}
	// The limits of a set are checked here, by counting files, types and fields, before any file is
	// decoded.
	c := NewCaps()
	for i, file := range raw {
		if err := c.Take(file); errors.Is(err, ErrSchemaTooLarge) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("file %d: %w", i+1, err)
		}
	}
	files := make([]*descriptorpb.FileDescriptorProto, len(raw))
	for i := range raw {
		files[i] = new(descriptorpb.FileDescriptorProto)
		err := eachPart(raw[i], func(part []byte) error {
			// Anybody can define extensions of options. An empty resolver keeps them as unknown
			// fields.
			return proto.UnmarshalOptions{Resolver: new(protoregistry.Types), Merge: true}.Unmarshal(part, files[i])
		})
		if err != nil {
			return nil, fmt.Errorf("file %d: %w", i+1, PlainError(err))
		}
	}
	return files, nil
}

var errNoSet = errors.New("this is not a descriptor set")

// Caps checks the files of a set against the limits, without expanding the files.
type Caps struct {
	budget *budget.Budget
	scan   *Scan
	files  int
	types  int
	bytes  int
}

func NewCaps() *Caps {
	limits := &budget.Budget{Bytes: maxSetBytes, Fields: maxSetFields, Depth: maxSetDepth, Memory: maxSetMemory}
	return &Caps{budget: limits, scan: &Scan{Budget: limits, Types: WellKnown()}}
}

// Take counts one more file. It returns ErrSchemaTooLarge if the set now exceeds a limit. It
// returns another error if the data is not a file descriptor.
func (c *Caps) Take(file []byte) error {
	c.files++
	c.bytes += len(file)
	err := eachPart(file, func(part []byte) error {
		if err := c.scan.Run(part, fileDescriptorProto); err != nil {
			return err
		}
		c.types += countTypes(part, 4)
		return nil
	})
	tooLarge := (*budget.TooLargeError)(nil)
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Errorf("%w: %s", ErrSchemaTooLarge, tooLarge.What)
	case err != nil:
		return err
	case c.bytes > maxSetBytes:
		return fmt.Errorf("%w: more than %s", ErrSchemaTooLarge, deadletter.Bytes(maxSetBytes))
	case c.files > MaxFiles:
		return fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, deadletter.Count(MaxFiles))
	case c.types > maxSetTypes:
		return fmt.Errorf("%w: more than %s types", ErrSchemaTooLarge, deadletter.Count(maxSetTypes))
	case c.scan.Memory > c.budget.Memory:
		return fmt.Errorf(
			"%w: it would take more than %s of memory", ErrSchemaTooLarge, deadletter.Bytes(int(c.budget.Memory)),
		)
	}
	return nil
}

var fileDescriptorProto = descriptorpb.File_google_protobuf_descriptor_proto.Messages().ByName("FileDescriptorProto")

// These fields of a file have no effect on how bodies are decoded. The first one holds comments and
// positions, which often make up more than half of a file. The second one holds what buf records
// about the file in an image.
const (
	sourceInfoField = 9
	bufField        = 8042
)

// eachPart divides an encoded message into parts without the fields sourceInfoField and bufField.
// It calls f for each part. The message can be parsed from these parts one after another.
func eachPart(file []byte, f func(part []byte) error) error {
	from := 0
	for at := 0; at < len(file); {
		num, _, n := protowire.ConsumeField(file[at:])
		if n < 0 {
			return errNoSet
		}
		if num == sourceInfoField || num == bufField {
			if at > from {
				if err := f(file[from:at]); err != nil {
					return err
				}
			}
			from = at + n
		}
		at += n
	}
	if from < len(file) {
		return f(file[from:])
	}
	return nil
}

// countTypes counts the messages in the well-formed data b, including nested ones. The parameter
// "field" is 4 (message_type) in a file and 3 (nested_type) in a message.
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

// linkSet turns parsed files into a schema. Files with the same name and the same content count
// once. Compilers include their own edition of the well-known files, so the first copy of such a
// file is used.
func linkSet(files []*descriptorpb.FileDescriptorProto) (v *Schema, err error) {
	defer func() {
		if recover() != nil { // hostile descriptors can make the linker panic; see Decode
			v, err = nil, errors.New("internal error while linking")
		}
	}()
	set := &descriptorpb.FileDescriptorSet{}
	hashes := make(map[string][32]byte)
	for _, f := range files {
		b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(f)
		if err != nil {
			return nil, PlainError(err)
		}
		h := sha256.Sum256(b)
		if old, twice := hashes[f.GetName()]; twice {
			if old != h && !isWellKnownFile(f.GetName()) {
				return nil, fmt.Errorf("file %s is in it twice, with different content", withoutPath(f.GetName()))
			}
			continue
		}
		hashes[f.GetName()] = h
		separateJSONNames(f.MessageType)
		set.File = append(set.File, f)
	}
	v = &Schema{hash: hashFiles(hashes), files: len(set.File)}
	linked, err := link(set, true)
	if err != nil { // a set may contain its own copy of a well-known type, under another path
		var again error
		if linked, again = link(set, false); again != nil {
			return nil, PlainError(err)
		}
	}
	v.types = newResolver(linked)
	v.types.RangeMessages(func(md protoreflect.MessageDescriptor) {
		if !IsGoogle(md.FullName()) {
			v.names = append(v.names, string(md.FullName()))
		}
	})
	slices.Sort(v.names)
	for _, f := range set.File {
		for _, d := range f.GetDependency() {
			if _, have := hashes[d]; !have && !isWellKnownFile(d) {
				v.missing = append(v.missing, d)
			}
		}
	}
	slices.Sort(v.missing)
	v.missing = slices.Compact(v.missing)
	v.missing = v.missing[:min(len(v.missing), maxMissing)]
	v.types.Lacks = len(v.missing) > 0
	return v, nil
}

// separateJSONNames makes the JSON names of the fields of a message different. In proto2, two
// fields may have the same JSON name, for example event_type and eventType. In JSON, such fields
// get their names in the schema.
func separateJSONNames(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		separateJSONNames(m.NestedType)
		for again := true; again; { // a name in the schema may be the JSON name of a third field
			again = false
			first := map[string]*descriptorpb.FieldDescriptorProto{}
			for _, f := range m.Field {
				name := cmp.Or(f.GetJsonName(), deadletter.JSONName(f.GetName()))
				other := first[name]
				if other == nil {
					first[name] = f
					continue
				}
				again = again || f.GetJsonName() != f.GetName() || other.GetJsonName() != other.GetName()
				f.JsonName, other.JsonName = f.Name, other.Name
			}
		}
	}
}

// hashFiles returns the version of a set, which is a hash of its files. The order of the files has
// no effect.
func hashFiles(hashes map[string][32]byte) string {
	all := sha256.New()
	for _, n := range slices.Sorted(maps.Keys(hashes)) {
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
		for _, f := range slices.Backward(wellKnownFiles) {
			// The files api.proto and type.proto import other well-known files.
			if !have[f.Path()] && (want[f.Path()] || want["google/protobuf/api.proto"] ||
				want["google/protobuf/type.proto"]) {
				with.File = append(with.File, protodesc.ToFileDescriptorProto(f))
			}
		}
		set = with
	}
	return protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(set)
}
