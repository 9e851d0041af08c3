package descriptor

import (
	"github.com/klauspost/compress/zstd"
)

// Schema is the content of a descriptor set, linked. It does not change, and is in no registry by
// itself.
type Schema struct {
	hash   string // SHA-256 of the files without their comments, hex
	types  *Resolver
	names  []string // of the message types, sorted, without google.protobuf
	files  int
	packed []byte // the serialised FileDescriptorSet as it came, comments included; zstd
}

// ReadSet reads a serialised google.protobuf.FileDescriptorSet, or an image of buf. Imports that it
// does not contain are left unresolved, except for the well-known types, which are brought.
// ErrSchemaTooLarge says that a cap was passed.
func ReadSet(fileDescriptorSet []byte) (*Schema, error) {
	files, err := splitSet(fileDescriptorSet)
	if err != nil {
		return nil, err
	}
	s, err := linkSet(files)
	if err != nil {
		return nil, err
	}
	if s.packed, err = packed(fileDescriptorSet); err != nil {
		return nil, err
	}
	return s, nil
}

// Version is the SHA-256 of the content, 64 hex digits. Comments do not count.
func (s *Schema) Version() string { return s.hash }

// Types returns the full names of the message types, sorted, without map entries and without the
// package google.protobuf.
func (s *Schema) Types() []string { return append([]string(nil), s.names...) }

// Resolver finds the types of the set.
func (s *Schema) Resolver() *Resolver { return s.types }

// Files is how many files the set has.
func (s *Schema) Files() int { return s.files }

// Content returns the set as a serialised FileDescriptorSet: of sources, what they compile to, with
// their comments.
func (s *Schema) Content() ([]byte, error) { return unpacked(s.packed) }

// packed makes a content small: descriptors compress to a fifth or less, and are asked for seldom.
func packed(b []byte) ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.EncodeAll(b, nil), nil
}

func unpacked(b []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSetBytes))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(b, nil)
}
