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

// confluentBytes is the prefix that Confluent's serializers write before a message. It consists of
// the byte 0x00 and the schema id as 4 big-endian bytes. For protobuf, the position of the message
// in that schema follows: the number of indexes and then the indexes, as zigzag varints. The
// position [0], which means the first message in the file, is written as a single 0. Sources:
// docs.confluent.io, Schema Registry, "Wire format"; MessageIndexes.java in
// confluentinc/schema-registry.
//
// No protobuf message, JSON or text begins with 0x00.
type confluentBytes struct {
	size   int // in bytes; 0 = there is no such prefix
	detail string
	bare   bool // the prefix has only the first five bytes, as for JSON and Avro
}

// confluentPrefix parses the prefix at the beginning of b. Apart from their number, it ignores the
// bytes after the prefix.
func confluentPrefix(b []byte) confluentBytes {
	if len(b) < confluentHeader || b[0] != 0 || frame(b) != "" {
		return confluentBytes{}
	}
	id := binary.BigEndian.Uint32(b[1:])
	if id == 0 || id > math.MaxInt32 { // ids are positive Java ints
		return confluentBytes{}
	}
	p := confluentBytes{size: confluentHeader, detail: fmt.Sprintf("schema %d", id), bare: true}
	at := confluentHeader
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
		return p
	}
	place := []string{"0"}
	if many > 0 {
		place = place[:0]
	}
	for range many {
		i := zigzag()
		if i < 0 || i > maxIndex {
			return p
		}
		place = append(place, strconv.FormatInt(i, 10))
	}
	return confluentBytes{size: at, detail: p.detail + ", message " + strings.Join(place, ".")}
}

// isConfluent reports whether b is a body with the prefix p. This is the case only if the bytes
// after the prefix can be decoded: as JSON, as any protobuf message if the letter declares
// protobuf, or as a message of a type that the letter names. The prefix alone proves nothing,
// because other binary data may also begin with 0x00.
func (r *reading) isConfluent(p confluentBytes, b []byte) bool {
	if p.size == 0 {
		return false
	}
	rest := b[p.size:]
	if p.bare {
		ok, _ := r.isJSON(rest)
		return ok
	}
	return r.readsAsNamed(rest, false) || r.shapedAsDeclared(rest) || r.declaresProtobuf() && len(rest) == 0
}

// frame names the frame that a body begins with, if the bytes that look like Confluent's prefix are
// the head of a frame. Such a head has the length of what follows, so a new body in an old frame
// would be unreadable. frame returns "" if there is no frame.
//
// RabbitMQ 4.x hands the sections of an AMQP 1.0 message to a 0-9-1 consumer: 0x00, 0x53, then 0x75
// (data), 0x76 (a sequence) or 0x77 (a value), the constructor and the length. A gRPC frame is a
// flag and 4 big-endian bytes with the length (AMQP 1.0, 3.2.6 to 3.2.8; gRPC over HTTP/2).
func frame(b []byte) string {
	switch {
	case len(b) < confluentHeader || b[0] != 0:
		return ""
	case b[1] == 0x53 && b[2] >= 0x75 && b[2] <= 0x77:
		return "a section of an AMQP 1.0 message"
	case int64(binary.BigEndian.Uint32(b[1:])) == int64(len(b)-confluentHeader):
		return "a gRPC frame"
	}
	return ""
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
