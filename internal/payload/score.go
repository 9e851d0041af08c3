package payload

import (
	"bytes"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// These are the thresholds and weights for the scores of a ranking.
const (
	listedFrom  = 0.50 // a type with a lower score is not listed
	matchedFrom = 0.80 // if the best score is lower, it is not a match
	margin      = 0.04 // types whose ranks differ by no more than this are tied
	coverWeight = 0.03 // less than margin, so that covering more fields sorts types but never decides
	priorWeight = 0.25 // the weight of a prior of 1
	enoughBits  = 20   // bits of evidence that a match needs

	unreadMost = 0.43 // if the share of unknown bytes is higher, no type can reach listedFrom
)

const maxElements = 64 // maximum number of elements of a packed field that are examined

// evidence is what a body says for or against one type. The fields "covered", "parts" and "added"
// are about the top level of the body. All other numbers count fields at all levels.
type evidence struct {
	bytes, unread int64 // bytes of the body, and of fields that the type does not know
	unreadFields  int
	added         int64 // the part of unread that is in top-level fields whose numbers the type does not know
	known         int   // number of known fields
	// number of values that no publisher of the type writes: a zero that is not sent, a repeated
	// single field, a number out of range; re-encoding them would give other bytes
	odd            int
	enums, noEnum  int // numbers of enum values that the enum has, and that it does not have
	texts, noText  int // numbers of strings that are text, and that contain control characters
	times, noTimes int // numbers of plausible times, and of implausible times, durations and type URLs
	textAsBytes    int // number of bytes fields that contain text or a message, which another type may declare
	textAsNumbers  int // number of packed fields of numbers that can be read as text
	covered, parts int // number of top-level fields that are present, and of all top-level fields
}

// score returns a value from 0 to 1, which says how well the type fits the body. Every defect of
// the body lowers the value.
//
// If the body lacks fields of the type, this lowers the value only a little. Every other kind of
// defect lowers the value by more than all absent fields together. Some defects show that the
// publisher does not use this type. Each of them lowers the value by more than all absent fields
// and the constant "margin" together.
func (e *evidence) score() float64 {
	if e.known == 0 || e.bytes == 0 {
		return 0
	}
	v := 1.0
	lower := func(n int, once, all float64) {
		if n > 0 {
			v -= once + all*min(1, float64(n)/float64(e.known))
		}
	}
	if e.unread > 0 {
		v -= 0.08 + float64(e.unread)/float64(e.bytes)
	}
	lower(e.odd, 0.15, 0.3)
	lower(e.noEnum, 0.08, 0.3)
	lower(e.noText, 0.18, 0.4)
	lower(e.noTimes, 0.08, 0.2)
	lower(e.textAsNumbers, 0.12, 0.3)
	lower(e.textAsBytes, 0.035, 0.25)
	if e.parts > 0 {
		v -= coverWeight * (1 - float64(e.covered)/float64(e.parts))
	}
	return max(v, 0)
}

// bits returns how much evidence the body contains. For a match, four fields with small numbers are
// enough. Three fields are also enough if two of them are texts. One field is not enough: for
// example, the body "id: 1" fits too many types.
func (e *evidence) bits() int { return 5*e.known + 3*e.texts + 2*e.enums + 8*e.times }

// reasons says in words what raised or lowered a score, for example how many fields of the body are
// unknown.
func (e *evidence) reasons() []string {
	list := []string{"whole body used"}
	if e.unreadFields > 0 {
		list[0] = fmt.Sprintf(
			"%s of %s in %s unknown", deadletter.Count(e.unread), deadletter.Bytes(int(e.bytes)),
			deadletter.Plural(e.unreadFields, "field", "fields"),
		)
	}
	add := func(n int, one, many string) {
		if n > 0 {
			list = append(list, deadletter.Plural(n, one, many))
		}
	}
	add(e.odd, "value is not as it would be written", "values are not as they would be written")
	add(e.noEnum, "value is none of its enum", "values are none of their enums")
	add(e.noText, "text has control characters", "texts have control characters")
	add(e.noTimes, "time, span or type URL is implausible", "times, spans or type URLs are implausible")
	add(e.textAsNumbers, "list of numbers reads as text", "lists of numbers read as text")
	add(e.textAsBytes, "bytes field holds text or a message", "bytes fields hold text or messages")
	if e.odd == 0 && e.unreadFields == 0 {
		list = append(list, "re-encodes to the same size")
	}
	if e.parts > 0 {
		list = append(list, fmt.Sprintf("%d of %s present", e.covered, deadletter.Plural(e.parts, "field", "fields")))
	}
	add(e.times, "plausible time", "plausible times")
	return list
}

// comparison compares one tree with many types.
type comparison struct {
	tree   *wireTree
	unread int64 // maximum number of unknown bytes; if there are more, the type does not fit
	visits int64 // number of nodes and elements examined so far, for all types
}

// decodes reports whether the body can be decoded as the given type. It also records in e what
// speaks for and against this type.
func (c *comparison) decodes(s *shape, e *evidence) bool {
	*e = evidence{bytes: c.tree.bytes, parts: s.parts}
	return c.message(s, 0, int32(len(c.tree.nodes)), e, true)
}

func (c *comparison) message(s *shape, from, to int32, e *evidence, top bool) bool {
	var seen [4]uint64 // the fields that have occurred, by index
	var oneofs uint64
	var first [3]uint64 // values of fields 1 and 2
	covered := 0
	url := true
	nodes := c.tree.nodes
	for i := from; i < to; i = nodes[i].next {
		n := &nodes[i]
		c.visits++
		at := s.field(n.num)
		if at < 0 {
			e.unreadFields++
			if top {
				e.added += int64(n.size)
			}
			if e.unread += int64(n.size); e.unread > c.unread {
				return false
			}
			continue
		}
		f := &s.fields[at]
		if n.wire != f.wire && !(n.wire == 2 && f.list && descriptor.Packable(f.kind)) {
			if s.special == mapEntry { // proto.Unmarshal panics on a second key of another wire type (protobuf 1.36.12)
				return false
			}
			e.unreadFields++
			e.odd++
			if e.unread += int64(n.size); e.unread > c.unread {
				return false
			}
			continue
		}
		e.known++
		odd := n.hasFlag(nodeLong)
		if at < 256 {
			bit := uint64(1) << (at & 63)
			if seen[at>>6]&bit == 0 {
				if f.oneof == 0 {
					covered++
				}
			} else if !f.list || f.packs { // publishers write a packed field in one piece
				odd = true
			}
			seen[at>>6] |= bit
		}
		if f.oneof > 0 {
			bit := uint64(1) << (f.oneof - 1)
			if oneofs&bit == 0 {
				covered++
			} else {
				odd = true
			}
			oneofs |= bit
		}
		switch {
		case f.kind == protoreflect.MessageKind || f.kind == protoreflect.GroupKind:
			if !n.hasFlag(nodeMessage) || !c.message(f.msg, i+1, n.next, e, false) {
				return false
			}
		case f.kind == protoreflect.StringKind:
			if !n.hasFlag(nodeUTF8) {
				return false
			}
			odd = odd || f.absent && n.length == 0
			switch {
			case !n.hasFlag(nodeText):
				e.noText++
			case n.length >= 3:
				e.texts++
			}
			if s.special == anyMessage && n.num == 1 {
				url = isTypeURL(c.tree.body[n.at : n.at+n.length])
			}
		case f.kind == protoreflect.BytesKind:
			odd = odd || f.absent && n.length == 0
			if !f.opaque && n.length >= 4 && (n.hasFlag(nodeText) || n.hasFlag(nodeLikely)) {
				e.textAsBytes++
			}
		case n.wire == 2:
			if !c.packed(f, n, e, &odd) {
				return false
			}
		default:
			odd = odd || f.absent && n.value == 0 || f.packs
			c.number(f, n.value, e, &odd)
			if n.num <= 2 {
				first[n.num] = n.value
			}
		}
		if odd {
			e.odd++
		}
	}
	if top {
		e.covered = covered
	}
	switch s.special {
	case ordinary:
	case mapEntry: // publishers always write both fields of an entry, even zeros
		if seen[0]&3 != 3 {
			e.odd++
		}
	case timestamp:
		e.addTime(int64(first[1]), int64(first[2]))
	case duration:
		e.addDuration(int64(first[1]), int64(first[2]))
	case anyMessage:
		if !url {
			e.noTimes++
		}
	}
	return true
}

// number compares a number with the values that its type can have.
func (c *comparison) number(f *shapeField, v uint64, e *evidence, odd *bool) {
	switch f.kind {
	case protoreflect.BoolKind:
		*odd = *odd || v > 1
	case protoreflect.EnumKind:
		if int64(v) != int64(int32(v)) {
			*odd = true
		}
		if inEnum(f.enum, int32(v)) {
			e.enums++
		} else {
			e.noEnum++
		}
	case protoreflect.Int32Kind:
		if int64(v) != int64(int32(v)) {
			*odd = true
		}
	case protoreflect.Uint32Kind, protoreflect.Sint32Kind:
		*odd = *odd || v > 1<<32-1
	}
}

// packed examines the first elements of a packed field.
func (c *comparison) packed(f *shapeField, n *wireNode, e *evidence, odd *bool) bool {
	switch wireIndex(f.wire) {
	case wire32:
		if n.length%4 != 0 {
			return false
		}
	case wire64:
		if n.length%8 != 0 {
			return false
		}
	default:
		if !n.hasFlag(nodeVarints) {
			return false
		}
		*odd = *odd || n.hasFlag(nodeLongInner)
		if f.kind == protoreflect.EnumKind || f.kind == protoreflect.BoolKind || f.kind == protoreflect.Int32Kind ||
			f.kind == protoreflect.Uint32Kind || f.kind == protoreflect.Sint32Kind {
			c.elements(f, c.tree.body[n.at:n.at+n.length], e, odd)
		}
	}
	*odd = *odd || !f.packs || n.length == 0
	switch {
	case n.length >= 8 && n.hasFlag(nodeText):
		e.textAsNumbers++
	case n.length >= 4 && n.hasFlag(nodeLikely):
		e.textAsBytes++
	}
	return true
}

func (c *comparison) elements(f *shapeField, p []byte, e *evidence, odd *bool) {
	wrong := 0
	for range maxElements {
		if len(p) == 0 {
			break
		}
		c.visits++
		v, size := protowire.ConsumeVarint(p) // the varint ends within ten bytes
		p = p[size:]
		one := evidence{}
		c.number(f, v, &one, odd)
		wrong += one.noEnum
	}
	switch {
	case f.kind != protoreflect.EnumKind:
	case wrong > 0:
		e.noEnum++
	default:
		e.enums++
	}
}

// addTime examines a google.protobuf.Timestamp. Zero and the zero times of Go and .NET count
// neither for nor against a type.
func (e *evidence) addTime(seconds, nanos int64) {
	const year1990, year2100, year1 = 631_152_000, 4_102_444_800, -62_135_596_800
	switch {
	case nanos < 0 || nanos > 999_999_999:
		e.noTimes++
	case year1990 <= seconds && seconds < year2100:
		e.times++
	case seconds != 0 && seconds != year1:
		e.noTimes++
	}
}

// addDuration examines a google.protobuf.Duration. More than ten years is implausible.
func (e *evidence) addDuration(seconds, nanos int64) {
	const most = 315_360_000
	if seconds > most || seconds < -most || nanos > 999_999_999 || nanos < -999_999_999 || seconds > 0 && nanos < 0 ||
		seconds < 0 && nanos > 0 {
		e.noTimes++
	}
}

// isTypeURL reports whether p looks like "type.googleapis.com/acme.v1.X".
func isTypeURL(p []byte) bool {
	slash := bytes.LastIndexByte(p, '/')
	if slash < 0 || slash == len(p)-1 {
		return false
	}
	for _, c := range p[slash+1:] {
		if c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
