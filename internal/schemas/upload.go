package schemas

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Upload makes the content of a file the newest version of a set. The file is a FileDescriptorSet,
// a buf image, a .proto file, or a zip file of these. If the parameter "name" is empty, the file
// name gives the name of the set. Upload returns the changes. It changes nothing in a dry run, or
// if the content is already the newest version. The error wraps ErrForbidden, ErrInvalid or
// ErrConflict.
func (l *Library) Upload(
	ctx context.Context, by deadletter.Principal, name string, file []byte, fileName string, dryRun bool,
) (descriptor.Change, deadletter.SchemaEffect, error) {
	var c descriptor.Change
	var e deadletter.SchemaEffect
	if err := deadletter.Allow(by, deadletter.VerbTypes, deadletter.Origin{}); err != nil {
		return c, e, err
	}
	name, err := setName(name, fileName)
	if err != nil {
		return c, e, err
	}
	l.change.Lock() // only one file is read at a time, because a large one needs much memory
	defer l.change.Unlock()
	s, err := descriptor.ReadUpload(ctx, fileName, file)
	if err != nil {
		return c, e, fmt.Errorf("%w: %w", deadletter.ErrInvalid, err)
	}
	if len(s.Types()) == 0 {
		return c, e, fmt.Errorf("%w: it defines no message type", deadletter.ErrInvalid)
	}
	if _, was := l.registry.Current(name); was.Name != "" && was.Source != deadletter.SchemaUpload {
		return c, e, fmt.Errorf(
			"%w: the set %s comes from %s; choose another name", deadletter.ErrConflict, name, originWords(was),
		)
	}
	c = l.registry.Compare(name, s)
	e = deadletter.SchemaEffect{Types: len(s.Types()), Files: s.Files()}
	if e.Letters, err = l.letterCount(ctx, c.Affected); err != nil {
		return c, e, err
	}
	if c.Known == descriptor.KnownCurrent {
		return c, e, nil
	}
	if err := l.try(ctx, name, s, &e); err != nil {
		return c, e, err
	}
	if dryRun {
		return c, e, nil
	}
	return c, e, l.adopt(ctx, deadletter.SchemaVersion{
		Name:   name,
		Source: deadletter.SchemaUpload,
		Detail: deadletter.Visible(deadletter.Cut(fileName, maxName)),
		By:     by.Name,
	}, s, &c)
}

// originWords says where a set comes from if it was not uploaded.
func originWords(v deadletter.SchemaVersion) string {
	if v.Source == deadletter.SchemaReflection {
		return "the server " + deadletter.Visible(v.Detail)
	}
	return "the directory of schemas (" + deadletter.Visible(v.Detail) + ")"
}

const sample = 50 // number of letters with which a set is tried out

// try tries out a schema on letters that no schema can decode now. It counts how many of them this
// schema could decode.
func (l *Library) try(ctx context.Context, name string, s *descriptor.Schema, e *deadletter.SchemaEffect) error {
	if l.Untyped == nil || l.Decoder == nil {
		return nil
	}
	letters, err := l.Untyped(ctx, sample)
	if err != nil || len(letters) == 0 {
		return err
	}
	trial := *l.Decoder()
	trial.Types = l.registry.With(name, s)
	for i := range letters {
		if letters[i].Undecodable() {
			continue
		}
		e.Sampled++
		if trial.Letter(&letters[i]).Reading().Typed() {
			e.Readable++
		}
	}
	return nil
}
