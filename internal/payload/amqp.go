package payload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
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

const (
	maxSections  = 1 << 20 // bytes; sections that are larger and hold no single text or binary are not read
	maxAMQPDepth = 64
)

var amqpNames = map[byte]string{amqpData: "data", amqpSequence: "sequence", amqpValue: "value"}

// readSection reads a body of AMQP 1.0 sections. If it consists of one text or binary value, this
// value is the content, and an edit writes the lengths around it again. Any other body becomes JSON
// or, if it has several data sections, one text. People can read it, and not edit it.
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
			return readSections(b)
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
		return readSections(b)
	}
	if r.bad || value.bad || len(r.rest)+len(value.rest) > 0 || f.holds == holdsText && !utf8.Valid(f.content) {
		return readSections(b)
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

// readSections reads a body of AMQP 1.0 sections that an edit cannot write again.
func readSections(b []byte) (framed, bool) {
	if len(b) > maxSections {
		return framed{}, false
	}
	r := &amqpReader{rest: b}
	var data []byte
	var values []string
	name := ""
	for n := 1; len(r.rest) > 0 && !r.bad; n++ {
		kind := r.section()
		switch name = amqpNames[kind]; {
		case kind == amqpData:
			data = append(data, r.sized(r.code())...)
			name = fmt.Sprintf("%d data sections", n)
		case len(r.rest) > 0:
			var w bytes.Buffer
			r.value(&w, r.code(), 1)
			values = append(values, w.String())
		}
	}
	f := framed{detail: name, head: b, content: data, binary: r.binary}
	f.fixed = "it is AMQP 1.0 (" + name + ") without a single text or binary, which dlo can read and not write"
	switch {
	case r.bad || len(data) > 0 && len(values) > 0:
		return framed{}, false
	case len(values) == 1:
		f.content = []byte(values[0])
	case len(values) > 1:
		f.content = []byte("[" + strings.Join(values, ",") + "]")
	}
	return f, true
}

// amqpReader reads encoded values. If they are damaged, bad is true, and the results are
// meaningless.
type amqpReader struct {
	rest   []byte
	bad    bool
	binary bool // a value was binary
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

// value writes a value as JSON. Binary values may hold anything, so only their size is written.
func (r *amqpReader) value(w *bytes.Buffer, code byte, depth int) {
	if r.bad = r.bad || depth > maxAMQPDepth; r.bad {
		return
	}
	switch code &^ longLength {
	case amqpString, amqpSymbol:
		w.Write(quoteJSON(string(r.sized(code))))
		return
	case amqpBinary:
		r.binary = true
		w.Write(quoteJSON("binary, " + deadletter.Bytes(len(r.sized(code)))))
		return
	case amqpList, amqpMap, amqpArray:
		in := &amqpReader{rest: r.sized(code)}
		in.items(w, code, depth)
		r.bad, r.binary = r.bad || in.bad || len(in.rest) > 0, r.binary || in.binary
		return
	}
	if code == 0x00 { // a descriptor, which says what the value after it means
		r.value(&bytes.Buffer{}, r.code(), depth+1)
		r.value(w, r.code(), depth+1)
		return
	}
	size, ok := map[byte]uint64{4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}[code>>4]
	b := r.take(size)
	r.bad = r.bad || !ok
	w.WriteString(amqpScalar(code, b))
}

// items writes the elements of a list, a map or an array.
func (r *amqpReader) items(w *bytes.Buffer, code byte, depth int) {
	n, one, open := r.count(code), byte(0), byte('[')
	switch code &^ longLength {
	case amqpMap:
		open = '{'
	case amqpArray:
		one = r.code()
	}
	if r.bad = r.bad || n > uint64(len(r.rest)); r.bad {
		return
	}
	w.WriteByte(open)
	for i := range n {
		each := one
		if each == 0 {
			each = r.code()
		}
		value := open == '[' || i%2 == 1
		if i > 0 && (open == '[' || !value) {
			w.WriteByte(',')
		}
		var text bytes.Buffer
		r.value(&text, each, depth+1)
		if !value && !bytes.HasPrefix(text.Bytes(), []byte{'"'}) { // the key of a map may be of any type
			text = *bytes.NewBuffer(quoteJSON(text.String()))
		}
		w.Write(text.Bytes())
		if !value {
			w.WriteByte(':')
		}
	}
	r.bad = r.bad || open == '{' && n%2 == 1
	w.WriteByte(open + 2) // '}' and ']' come two code points after '{' and '['
}

// amqpScalar returns a value of fixed size as JSON.
func amqpScalar(code byte, b []byte) string {
	n := uint64(0)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	text := fmt.Sprintf("%x", b) // a UUID or a decimal
	switch code {
	case 0x40:
		return "null"
	case 0x45:
		return "[]"
	case 0x41, 0x42, 0x56:
		return strconv.FormatBool(code == 0x41 || n != 0)
	case 0x43, 0x44, 0x50, 0x52, 0x53, 0x60, 0x70, 0x80:
		return strconv.FormatUint(n, 10)
	case 0x51, 0x54, 0x55, 0x61, 0x71, 0x81: // signed
		unused := 64 - 8*len(b)
		return strconv.FormatInt(int64(n<<unused)>>unused, 10)
	case 0x72, 0x82:
		f, bits := math.Float64frombits(n), 64
		if code == 0x72 {
			f, bits = float64(math.Float32frombits(uint32(n))), 32
		}
		if text = strconv.FormatFloat(f, 'g', -1, bits); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return text
		}
	case 0x73:
		text = string(rune(n))
	case 0x83:
		text = time.UnixMilli(int64(n)).UTC().Format(time.RFC3339Nano)
	}
	return string(quoteJSON(text))
}
