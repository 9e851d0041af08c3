package payload

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

func openGzip(b []byte) (io.Reader, error) {
	g, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, errors.New("the header is damaged")
	}
	return g, nil
}

// openDeflate reads the content encoding "deflate". It is zlib (RFC 9110, 8.4.1.2), or deflate
// without a zlib header, which some clients send.
func openDeflate(b []byte) (z io.Reader, bare bool) {
	if f, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
		return f, false
	}
	return flate.NewReader(bytes.NewReader(b)), true
}
