package payload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	confluentHeader = 5       // 0x00 and the schema id
	maxIndexes      = 100     // maximum number of nesting levels, as in Budget
	maxIndex        = 1 << 16 // maximum index of a message in its file or in the enclosing message
)

// readConfluent reads the prefix that Confluent's serializers write before a message. It consists
// of the byte 0x00 and the schema id as 4 big-endian bytes. For protobuf, the position of the
// message in that schema follows: the number of indexes and then the indexes, as zigzag varints.
// The position [0], which means the first message in the file, is written as a single 0. Sources:
// docs.confluent.io, Schema Registry, "Wire format"; MessageIndexes.java in
// confluentinc/schema-registry.
//
// No protobuf message, JSON or text begins with 0x00.
func readConfluent(b []byte) (framed, bool) {
	if len(b) < confluentHeader || b[0] != 0 || (&amqpReader{rest: b}).section() != 0 {
		return framed{}, false
	}
	id := binary.BigEndian.Uint32(b[1:])
	if id == 0 || id > math.MaxInt32 { // ids are positive Java ints
		return framed{}, false
	}
	at := confluentHeader
	bare := framed{detail: fmt.Sprintf("schema %d", id), head: b[:at], content: b[at:], holds: holdsJSON}
	zigzag := func() int64 {
		v, n := protowire.ConsumeVarint(b[at:])
		if n < 0 {
			return -1
		}
		at += n
		return protowire.DecodeZigZag(v)
	}
	many := zigzag()
	if many < 0 || many > maxIndexes {
		return bare, true
	}
	place := []string{"0"}
	if many > 0 {
		place = place[:0]
	}
	for range many {
		i := zigzag()
		if i < 0 || i > maxIndex {
			return bare, true
		}
		place = append(place, strconv.FormatInt(i, 10))
	}
	detail := bare.detail + ", message " + strings.Join(place, ".")
	return framed{detail: detail, head: b[:at], content: b[at:], holds: holdsMessages}, true
}

// nextConfluent returns the first of several messages. The second one begins with a byte 0x00,
// where no field can begin.
func nextConfluent(b []byte) (message, rest []byte, ok bool) {
	f, ok := readConfluent(b)
	if !ok || f.holds != holdsMessages {
		return nil, nil, false
	}
	rest = f.content
	for len(rest) > 0 && rest[0] != 0 {
		_, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return nil, nil, false
		}
		rest = rest[n:]
	}
	return f.content[:len(f.content)-len(rest)], rest, true
}

// holdsLength reports whether a prefix may hold the length of what follows it. It then may be the
// head of a frame that dlo does not know. The length may be in one to four bytes anywhere in the
// prefix, in either order, or a varint. It may include parts of the head, and leave out white space
// at the end. The bytes of schema ids are often small numbers, so a single byte has to fit closely.
func holdsLength(prefix, rest []byte) bool {
	least, most := len(bytes.TrimRight(rest, asciiSpace)), len(rest)
	for from := range prefix {
		big, little := 0, 0
		for i, c := range prefix[from:min(from+4, len(prefix))] {
			big, little = big<<8|int(c), little|int(c)<<(8*i)
			below, above := 8, max(8, len(prefix))
			if i == 0 {
				below, above = 0, len(prefix)
			}
			varint, _ := protowire.ConsumeVarint(prefix[from : from+i+1])
			for _, n := range []int{big, little, int(varint)} {
				if n > 0 && n >= least-below && n <= most+above {
					return true
				}
			}
		}
	}
	return false
}
