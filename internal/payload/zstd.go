package payload

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/klauspost/compress/zstd"
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd} // RFC 8878, 3.1.1

const (
	maxZstdWindow = 8 << 20 // minimum recommended for decoders by RFC 8878, 3.1.1.1.2; zstd --ultra and --long use more
	// zstdMemory is the memory that the decoder of klauspost/compress 1.20.1 allocates in addition
	// to the history: three buffers of a 128 KiB block, and its tables.
	zstdMemory = 1 << 20
)

// openZstd reads zstd frames without dictionaries. The decoder immediately allocates a history of
// twice the window, however short the frame is. So the window declared by the first frame is
// charged in advance, and later frames may not declare a larger one.
func openZstd(b []byte, budget *budget.Budget) (io.Reader, error) {
	var h zstd.Header
	if h.Decode(b) != nil {
		return nil, errors.New("the header is damaged")
	}
	window := h.WindowSize
	switch {
	case h.DictionaryID != 0:
		return nil, fmt.Errorf("it needs dictionary %d", h.DictionaryID)
	case h.SingleSegment: // the window is the whole content
		if window = h.FrameContentSize; window > uint64(budget.SpareBytes()) {
			return nil, budget.TooLargeUnpacked()
		}
	case window > maxZstdWindow:
		return nil, errors.New("its window is larger than " + deadletter.Bytes(maxZstdWindow))
	}
	window = max(window, zstd.MinWindowSize)
	if err := budget.TakeMemory(2*int64(window) + zstdMemory); err != nil {
		return nil, err
	}
	// The decoder decodes one block at a time in this goroutine, so there is nothing to close.
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(false),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(window))
	if err != nil {
		return nil, errors.New("the header is damaged")
	}
	return z, nil
}
