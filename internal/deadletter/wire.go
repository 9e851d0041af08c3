package deadletter

import (
	"fmt"
	"slices"
	"time"
)

// MaxValues is the maximum number of header values that are read in one letter, including nested
// values. A frame of 131,072 bytes, which is RabbitMQ's default, cannot contain more. Because of
// this limit, each value takes at most about 180 bytes of memory in addition to its own bytes
// (TestHeadersTakeBoundedMemory).
const MaxValues = 131_072

const hasClusterID = 1 << 2 // property that AMQP 0-9-1 reserves and that nobody stores

// ReadProperties reads the properties of an AMQP 0-9-1 content header frame in the form in which a
// broker sends them, with the flags first. It never fails. A header that cannot be read becomes
// Unread. If the encoding itself cannot be read, everything from there on becomes Unread with the
// name HeaderUnread. The result "values" is the number of header values that were read, including
// nested values.
//
// A client that reads the same bytes gets the same properties (amqp091-go v1.16.0). However, the
// client does not read nesting over 32, more than 8,192 values in one table or array, or the type
// L.
func ReadProperties(b []byte) (p Properties, values int) {
	left := MaxValues
	r := &reader{b: b, left: &left}
	flags := r.u16()
	at := r.b
	each := func(flag uint16, read func()) {
		if r.err == nil && flags&flag != 0 {
			at = r.b
			read()
		}
	}
	short := p.ShortStrings()
	text := func(i int) { each(short[i].flag, func() { *short[i].Value = r.short() }) }
	text(0)
	text(1)
	each(hasHeaders, func() { p.Headers = r.headers() })
	each(hasDeliveryMode, func() { p.DeliveryMode = r.u8() })
	each(hasPriority, func() { p.Priority = r.u8() })
	for i := 2; i <= 5; i++ {
		text(i)
	}
	each(hasTimestamp, func() { p.Timestamp = time.Unix(int64(r.u64()), 0).UTC() })
	for i := 6; i <= 8; i++ {
		text(i)
	}
	each(hasClusterID, func() { r.short() })
	if r.err == nil && len(r.b) > 0 {
		at = r.b
		r.fail("bytes after the last property")
	}
	if r.err != nil {
		if p.Headers == nil {
			p.Headers = Table{}
		}
		p.Headers[HeaderUnread] = Unread{slices.Clone(at), r.err.Error()}
	}
	return p, MaxValues - left
}

// headers reads the table of headers. It reads each header separately, so that a header that cannot
// be read does not affect the others.
func (r *reader) headers() Table {
	b := r.long()
	if r.err != nil {
		return nil
	}
	t := Table{}
	for len(b) > 0 {
		in := &reader{b: b, left: r.left}
		k, left := in.short(), *r.left
		if in.err != nil {
			t[HeaderUnread] = Unread{slices.Clone(b), "the name of a header: " + in.err.Error()}
			break
		}
		field := in.b
		v := in.field(0)
		if b = in.b; in.err != nil {
			size := len(field)
			if left > 0 { // the limit still permits more headers, so this header counts as one value
				size, *r.left = fieldSize(field), left-1
			}
			v, b = Unread{slices.Clone(field[:size]), in.err.Error()}, field[size:]
		}
		t[k] = v
	}
	return t
}

// fieldSize returns the number of bytes of the first field in b, including its type. If that number
// is unknown, it returns the length of b.
func fieldSize(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n, known := map[byte]int{
		'V': 1, 't': 2, 'b': 2, 'B': 2, 's': 3, 'u': 3, 'I': 5, 'i': 5, 'l': 9, 'L': 9, 'f': 5, 'd': 9, 'D': 6, 'T': 9,
	}[b[0]]
	if slices.Contains([]byte("SxFA"), b[0]) && len(b) >= 5 {
		r := &reader{b: b[1:5]}
		n, known = 5+int(r.u32()), true
	}
	if !known || n > len(b) {
		return len(b)
	}
	return n
}

// count subtracts one from the number of header values that may still be read.
func (r *reader) count() {
	if r.left == nil {
		return
	}
	if *r.left--; *r.left < 0 {
		r.fail(fmt.Sprintf("more than %d values", MaxValues))
	}
}
