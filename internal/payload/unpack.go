package payload

import (
	"bytes"
	"errors"
	"io"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// magics lists the first bytes of compressed data. Nothing else that people send begins with them.
var magics = []struct {
	name  string
	bytes []byte
}{
	{"gzip", descriptor.GzipMagic},
	{"zstd", zstdMagic},
	{"snappy", snappyMagic},
}

// compression returns the name of the compression that the first bytes of b show, or "".
func compression(b []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(b, m.bytes) {
			return m.name
		}
	}
	return ""
}

// unpack undoes one compression of the body.
func (r *reading) unpack(name, how string) bool {
	doc := r.doc
	l := Layer{Name: name}
	out, err := inflate(&l, doc.Body, r.budget)
	if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
		doc.step(false, name+": "+tooLarge.What)
		doc.tooLarge(tooLarge.What)
		return false
	}
	if err != nil {
		doc.step(false, name+": "+err.Error())
		return false
	}
	return r.layer(l, out, how)
}

// inflate returns the whole output or an error, never a part of the output. It doubles the buffer
// in each step and charges the budget before each step. Therefore, if a body claims a wrong size,
// inflate still needs at most twice the memory of the true size.
func inflate(l *Layer, b []byte, budget *budget.Budget) ([]byte, error) {
	if l.Name != "deflate" && l.Name != "bzip2" && compression(b) != l.Name {
		return nil, errors.New("no magic bytes")
	}
	var z io.Reader
	var err error
	switch l.Name {
	case "gzip":
		z, err = openGzip(b)
	case "zstd":
		z, err = openZstd(b, budget)
	case "bzip2":
		z, err = openBzip2(b, budget)
	case "snappy":
		z, err = openSnappy(b, budget)
	default:
		z, l.Bare = openDeflate(b)
		if l.Bare {
			l.Detail = "without a header"
		}
	}
	if err != nil {
		return nil, err
	}
	var out []byte
	for size := int64(4*len(b) + 512); ; size = 2 * int64(cap(out)) {
		spare := budget.SpareBytes()
		if size = min(size, spare); size <= int64(len(out)) {
			return nil, budget.TooLargeUnpacked()
		}
		if err := budget.TakeMemory(size); err != nil {
			return nil, err
		}
		out = append(make([]byte, 0, size), out...)
		for len(out) < cap(out) {
			n, err := z.Read(out[len(out):cap(out)])
			out = out[:len(out)+n]
			if err == io.EOF {
				return out, nil
			}
			if err != nil {
				return nil, errors.New("it does not unpack: damaged or incomplete")
			}
		}
	}
}
