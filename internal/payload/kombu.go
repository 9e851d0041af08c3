package payload

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"io"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// kombuHeader is the header in which kombu, the client library of Celery, names the compression of
// a body. kombu compresses last, so the compression is undone first.
const kombuHeader = "compression"

// peelKombu undoes the compression that kombu's header names. It knows the names and aliases of
// kombu/compression.py. kombu uses the name "gzip" for zlib.
func (r *reading) peelKombu() {
	doc := r.doc
	const how = ", as the header " + kombuHeader + " says"
	switch name := r.hints.Compression; name {
	case "":
	case "application/x-gzip", "gzip", "zlib":
		if at := compression(doc.Body); at != "" { // the body comes from another client, so its first bytes decide
			r.unpack(at, how)
			return
		}
		r.unpack("deflate", how)
	case "application/x-bz2", "bzip2", "bzip":
		r.unpack("bzip2", how)
	case "application/zstd", "zstd", "zstandard":
		r.unpack("zstd", how)
	default:
		name, _ = cut(visible(r.Mask.maskedPart(kombuHeader, name, name), ""), 40)
		doc.step(false, "compression "+name+": not known here")
	}
}

const (
	// maxBzip2 is the maximum size in bytes of compressed bzip2 data. Larger data is not unpacked,
	// because unpacking could take too long: a compressed block of only 30 bytes takes as long as a
	// full block.
	maxBzip2 = 1 << 20
	// bzip2Memory is the memory in bytes that a compress/bzip2 reader allocates: 4 bytes for each of
	// the 900,000 bytes of a block, plus its tables.
	bzip2Memory = 4 << 20
)

func openBzip2(b []byte, budget *budget.Budget) (io.Reader, error) {
	if len(b) > maxBzip2 {
		return nil, errors.New("more than " + deadletter.Bytes(maxBzip2) + " of bzip2 are not unpacked")
	}
	if err := budget.TakeMemory(bzip2Memory); err != nil {
		return nil, err
	}
	return bzip2.NewReader(bytes.NewReader(b)), nil
}
