package payload

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	confluentHeader = 5       // 0x00 and the id of the schema
	maxIndexes      = 100     // levels of messages in messages, as in Budget
	maxIndex        = 1 << 16 // of a message in its file, or in the message around it
)

// confluentBytes is what the serializers of Confluent write before a message: 0x00, the id of its
// schema as 4 bytes, big endian, and for protobuf the place of the message in that schema: how many
// indexes there are and the indexes, as zigzag varints. The place [0], the first message of the
// file, is written as a lone 0. Sources: docs.confluent.io, Schema Registry, "Wire format";
// MessageIndexes.java of confluentinc/schema-registry.
//
// No protobuf message, JSON or text begins with 0x00.
type confluentBytes struct {
	size   int // bytes; 0: it is no such prefix
	detail string
	bare   bool // only the first five bytes, as before JSON and Avro
}

// confluentPrefix reads the prefix that b begins with. It does not look at what follows.
func confluentPrefix(b []byte) confluentBytes {
	if len(b) < confluentHeader || b[0] != 0 {
		return confluentBytes{}
	}
	id := binary.BigEndian.Uint32(b[1:])
	if id == 0 || id > math.MaxInt32 { // ids are positive ints of Java
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

// confluent reports whether what follows the prefix in b decodes: as a type that is named, as
// protobuf when the letter says so, or as JSON. A prefix alone is no proof, since any bytes may
// begin with 0x00.
func (r *reading) confluent(p confluentBytes, b []byte) bool {
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
