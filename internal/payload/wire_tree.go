package payload

import (
	"math/bits"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// These are the limits of a wireTree. Anything beyond them is not compared, and the tree is marked
// as cut.
const (
	maxWireNodes  = 2_000
	maxWireDepth  = 32
	maxWireFields = 200_000 // maximum number of fields that are read, whether they become nodes or not
	// maximum number of bytes examined; a byte counts once for each level to which it may belong
	maxWireWork = 32 << 20
)

// wireNode is one field on the wire. If its content may be a message, the nodes of this content
// come directly after the wireNode. The field "next" is the index after the last of them.
type wireNode struct {
	num    int32
	next   int32 // index of the first node after this one and all nodes below it
	at     int32 // for a length-delimited field, the start of its content
	length int32 // length of the content
	size   int32 // size of the field, including the tag
	wire   int8
	flags  nodeFlags
	value  uint64 // value of a field that is not length-delimited
}

type nodeFlags uint8

const (
	nodeUTF8      nodeFlags = 1 << iota
	nodeText                // UTF-8 without control characters other than tabs and line ends
	nodeMessage             // the content ends where a field ends
	nodeLikely              // also, all field numbers are below 10,000, which is rarely true by chance
	nodeVarints             // the content ends where a varint ends
	nodeLong                // the tag, the length or the value is a longer varint than necessary
	nodeLongInner           // a varint in the content is longer than necessary
)

func (n *wireNode) hasFlag(f nodeFlags) bool { return n.flags&f != 0 }

// wireTree is a body that was parsed without knowing its type. It is parsed only once, and all
// candidate types are then compared with it. Whatever may be a message is parsed as a message, and
// it is recorded which contents are valid texts.
type wireTree struct {
	body   []byte
	nodes  []wireNode
	bytes  int64 // number of bytes in top-level fields that have nodes
	cut    bool  // a part of the body has no nodes
	fields int64 // number of fields read so far
	limit  int64 // maximum number of fields
	work   int64
}

// read parses a body. It reports whether the body has the wire format at its top level, and does
// not have too many fields.
func (t *wireTree) read(body []byte, limit int64) bool {
	*t = wireTree{body: body, nodes: t.nodes[:0], limit: min(limit, maxWireFields)}
	if message, _ := t.walk(0, len(body)); !message || t.cut {
		return false
	}
	t.record(0, len(body), 1)
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		t.bytes += int64(t.nodes[i].size)
	}
	return true
}

// walk reads the fields of a range. The result "message" is true if the range ends where a field
// ends. The result "likely" is true if all field numbers in it are below 10,000.
func (t *wireTree) walk(from, to int) (message, likely bool) {
	t.work += int64(to - from)
	likely = true
	for b := t.body[from:to]; len(b) > 0; {
		if t.fields++; t.fields > t.limit {
			t.cut = true
			return true, likely
		}
		num, _, n := protowire.ConsumeField(b)
		if n < 0 || num > protowire.MaxValidNumber {
			return false, false
		}
		likely = likely && num < 10_000
		b = b[n:]
	}
	return true, likely
}

// record adds the nodes of a range to the tree. The method "walk" must have accepted this range.
func (t *wireTree) record(from, to, depth int) {
	for at := from; at < to; {
		if len(t.nodes) >= maxWireNodes || t.work > maxWireWork || t.cut && depth > 1 {
			t.cut = true
			return
		}
		num, wire, n := protowire.ConsumeTag(t.body[at:to])
		if n < 0 {
			return
		}
		node := wireNode{num: int32(num), wire: int8(wire)}
		if n > protowire.SizeTag(num) {
			node.flags |= nodeLong
		}
		i := len(t.nodes)
		t.nodes = append(t.nodes, node)
		size := t.value(i, at+n, to, depth)
		if size < 0 {
			t.nodes = t.nodes[:i]
			return
		}
		t.nodes[i].size = int32(n + size)
		t.nodes[i].next = int32(len(t.nodes))
		at += n + size
	}
}

// value sets a node from the bytes after its tag, and returns how many bytes it has used.
func (t *wireTree) value(i, at, to, depth int) int {
	b := t.body[at:to]
	switch protowire.Type(t.nodes[i].wire) {
	case protowire.VarintType:
		v, n := protowire.ConsumeVarint(b)
		t.nodes[i].value = v
		if n > protowire.SizeVarint(v) {
			t.nodes[i].flags |= nodeLong
		}
		return n
	case protowire.Fixed32Type:
		v, n := protowire.ConsumeFixed32(b)
		t.nodes[i].value = uint64(v)
		return n
	case protowire.Fixed64Type:
		v, n := protowire.ConsumeFixed64(b)
		t.nodes[i].value = v
		return n
	case protowire.BytesType:
		length, n := protowire.ConsumeVarint(b)
		if n < 0 || length > uint64(len(b)-n) {
			return -1
		}
		if n > protowire.SizeVarint(length) {
			t.nodes[i].flags |= nodeLong
		}
		t.content(i, at+n, int(length), depth)
		return n + int(length)
	case protowire.StartGroupType:
		p, n := protowire.ConsumeGroup(protowire.Number(t.nodes[i].num), b)
		if n < 0 {
			return -1
		}
		t.work += int64(2 * len(p))
		t.nodes[i].at, t.nodes[i].length = int32(at), int32(len(p))
		t.nodes[i].flags |= nodeMessage
		if depth < maxWireDepth {
			t.record(at, at+len(p), depth+1)
		} else {
			t.cut = true
		}
		return n
	}
	return -1
}

// content finds out what a length-delimited field may contain.
func (t *wireTree) content(i, at, length, depth int) {
	p := t.body[at : at+length]
	t.work += int64(2 * length)
	flags := t.nodes[i].flags
	if utf8.Valid(p) {
		flags |= nodeUTF8
		if withoutControls(p) {
			flags |= nodeText
		}
	}
	flags |= varints(p)
	message, likely := t.walk(at, at+length)
	if message {
		flags |= nodeMessage
	}
	if likely {
		flags |= nodeLikely
	}
	t.nodes[i].at, t.nodes[i].length, t.nodes[i].flags = int32(at), int32(length), flags
	if message && length > 0 {
		if depth < maxWireDepth {
			t.record(at, at+length, depth+1)
		} else {
			t.cut = true
		}
	}
}

func withoutControls(p []byte) bool {
	return !slices.ContainsFunc(
		p, func(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f },
	)
}

// varints reports whether p is a sequence of varints, and whether one of them is longer than
// necessary.
func varints(p []byte) (flags nodeFlags) {
	run := 0
	for _, c := range p {
		switch {
		case c >= 0x80:
			if run++; run >= 10 {
				return 0
			}
			continue
		case run == 9 && c > 1:
			return 0
		case run > 0 && c == 0:
			flags |= nodeLongInner
		}
		run = 0
	}
	if run > 0 {
		return 0
	}
	return flags | nodeVarints
}

// outline summarises the top level of a body. For each wire type, it holds the field numbers below
// 64 as the bits of a word, so that a few instructions can compare it with a signature.
type outline struct {
	by                                             [wires]uint64     // field numbers by wire type
	size                                           [wires][64]uint32 // bytes of each field, with tags
	notUTF, notMessage, notVarints, not32s, not64s uint64
}

// The wire types of an outline.
const (
	wireVarint = iota
	wire32
	wire64
	wireBytes
	wireGroup
	wires
)

func wireIndex(w int8) int {
	switch protowire.Type(w) {
	case protowire.Fixed32Type:
		return wire32
	case protowire.Fixed64Type:
		return wire64
	case protowire.BytesType:
		return wireBytes
	case protowire.StartGroupType:
		return wireGroup
	}
	return wireVarint
}

func (o *outline) fill(t *wireTree) {
	*o = outline{}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		n := &t.nodes[i]
		if n.num >= 64 {
			continue
		}
		bit, w := uint64(1)<<n.num, wireIndex(n.wire)
		o.by[w] |= bit
		o.size[w][n.num] += uint32(n.size)
		if w != wireBytes {
			continue
		}
		if !n.hasFlag(nodeUTF8) {
			o.notUTF |= bit
		}
		if !n.hasFlag(nodeMessage) {
			o.notMessage |= bit
		}
		if !n.hasFlag(nodeVarints) {
			o.notVarints |= bit
		}
		if n.length%4 != 0 {
			o.not32s |= bit
		}
		if n.length%8 != 0 {
			o.not64s |= bit
		}
	}
}

// refuses reports whether the signature of a type proves that the type does not fit the body. A
// type does not fit if it cannot decode the body, or if it leaves more bytes unknown than the
// parameter "unread" allows. If refuses returns false, the type may fit, and only the full
// comparison shows whether it does.
func (o *outline) refuses(s *signature, unread int64) bool {
	if s.texts&o.notUTF|s.messages&o.notMessage|s.varints&o.notVarints|s.fixed32s&o.not32s|s.fixed64s&o.not64s != 0 {
		return true
	}
	unknown := [wires]uint64{
		o.by[wireVarint] &^ s.varint, o.by[wire32] &^ s.fixed32, o.by[wire64] &^ s.fixed64,
		o.by[wireBytes] &^ (s.texts | s.messages | s.bytes | s.varints | s.fixed32s | s.fixed64s),
		o.by[wireGroup] &^ s.groups,
	}
	var n int64
	for w := range unknown {
		for set := unknown[w]; set != 0; set &= set - 1 {
			if n += int64(o.size[w][bits.TrailingZeros64(set)]); n > unread {
				return true
			}
		}
	}
	return false
}
