package payload

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// LoadDir adds what a directory of schemas holds, at any depth: descriptor sets (*.binpb, *.pb, *.desc, *.protoset), each a set of its path; trees of
// .proto files, each a set of the directory from which its imports resolve ("protos" for the top); and zip files (*.zip) of these. Names that begin with
// a dot are passed over, other names as well (a README).
//
// A bad file does not hinder the others. The error, from errors.Join, has one line for each file that was refused, with its name; nil when
// all were taken.
func (r *Registry) LoadDir(fsys fs.FS) error {
	l := &loader{registry: r}
	l.load(fsys, "", true)
	return errors.Join(l.errs...)
}

type loader struct {
	registry *Registry
	errs     []error
	files    int
}

func (l *loader) fail(name string, err error) {
	l.errs = append(l.errs, fmt.Errorf("%s: %w", withoutPath(name), err))
}

// load reads one file system, whose names are shown behind prefix ("bundle.zip/").
func (l *loader) load(fsys fs.FS, prefix string, zips bool) {
	src := newSources()
	sourcesFull := false
	walk := func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			l.fail(prefix+name, err)
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case hiddenName(name) && e.IsDir():
			return fs.SkipDir
		case hiddenName(name) || e.IsDir():
			return nil
		}
		if e.Type()&fs.ModeSymlink != 0 {
			if info, err := fs.Stat(fsys, name); err == nil && info.IsDir() {
				l.fail(prefix+name, errors.New("a link to a directory is not followed"))
				return nil
			}
		}
		if l.files++; l.files > maxSetFiles {
			return fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, count(maxSetFiles))
		}
		switch path.Ext(name) {
		case ".proto":
			if sourcesFull {
				return nil
			}
			if err := src.read(fsys, name); err != nil {
				sourcesFull = true
				src.bad = append(src.bad, err)
			}
		case ".binpb", ".pb", ".desc", ".protoset":
			b, err := readRegular(fsys, name, maxSetBytes)
			if err == nil {
				var v *version
				if v, err = readSet(prefix+name, b); err == nil {
					l.registry.add(v)
					return nil
				}
			}
			l.fail(prefix+name, err)
		case ".zip":
			if !zips {
				l.fail(prefix+name, errors.New("a zip file in a zip file is not read"))
				return nil
			}
			b, err := readRegular(fsys, name, maxSetBytes)
			if err == nil {
				var z *zip.Reader
				if z, err = zip.NewReader(bytes.NewReader(b), int64(len(b))); err == nil {
					if err = checkZip(z); err == nil {
						l.load(z, prefix+name+"/", false)
						return nil
					}
				}
			}
			l.fail(prefix+name, err)
		}
		return nil
	}
	if err := fs.WalkDir(fsys, ".", walk); err != nil {
		l.errs = append(l.errs, err)
	}
	for _, err := range src.bad {
		if prefix != "" {
			err = fmt.Errorf("%s%w", prefix, err)
		}
		l.errs = append(l.errs, err)
	}
	if sourcesFull {
		return // half of a tree would decode as something else than the whole
	}
	for _, t := range src.trees() {
		set := prefix + t.root
		if t.root == "." {
			set = prefix + "protos"
		}
		v, bad := src.compile(set, t)
		for _, err := range bad {
			if prefix != "" {
				err = fmt.Errorf("%s%w", prefix, err)
			}
			l.errs = append(l.errs, err)
		}
		if v != nil {
			l.registry.add(v)
		}
	}
}

// checkZip refuses a bomb by what its directory claims; no file is read beyond its claim.
func checkZip(z *zip.Reader) error {
	if len(z.File) > maxSetFiles {
		return fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, count(maxSetFiles))
	}
	var total uint64
	for _, f := range z.File {
		if total += min(f.UncompressedSize64, maxSetBytes+1); total > maxSetBytes {
			return fmt.Errorf("%w: it unpacks to more than %s", ErrSchemaTooLarge, bytesText(maxSetBytes))
		}
	}
	return nil
}
