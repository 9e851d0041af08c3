package payload

import (
	"bytes"
	"io"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/klauspost/compress/s2"
)

// snappyMagic is the stream identifier, which is the first chunk of the framing format
// (google/snappy, framing_format.txt, 4.1). A snappy block without a frame cannot be recognised.
var snappyMagic = []byte("\xff\x06\x00\x00sNaPpY")

const (
	snappyBlock = 64 << 10 // framing_format.txt, 4.2: a chunk has at most 65,536 bytes of data
	// bytes that the reader of klauspost/compress 1.20.1 allocates: a chunk and a decompressed
	// block
	snappyMemory = 192 << 10
)

// openSnappy reads a stream of snappy frames.
func openSnappy(b []byte, budget *budget.Budget) (io.Reader, error) {
	if err := budget.TakeMemory(snappyMemory); err != nil {
		return nil, err
	}
	return s2.NewReader(bytes.NewReader(b), s2.ReaderMaxBlockSize(snappyBlock)), nil
}
