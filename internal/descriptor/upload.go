package descriptor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ReadUpload reads one file as one set: a FileDescriptorSet, a buf image, a .proto file, or a zip
// file of these. The first bytes of the file determine its format. If they are not enough, the file
// name determines it. In the set, a .proto file has the name under which it was uploaded. A gzip
// file is unpacked first. If a zip file contains one bad file, the whole upload fails.
func ReadUpload(ctx context.Context, fileName string, b []byte) (*Schema, error) {
	if len(b) > maxSetBytes {
		return nil, fmt.Errorf(
			"%w: %s, above %s", ErrSchemaTooLarge, deadletter.Bytes(len(b)), deadletter.Bytes(maxSetBytes),
		)
	}
	fileName = fileName[strings.LastIndexAny(fileName, `/\`)+1:] // the path may be one of any operating system
	if bytes.HasPrefix(b, GzipMagic) {
		var err error
		if b, err = gunzip(b); err != nil {
			return nil, err
		}
		fileName = strings.TrimSuffix(fileName, ".gz")
	}
	switch {
	case len(b) == 0:
		return nil, errors.New("it is empty")
	case bytes.HasPrefix(b, zipMagic):
		return readZipped(ctx, b)
	case kindOf(fileName) == sourceFile:
		return readSource(ctx, fileName, b)
	case deadletter.IsText(b):
		s, err := readSource(ctx, fileName, b)
		if err != nil {
			err = fmt.Errorf("it is a text that cannot be read as a .proto file: %w; %s", err, makesSet)
		}
		return s, err
	}
	s, err := ReadSet(b)
	if errors.Is(err, errNoSet) {
		err = errors.New("this is not a descriptor set, a .proto file or a zip file; " + makesSet)
	}
	return s, err
}

const makesSet = "buf build -o set.binpb, or protoc --include_imports --descriptor_set_out=set.binpb, makes a descriptor set"

func readSource(ctx context.Context, fileName string, b []byte) (*Schema, error) {
	if kindOf(fileName) != sourceFile || !fs.ValidPath(fileName) || hiddenName(fileName) {
		fileName = "schema.proto"
	}
	s := newSources()
	if len(b) > maxSourceBytes {
		return nil, fmt.Errorf(
			"%w: more than %s; a descriptor set may have more", ErrSchemaTooLarge, deadletter.Bytes(maxSourceBytes),
		)
	}
	if err := checkSource(b); err != nil {
		return nil, err
	}
	s.text[fileName], s.imports[fileName], s.total = b, importsOf(b), len(b)
	return s.compileOne(ctx)
}

// readZipped reads the files in a zip file as one set.
func readZipped(ctx context.Context, b []byte) (*Schema, error) {
	z, err := openZip(b)
	if err != nil {
		return nil, err
	}
	l := &reader{}
	l.read(ctx, z, "", false)
	switch {
	case len(l.errs) > 0:
		more := ""
		if n := len(l.errs) - 1; n > 0 {
			more = fmt.Sprintf(" (and %s more)", deadletter.Plural(n, "mistake", "mistakes"))
		}
		return nil, fmt.Errorf("%w%s", l.errs[0], more)
	case len(l.found) == 0:
		return nil, errors.New(
			"there is neither a descriptor set (*.binpb, *.pb, *.desc, *.protoset) nor a .proto file in it",
		)
	case len(l.found) == 1:
		return l.found[0].Schema, nil
	}
	var all []byte // serialised sets that are concatenated form one set
	for _, f := range l.found {
		content, err := f.Schema.Content()
		if err != nil {
			return nil, err
		}
		if all = append(all, content...); len(all) > maxSetBytes {
			return nil, fmt.Errorf("%w: more than %s together", ErrSchemaTooLarge, deadletter.Bytes(maxSetBytes))
		}
	}
	s, err := ReadSet(all)
	if err != nil {
		return nil, fmt.Errorf("%w; upload what does not belong together separately", err)
	}
	return s, nil
}
