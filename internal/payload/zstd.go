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
	maxZstdWindow = 8 << 20 // what RFC 8878, 3.1.1.1.2, recommends decoders to support; zstd --ultra and --long take more
	// zstdMemory is what the decoder of klauspost/compress 1.20.1 allocates besides the history:
	// three buffers of a block, 128 KiB, and its tables.
	zstdMemory = 1 << 20
)

// openZstd reads zstd frames without dictionaries. The decoder allocates a history of twice the
// window at once, however short the frame is, so the window that the first frame declares is paid
// for before, and frames after it may declare no larger one.
func openZstd(b []byte, budget *budget.Budget) (io.Reader, error) {
	var h zstd.Header
	if h.Decode(b) != nil {
		return nil, errors.New("the header is damaged")
	}
	window := h.WindowSize
	switch {
	case h.DictionaryID != 0:
		return nil, fmt.Errorf("it needs dictionary %d", h.DictionaryID)
	case h.SingleSegment: // the window is all of the content
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
	// One block at a time, in this goroutine: there is nothing to close.
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(false),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(window))
	if err != nil {
		return nil, errors.New("the header is damaged")
	}
	return z, nil
}
