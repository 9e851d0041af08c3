package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Decode returns a function that reports whether the body of a letter can no longer be decoded,
// although it could when dlo read the letter. It uses the types that are stored in the copy.
type Decode func(ctx context.Context, c Copy) (fails func(*deadletter.Letter) bool, err error)

// Rehearse opens a backup and reads it as a start after a restore would: it counts all letters,
// compares them with the manifest, and reads and decodes 1,000 letters that are chosen at random.
// It takes no lock, connects to nothing, and changes only the manifest, in which it records the
// result. After each letter it calls "rest", which may wait.
func (s Source) Rehearse(
	ctx context.Context, path string, decode Decode, rest func(context.Context) error,
) (deadletter.Rehearsal, error) {
	said, err := Manifest(path)
	hasManifest := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return deadletter.Rehearsal{}, err
	}
	r := deadletter.Rehearsal{At: s.Now().UTC()}
	err = s.rehearse(ctx, path, &r, decode, rest, func(b *deadletter.Backup) error {
		if hasManifest && (!maps.Equal(b.Letters, said.Letters) || b.Newest != said.Newest) {
			return fmt.Errorf(
				"it has the letters %v up to %s, and its manifest says %v up to %s",
				b.Letters, b.Newest, said.Letters, said.Newest,
			)
		}
		return nil
	})
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		r.Problem = deadletter.Visible(err.Error())
	}
	if hasManifest {
		said.Rehearsed = &r
		if err := WriteManifest(path, &said); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (s Source) rehearse(
	ctx context.Context, path string, r *deadletter.Rehearsal, decode Decode, rest func(context.Context) error,
	differs func(*deadletter.Backup) error,
) error {
	c, err := s.Open(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	b, err := c.Contents(ctx)
	if err != nil {
		return err
	}
	r.Letters = b.Total()
	if err := differs(&b); err != nil {
		return err
	}
	if err := c.Check(ctx, false); err != nil {
		return err
	}
	fails, err := decode(ctx, c)
	if err != nil {
		return err
	}
	return c.Sample(ctx, compared, func(l *deadletter.Letter) error {
		r.Read++
		if l.Damage != "" || fails(l) {
			r.Errors++
		}
		return rest(ctx)
	})
}
