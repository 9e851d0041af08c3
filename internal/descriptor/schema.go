package descriptor

import (
	"github.com/klauspost/compress/zstd"
)

// Schema is the linked content of a descriptor set. It is immutable, and independent of any
// registry.
type Schema struct {
	hash    string // SHA-256 of the files without comments, in hex
	types   *Resolver
	names   []string // sorted names of the message types, without google.protobuf
	files   int
	missing []string // see Missing
	packed  []byte   // the FileDescriptorSet as it was received, with comments, compressed with zstd
}

// ReadSet reads a serialised google.protobuf.FileDescriptorSet or a buf image. It adds the
// well-known types. Other missing imports stay unresolved. The error wraps ErrSchemaTooLarge if the
// set exceeds a limit.
func ReadSet(fileDescriptorSet []byte) (*Schema, error) {
	files, err := splitSet(fileDescriptorSet)
	if err != nil {
		return nil, err
	}
	s, err := linkSet(files)
	if err != nil {
		return nil, err
	}
	if s.packed, err = compress(fileDescriptorSet); err != nil {
		return nil, err
	}
	return s, nil
}

// Version returns the SHA-256 of the content without comments, as 64 hex digits.
func (s *Schema) Version() string { return s.hash }

// Missing returns the sorted names of at most 100 files that the schema imports and does not
// contain, without the well-known ones. Fields whose types they define are unresolved, and options
// that they define have no effect.
func (s *Schema) Missing() []string { return s.missing }

// LostBy returns a file that the schema contains, and that a newer version imports and lacks. It
// returns "" if there is no such file.
func (s *Schema) LostBy(newer *Schema) string {
	for _, name := range newer.missing {
		if _, err := s.types.Files.FindFileByPath(name); err == nil {
			return name
		}
	}
	return ""
}

// Types returns the sorted full names of the message types, without map entries and without the
// package google.protobuf.
func (s *Schema) Types() []string { return append([]string(nil), s.names...) }

// Resolver returns the resolver for the types of the set.
func (s *Schema) Resolver() *Resolver { return s.types }

// Files returns the number of files in the set.
func (s *Schema) Files() int { return s.files }

// Content returns the set as a serialised FileDescriptorSet. If the schema was read from .proto
// files, this is the compiled set, with comments.
func (s *Schema) Content() ([]byte, error) { return decompress(s.packed) }

// compress compresses the content of a set. This saves memory, because descriptors shrink to a
// fifth or less and are rarely needed.
func compress(b []byte) ([]byte, error) {
	w, err := zstd.NewWriter(
		nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20),
	)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.EncodeAll(b, nil), nil
}

func decompress(b []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSetBytes))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(b, nil)
}
