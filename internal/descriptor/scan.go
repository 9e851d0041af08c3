package descriptor

import (
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/deadletteroffice/dlo/internal/budget"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// These constants are the memory that dynamicpb and protojson allocate, in bytes. They are rounded
// up from measurements with protobuf 1.36.12 on Go 1.26. An empty sub-message takes 369 bytes, and
// a sub-message with a field takes 658; its JSON adds 300 bytes. An element of a list takes 129 to
// 145 bytes, and its JSON adds 25. A map entry takes 165 bytes, and its JSON adds 624. An unknown
// field takes 63 bytes.
const (
	CostMessage  = 1000
	CostField    = 200
	costMapEntry = 800
	costUnknown  = 80

	// Each byte of unknown fields takes several bytes of memory when it is decoded. costUnknownByte
	// says how many for the first unknown field of a message. costUnknownMore says how many for
	// further unknown fields, which are appended to a slice that grows by a quarter whenever it is
	// full. With 16 MiB of further fields, 6.2 bytes per byte were measured.
	costUnknownByte = 4
	costUnknownMore = 7
)

// Scan reads a body at the wire level, as a given message type. It finds everything that the
// decoder would find, but allocates nothing. It adds up how much memory decoding would need. It
// stops with a *budget.TooLargeError if the body exceeds a limit of the budget, or with a
// *malformedError if the decoder would fail.
type Scan struct {
	Budget *budget.Budget
	Types  *Resolver

	whole int // capacity of the slice of the whole body; a position is the difference of two capacities

	Known, Unknown int // numbers of fields
	// the scan has met a known sub-message or packed list, which counts as known only when it is
	// complete
	Entered      bool
	UnknownBytes int64 // bytes of unknown fields, including their tags
	// by type URL, the definitions for the contents of Anys that fit better than the first of
	// AnyContent
	Contents  map[string]*Type
	Memory    int64 // estimated memory in bytes for dynamicpb, protojson and the tree
	JsonBytes int64 // estimated size in bytes of the compact protojson
	factor    int64 // how often this part of the body is decoded; more than once in google.protobuf.Any
}

// malformedError says where and how a body violates the wire format.
type malformedError struct {
	at   int // byte offset in the body
	what string
}

func (e *malformedError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.at) }

func (s *Scan) Run(b []byte, md protoreflect.MessageDescriptor) error {
	s.whole, s.factor = cap(b), max(s.factor, 1)
	_, err := s.message(b, md, 1, 0)
	return err
}

func (s *Scan) malformed(b []byte, what string) error {
	return &malformedError{at: s.whole - cap(b), what: what}
}

// wireError turns a negative length that protowire returned into an error.
func (s *Scan) wireError(b []byte, n int) error {
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		return s.malformed(b, "truncated")
	}
	return s.malformed(b, "it breaks the wire format")
}

// message reads the fields of the message type md from b. It stops at the end of b, or at the tag
// that ends the protobuf group with the number "group". It returns the rest of b.
func (s *Scan) message(b []byte, md protoreflect.MessageDescriptor, depth int, group protowire.Number) ([]byte, error) {
	if err := s.Budget.Enter(depth); err != nil {
		return nil, err
	}
	s.Entered = s.Entered || depth > 1
	s.Memory += CostMessage * s.factor
	s.JsonBytes += 2
	isAny := md.FullName() == "google.protobuf.Any"
	var url, content []byte
	perByte := int64(costUnknownByte)
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, s.wireError(b, n)
		}
		if typ == protowire.EndGroupType {
			if num != group {
				return nil, s.malformed(b, "a group ends that did not begin")
			}
			return b[n:], nil
		}
		if err := s.Budget.TakeField(); err != nil {
			return nil, err
		}
		value := b[n:]
		if isAny && typ == protowire.BytesType {
			if p, m := protowire.ConsumeBytes(value); m >= 0 {
				switch num {
				case 1:
					url = p
				case 2:
					content = p
				}
			}
		}
		fd := s.Types.Field(md, num)
		rest, known, err := s.value(value, fd, num, typ, depth)
		if err != nil {
			return nil, err
		}
		if known {
			s.Known++
			s.JsonBytes += int64(len(fd.JSONName())) + 4
			s.Memory += CostField * s.factor
		} else {
			size := int64(len(b) - len(rest))
			s.Unknown++
			s.UnknownBytes += size
			s.Memory += (costUnknown + perByte*size) * s.factor
			perByte = costUnknownMore
		}
		b = rest
	}
	if group != 0 {
		return nil, s.malformed(b, "a group does not end")
	}
	if isAny && len(url) > 0 && len(url) < 1024 {
		if err := s.content(string(url), content, depth); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// content scans the content of an Any as the definition of its type that leaves the fewest bytes
// unknown. If no definition fits, this is no reason to stop, because the content is then shown as
// bytes. The scan stops only if the content is too large.
func (s *Scan) content(url string, content []byte, depth int) error {
	defs := s.Types.AnyContent(url)
	before, best, chosen := *s, *s, -1
	for i, def := range defs {
		try := before
		// the content is decoded for the tree, for the JSON, and again by protojson
		try.Types, try.factor = def.Types, min(s.factor*3, 27)
		_, err := try.message(content, def.Desc, depth+1, 0)
		if _, bad := err.(*malformedError); bad {
			best.Memory, best.JsonBytes = max(best.Memory, try.Memory), max(best.JsonBytes, try.JsonBytes)
			continue
		}
		if err != nil {
			return err
		}
		if chosen < 0 || try.UnknownBytes < best.UnknownBytes {
			best, chosen = try, i
		}
		if best.UnknownBytes == before.UnknownBytes {
			break
		}
	}
	*s = best
	s.Types, s.factor = before.Types, before.factor
	if chosen > 0 {
		s.Contents = maps.Clone(s.Contents)
		if s.Contents == nil {
			s.Contents = map[string]*Type{}
		}
		s.Contents[url] = defs[chosen]
	}
	return nil
}

// value reads one value. It returns the bytes after the value, and whether the decoder would accept
// it as a value of the field "fd".
func (s *Scan) value(
	b []byte, fd protoreflect.FieldDescriptor, num protowire.Number, typ protowire.Type, depth int,
) (rest []byte, known bool, err error) {
	if fd == nil {
		rest, err = s.skip(b, num, typ)
		return rest, false, err
	}
	kind, n := fd.Kind(), 0
	var p []byte // content of a length-delimited value
	if typ == protowire.BytesType {
		if p, n = protowire.ConsumeBytes(b); n < 0 {
			return nil, false, s.wireError(b, n)
		}
	}
	switch {
	case kind == protoreflect.GroupKind && typ == protowire.StartGroupType:
		rest, err = s.message(b, fd.Message(), depth+1, num)
		return rest, true, err
	case kind == protoreflect.MessageKind && typ == protowire.BytesType:
		if fd.IsMap() {
			s.Memory += costMapEntry * s.factor
		}
		if _, err := s.message(p, fd.Message(), depth+1, 0); err != nil {
			return nil, false, err
		}
		return b[n:], true, nil
	case typ == protowire.BytesType && fd.IsList() && Packable(kind):
		return b[n:], true, s.packed(p, WireType(kind))
	case WireType(kind) != typ:
		rest, err = s.skip(b, num, typ)
		return rest, false, err
	case typ == protowire.BytesType:
		s.Memory += int64(len(p)) * s.factor
		if kind == protoreflect.StringKind {
			s.JsonBytes += jsonSize(p)
		} else {
			s.JsonBytes += int64(len(p))*4/3 + 6
		}
		return b[n:], true, nil
	}
	s.JsonBytes += 22
	rest, err = s.skip(b, num, typ)
	return rest, true, err
}

func (s *Scan) skip(b []byte, num protowire.Number, typ protowire.Type) ([]byte, error) {
	n := protowire.ConsumeFieldValue(num, typ, b)
	if n < 0 {
		return nil, s.wireError(b, n)
	}
	return b[n:], nil
}

func (s *Scan) packed(p []byte, typ protowire.Type) error {
	s.Entered = true
	for len(p) > 0 {
		n := protowire.ConsumeFieldValue(1, typ, p)
		if n < 0 {
			return s.wireError(p, n)
		}
		if err := s.Budget.TakeField(); err != nil {
			return err
		}
		s.Memory += CostField * s.factor
		s.JsonBytes += 23
		p = p[n:]
	}
	return nil
}

// jsonSize returns the length of the text p as a JSON string, in bytes.
func jsonSize(p []byte) int64 {
	n := int64(len(p)) + 2
	for _, c := range p {
		switch {
		case c < ' ':
			n += 5
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}

func Packable(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return k.IsValid()
}

// WireType returns the wire type of a field that is not packed. It returns -1 for an unknown kind.
// A type from an unresolved import has such a kind.
func WireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Uint32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Uint64Kind:
		return protowire.VarintType
	case protoreflect.Sfixed32Kind, protoreflect.Fixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Sfixed64Kind, protoreflect.Fixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return -1
}
