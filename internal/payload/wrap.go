package payload

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// wrapMemory is the maximum memory that the compression writers allocate apart from their output,
// with the options used here: flate about 800 KB, zstd 4 MB.
const wrapMemory = 6 << 20

// wrap wraps a new body in the layers of an old one, innermost first. Compressed bytes may differ
// from those of the old body, but they unpack to the new body. The old body may not show a property
// of a layer, for example whether its base64 is padded. In that case, wrap returns a check that
// names this property.
func wrap(layers []Layer, body []byte, b *budget.Budget) ([]byte, []Check, error) {
	var doubts []Check
	for _, l := range slices.Backward(layers) {
		if err := b.TakeMemory(wrapMemory + 4*int64(len(body))); err != nil {
			return nil, nil, &EditError{Message: "too large to wrap again: " + err.Error()}
		}
		if l.Base64 != nil && len(body)%3 != 0 && !strings.Contains(l.Detail, "padded") {
			doubts = append(doubts, Check{
				false, l.Name + ": the original does not show whether its base64 is padded; the new body is",
			})
		}
		var err error
		if body, err = l.wrap(body); err != nil {
			return nil, nil, err
		}
	}
	return body, doubts, nil
}

// wrap reverses the removal of the layer.
func (l *Layer) wrap(data []byte) ([]byte, error) {
	switch l.Name {
	case "gzip", "deflate", "zstd", "snappy":
		return l.pack(data), nil
	case "bzip2":
		return nil, &EditError{Message: "bzip2 can be read here and not written: replace the body as a whole, in bzip2"}
	}
	if l.encoding != nil {
		return l.encodeText(data)
	}
	if l.Base64 != nil {
		data = l.Base64.encode(data)
	}
	if (l.Quoted || l.text) && !utf8.Valid(data) {
		return nil, &EditError{Message: "the body is a text in the envelope of " + l.Name + ", so it must be UTF-8"}
	}
	if l.Quoted {
		quotes := quoteJSON(string(data))
		data = quotes[1 : len(quotes)-1]
	}
	before := l.Before
	if l.newHead != nil {
		before = l.newHead(len(data))
	}
	return slices.Concat(before, data, l.After), nil
}

// encode writes data as base64 in the detected form.
func (f *Base64) encode(data []byte) []byte {
	alphabet := base64.StdEncoding
	if f.URL {
		alphabet = base64.URLEncoding
	}
	if f.NoPadding {
		alphabet = alphabet.WithPadding(base64.NoPadding)
	}
	text := make([]byte, alphabet.EncodedLen(len(data)))
	alphabet.Encode(text, data)
	if f.Line <= 0 || len(text) <= f.Line {
		return text
	}
	lines := make([]byte, 0, len(text)+(len(text)/f.Line+1)*len(f.Break))
	for len(text) > f.Line {
		lines = append(append(lines, text[:f.Line]...), f.Break...)
		text = text[f.Line:]
	}
	return append(lines, text...)
}

func (l *Layer) pack(data []byte) []byte {
	var out bytes.Buffer
	var z io.WriteCloser
	switch l.Name {
	case "gzip":
		z = gzip.NewWriter(&out)
	case "zstd":
		w, err := zstd.NewWriter(
			&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true),
		)
		if err != nil {
			panic("payload: " + err.Error()) // constant options; see panicToError
		}
		z = w
	case "snappy":
		z = s2.NewWriter(&out, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
	default:
		if z = zlib.NewWriter(&out); l.Bare {
			z, _ = flate.NewWriter(&out, flate.DefaultCompression)
		}
	}
	_, err := z.Write(data)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("payload: " + err.Error()) // a buffer accepts everything
	}
	if out.Len() == 0 { // snappy writes nothing for empty input
		return slices.Clone(snappyMagic)
	}
	return out.Bytes()
}

// layersText describes a body's layers, outermost first: "base64 of gzip, as received"; "" if there
// are none.
func layersText(layers []Layer) string {
	if len(layers) == 0 {
		return ""
	}
	var names []string
	for _, l := range layers {
		names = append(names, l.Name)
	}
	return strings.Join(names, " of ") + ", as received"
}
