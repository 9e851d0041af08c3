package payload

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// amqpType is the type property that RabbitMQ 4.x gives to a message of an AMQP 1.0 client if a
// 0-9-1 client gets its body as sections. If the message goes back to an AMQP 1.0 client, the
// broker reads the sections again. If they are damaged, it closes the connection of that client,
// again and again (seen on 4.3).
const amqpType = "amqp-1.0"

// These are the kinds of sections of a body (AMQP 1.0, part 3, 3.2.6 to 3.2.8).
const (
	amqpData     = 0x75
	amqpSequence = 0x76
	amqpValue    = 0x77
)

// These are constructors of values (AMQP 1.0, part 1, 1.2 and 1.6). A value with a length has the
// length in one byte, or in four if longLength is added to its constructor.
const (
	amqpBinary = 0xa0
	amqpString = 0xa1
	amqpSymbol = 0xa3
	amqpList   = 0xc0
	amqpMap    = 0xc1
	amqpArray  = 0xe0
	longLength = 0x10
)

var amqpNames = map[byte]string{amqpData: "data", amqpSequence: "sequence", amqpValue: "value"}

// readSection reads a body of AMQP 1.0 sections. If it consists of one text or binary value, this
// value is the content, and an edit writes the lengths around it again. Any other body stays as it
// is, see otherSections.
func readSection(b []byte) (framed, bool) {
	r := &amqpReader{rest: b}
	kind := r.section()
	if r.bad {
		return framed{}, false
	}
	code, list, value := r.code(), byte(0), r
	if kind == amqpSequence && code&^longLength == amqpList {
		list, value = code, &amqpReader{rest: r.sized(code)}
		if value.count(list) != 1 {
			return framed{}, false
		}
		code = value.code()
	}
	f := framed{detail: amqpNames[kind] + ", binary"}
	switch code &^ longLength {
	case amqpBinary:
		f.content = value.sized(code)
	case amqpString:
		f.content, f.detail, f.holds = value.sized(code), amqpNames[kind]+", string", holdsText
	default:
		return framed{}, false
	}
	if r.bad || value.bad || len(r.rest)+len(value.rest) > 0 || f.holds == holdsText && !utf8.Valid(f.content) {
		return framed{}, false
	}
	f.head = b[:len(b)-len(f.content)]
	f.newHead = func(n int) []byte {
		head, inner := bytes.Clone(b[:3]), amqpHead(code, n)
		if list != 0 {
			head = append(head, amqpListHead(list, len(inner)+n)...)
		}
		return append(head, inner...)
	}
	return f, true
}

// amqpHead returns the constructor and the length of a value of n bytes.
func amqpHead(code byte, n int) []byte {
	if code&longLength == 0 && n <= math.MaxUint8 {
		return []byte{code, byte(n)}
	}
	return binary.BigEndian.AppendUint32([]byte{code | longLength}, uint32(n))
}

// amqpListHead returns the head of a list with one element of n bytes. The length of a list
// includes the count of its elements.
func amqpListHead(code byte, n int) []byte {
	if code&longLength == 0 && n < math.MaxUint8 {
		return append(amqpHead(code, n+1), 1)
	}
	return append(amqpHead(code|longLength, n+4), 0, 0, 0, 1)
}

// amqpKinds names values that are not unwrapped.
var amqpKinds = map[byte]string{
	0x00: "described value", amqpBinary: "binary", amqpString: "string", amqpSymbol: "symbol",
	0x45: "list", amqpList: "list", amqpMap: "map", amqpArray: "array",
}

// otherSections says what a body of AMQP 1.0 sections begins with. It returns "" for other bodies.
func (r *reading) otherSections(body []byte) string {
	in := &amqpReader{rest: body}
	if in.section(); r.hints.Type != amqpType || in.bad {
		return ""
	}
	return cmp.Or(amqpKinds[in.code()&^longLength], "single value")
}

// amqpReader reads encoded values. If they are damaged, bad is true, and the results are
// meaningless.
type amqpReader struct {
	rest []byte
	bad  bool
}

func (r *amqpReader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *amqpReader) number(size uint64) (n uint64) {
	for _, c := range r.take(size) {
		n = n<<8 | uint64(c)
	}
	return n
}

// section reads the beginning of a section, and returns its kind.
func (r *amqpReader) section() byte {
	b := r.take(3)
	if r.bad = r.bad || b[0] != 0 || b[1] != 0x53 || amqpNames[b[2]] == ""; r.bad {
		return 0
	}
	return b[2]
}

func (r *amqpReader) code() byte { return byte(r.number(1)) }

// count reads the length or the count of a value with the given constructor.
func (r *amqpReader) count(code byte) uint64 {
	if code&longLength != 0 {
		return r.number(4)
	}
	return r.number(1)
}

func (r *amqpReader) sized(code byte) []byte {
	if r.bad = r.bad || code < amqpBinary; r.bad {
		return nil
	}
	return r.take(r.count(code))
}
