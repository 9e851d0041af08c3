package descriptor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// LoadDir adds the schemas that ReadDir finds in a directory.
//
// A bad file does not affect the others. The error comes from errors.Join, and has one line with
// the file's name for each rejected file. It is nil if no file was rejected.
func (r *Registry) LoadDir(fsys fs.FS) error {
	found, errs := ReadDir(context.Background(), fsys)
	for _, f := range found {
		if f.Schema != nil {
			r.Add(deadletter.SchemaVersion{Name: f.Name, Source: deadletter.SchemaDirectory, Detail: f.Name}, f.Schema)
		}
	}
	return errors.Join(errs...)
}

// Found is one set that ReadDir found in a directory.
type Found struct {
	Name   string
	Schema *Schema // nil = no file of the tree can be compiled
	Part   bool    // some files of the tree are omitted because they cannot be compiled
}

// ReadDir reads a directory of schemas, including its subdirectories. It finds the following:
//
//   - Descriptor sets (*.binpb, *.pb, *.desc, *.protoset, optionally with .gz). Each is a set
//     whose name is its path.
//   - Trees of .proto files. Each is a set whose name is the directory from which its imports
//     resolve. The name is "protos" for the top directory.
//   - Zip files (*.zip) of these.
//
// It skips names that begin with a dot, and all other files, such as a README. It returns one error
// with the file's name for each rejected file.
func ReadDir(ctx context.Context, fsys fs.FS) ([]Found, []error) {
	l := &reader{}
	l.read(ctx, fsys, "", true)
	return l.found, l.errs
}

type reader struct {
	found []Found
	errs  []error
	files int
}

func (l *reader) fail(name string, err error) {
	l.errs = append(l.errs, fmt.Errorf("%s: %w", withoutPath(name), err))
}

// read reads one file system. It puts the prefix, such as "bundle.zip/", in front of the names that
// it shows.
func (l *reader) read(ctx context.Context, fsys fs.FS, prefix string, zips bool) {
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
		if l.files++; l.files > MaxFiles {
			return fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, deadletter.Count(MaxFiles))
		}
		switch kindOf(name) {
		case bufFile:
			src.readModules(fsys, name)
		case sourceFile:
			if sourcesFull {
				return nil
			}
			if err := src.read(fsys, name); err != nil {
				sourcesFull = true
				src.bad = append(src.bad, err)
			}
		case setFile:
			b, err := readRegular(fsys, name, maxSetBytes)
			if err == nil {
				b, err = gunzip(b)
			}
			var s *Schema
			if err == nil {
				s, err = ReadSet(b)
			}
			if err != nil {
				l.fail(prefix+name, err)
				return nil
			}
			l.found = append(l.found, Found{Name: prefix + name, Schema: s})
		case zipFile:
			if !zips {
				l.fail(prefix+name, errors.New("a zip file in a zip file is not read"))
				return nil
			}
			b, err := readRegular(fsys, name, maxSetBytes)
			if err == nil {
				var z fs.FS
				if z, err = openZip(b); err == nil {
					l.read(ctx, z, prefix+name+"/", false)
					return nil
				}
			}
			l.fail(prefix+name, err)
		}
		return nil
	}
	if err := fs.WalkDir(fsys, ".", walk); err != nil {
		l.errs = append(l.errs, err)
	}
	trees := src.trees()
	behind := func(errs []error) {
		for _, err := range errs {
			if prefix != "" {
				err = fmt.Errorf("%s%w", prefix, err)
			}
			l.errs = append(l.errs, err)
		}
	}
	behind(src.bad)
	if sourcesFull {
		return // a part of the tree would decode bodies differently from the whole tree
	}
	for _, t := range trees {
		set := prefix + t.root
		if t.root == "." {
			set = prefix + "protos"
		}
		s, bad := src.compile(ctx, t)
		behind(bad)
		l.found = append(l.found, Found{Name: set, Schema: s, Part: len(bad) > 0 || len(src.bad) > 0})
	}
}

// fileKind is the kind of a schema file. The name of the file determines it.
type fileKind int

const (
	otherFile fileKind = iota
	sourceFile
	setFile
	zipFile
	bufFile // says where the modules of buf are
)

// IsSchema reports whether a file in a directory belongs to a schema, judged by its name. Zip files
// do not count.
func IsSchema(name string) bool { return kindOf(name) != otherFile && kindOf(name) != zipFile }

func kindOf(name string) fileKind {
	if base := path.Base(name); base == "buf.yaml" || base == "buf.work.yaml" {
		return bufFile
	}
	ext := path.Ext(name)
	if ext == ".gz" {
		if kindOf(name[:len(name)-len(ext)]) == setFile {
			return setFile
		}
		return otherFile
	}
	switch ext {
	case ".proto":
		return sourceFile
	case ".binpb", ".pb", ".desc", ".protoset":
		return setFile
	case ".zip":
		return zipFile
	}
	return otherFile
}
