// Package segment packs the messages of several letters into one blob, a zstd frame with a
// checksum. Before compression, each message is the serial of its letter as a varint of
// encoding/binary, and then exchange, routing key, properties and body, each after its length as a
// varint.
package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Size is the number of bytes of messages after which a segment is full. A larger message has a
// segment of its own.
const Size = 64 << 10

// Message is what a broker delivered for a letter, byte for byte.
type Message struct {
	Exchange, RoutingKey string
	Properties           []byte // in the encoding of deadletter.Properties
	Body                 []byte
	Size                 int // bytes in the segment before compression; set by Unpack
}

// ErrDamaged means that the bytes are not those of a segment.
var ErrDamaged = errors.New("the segment is damaged")

// The options are valid, so there are no errors. A single segment of zstd always says its size.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithSingleSegment(true))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(4))
)

func init() {
	encoder.EncodeAll([]byte{0}, nil) // its channel must not belong to the bubble of the first test that needs it
}

// Append adds a message to the bytes of a segment that is not packed yet.
func Append(raw []byte, letter int64, m Message) []byte {
	raw = binary.AppendUvarint(raw, uint64(letter))
	raw = append(binary.AppendUvarint(raw, uint64(len(m.Exchange))), m.Exchange...)
	raw = append(binary.AppendUvarint(raw, uint64(len(m.RoutingKey))), m.RoutingKey...)
	raw = append(binary.AppendUvarint(raw, uint64(len(m.Properties))), m.Properties...)
	return append(binary.AppendUvarint(raw, uint64(len(m.Body))), m.Body...)
}

// Pack compresses the bytes of a segment.
func Pack(raw []byte) []byte { return encoder.EncodeAll(raw, nil) }

// Unpack returns the messages of a segment by the serials of their letters. The parameter "size" is
// the number of bytes before compression. The messages share the memory of the segment. If the
// bytes are damaged, the error wraps ErrDamaged.
func Unpack(data []byte, size int) (map[int64]Message, error) {
	var head zstd.Header
	if err := head.Decode(data); err != nil || size < 0 || !head.HasFCS || head.FrameContentSize != uint64(size) {
		return nil, ErrDamaged
	}
	raw, err := decoder.DecodeAll(data, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	messages := map[int64]Message{}
	for len(raw) > 0 {
		left := len(raw)
		letter, n := binary.Uvarint(raw)
		if n <= 0 {
			return nil, ErrDamaged
		}
		raw = raw[n:]
		var parts [4][]byte
		for i := range parts {
			length, n := binary.Uvarint(raw)
			if n <= 0 || length > uint64(len(raw)-n) {
				return nil, ErrDamaged
			}
			end := n + int(length)
			parts[i], raw = raw[n:end:end], raw[end:]
		}
		messages[int64(letter)] = Message{string(parts[0]), string(parts[1]), parts[2], parts[3], left - len(raw)}
	}
	return messages, nil
}
