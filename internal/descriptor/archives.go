package descriptor

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

var (
	zipMagic = []byte("PK\x03\x04")
	zipEntry = []byte("PK\x01\x02") // starts each entry of a zip file's directory
)

// openZip opens a zip file. Before it unpacks anything, it checks the sizes that the directory of
// the file claims, and so rejects zip bombs. No file is read beyond its claimed size.
func openZip(b []byte) (fs.FS, error) {
	// directories count as entries, too; parsing the entries takes ten times their size in memory
	if bytes.Count(b, zipEntry) > MaxFiles+1000 {
		return nil, fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, deadletter.Count(MaxFiles))
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	if len(z.File) > MaxFiles {
		return nil, fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, deadletter.Count(MaxFiles))
	}
	var total uint64
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, "/")
		switch {
		case !fs.ValidPath(name) || strings.Contains(name, `\`) || len(name) > 1000:
			shown := deadletter.Cut(deadletter.Visible(f.Name), 100)
			return nil, fmt.Errorf(
				"the name %q in it leads elsewhere: names have to be relative, with / between them", shown,
			)
		case f.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%s: a link in a zip file is not followed: zip the file itself", withoutPath(f.Name))
		}
		if total += min(f.UncompressedSize64, maxSetBytes+1); total > maxSetBytes {
			return nil, fmt.Errorf("%w: it unpacks to more than %s", ErrSchemaTooLarge, deadletter.Bytes(maxSetBytes))
		}
	}
	return z, nil
}

// gunzip unpacks gzip data, which buf writes into *.binpb.gz. It returns other data unchanged.
// It measures the unpacked size before it keeps anything.
func gunzip(b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, GzipMagic) {
		return b, nil
	}
	bad := errors.New("gzip: it does not unpack: damaged or incomplete")
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, bad
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, maxSetBytes+1))
	switch {
	case n > maxSetBytes:
		return nil, fmt.Errorf("%w: it unpacks to more than %s", ErrSchemaTooLarge, deadletter.Bytes(maxSetBytes))
	case err != nil:
		return nil, bad
	}
	if err := r.Reset(bytes.NewReader(b)); err != nil {
		return nil, bad
	}
	out := make([]byte, n)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, bad
	}
	return out, nil
}

var GzipMagic = []byte{0x1f, 0x8b, 0x08} // RFC 1952, 2.3.1: two bytes, and the only defined method
