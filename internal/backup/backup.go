// Package backup makes copies of the store, checks them, and rehearses that they can be restored. A
// backup is a file with a manifest beside it. No file is under its final name before it is complete
// and checked.
package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Copy is an open copy of a store.
type Copy interface {
	Check(ctx context.Context, whole bool) (deadletter.Backup, error)
	Sample(ctx context.Context, n int, each func(*deadletter.Letter) error) error
	Close() error
}

// Source makes and opens copies of a store.
type Source struct {
	Copy    func(ctx context.Context, to string) error
	Open    func(ctx context.Context, path string) (Copy, error)
	Version string // version of this dlo
	Now     func() time.Time
	Rest    func(context.Context) // called after each letter that is read; it may wait; nil = nothing waits
}

// compared is the number of letters whose checksums are compared, if not all of them are.
const compared = 1000

const (
	suffix    = ".json" // of a manifest
	unchecked = ".part" // of a copy that is not checked yet
)

// Make writes a backup to a new file, and its manifest beside it. It checks the structure of the
// copy, its counts, and the checksums of 1,000 letters that are chosen at random. If "whole" is
// true, it checks all letters and the indexes. If there is an error, there is no file.
func (s Source) Make(ctx context.Context, to string, whole bool) (deadletter.Backup, error) {
	if err := Absent(to); err != nil {
		return deadletter.Backup{}, err
	}
	b, err := s.make(ctx, to, whole)
	if err != nil {
		removeRest(to + unchecked)
		return b, fmt.Errorf("backup %s: %w", to, err)
	}
	return b, nil
}

func (s Source) make(ctx context.Context, to string, whole bool) (b deadletter.Backup, err error) {
	removeRest(to + unchecked)
	begun := s.Now().UTC().Truncate(time.Second)
	if err := s.Copy(ctx, to+unchecked); err != nil {
		return b, err
	}
	if b, err = s.check(ctx, to+unchecked, whole, nil); err != nil {
		return b, err
	}
	b.File, b.At, b.Version = filepath.Base(to), begun, s.Version
	return b, publish(to, &b)
}

// removeRest removes what is left of backups that failed or were killed.
func removeRest(paths ...string) {
	for _, path := range paths {
		os.Remove(path)
		os.Remove(path + "-journal")
	}
}

// create creates a file that only the owner may read. It replaces what a killed backup left.
func create(path string) (*os.File, error) {
	os.Remove(path)
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Absent returns an error that wraps fs.ErrExist if there is a file or a manifest of a backup
// already.
func Absent(to string) error {
	for _, path := range []string{to, to + suffix} {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%w: %s exists already; name a new file", fs.ErrExist, path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Decode returns a function that reports whether the body of a letter can no longer be decoded,
// although it could when dlo read the letter. It uses the types that are stored in the copy.
type Decode func(ctx context.Context, c Copy) (fails func(*deadletter.Letter) bool, err error)

// check checks a copy, and returns what its manifest has to say. It also decodes the letters that
// it reads, unless "decode" is nil.
func (s Source) check(ctx context.Context, path string, whole bool, decode Decode) (b deadletter.Backup, err error) {
	c, err := s.Open(ctx, path)
	if err != nil {
		return b, err
	}
	defer c.Close()
	if b, err = c.Check(ctx, whole); err != nil {
		return b, err
	}
	fails := func(*deadletter.Letter) bool { return false }
	if decode != nil {
		if fails, err = decode(ctx, c); err != nil {
			return b, err
		}
	}
	limit := compared
	if whole {
		limit = 0
	}
	if err := c.Sample(ctx, limit, func(l *deadletter.Letter) error {
		b.Compared++
		if l.Damage != "" || fails(l) {
			b.Damaged++
		}
		if s.Rest != nil {
			s.Rest(ctx)
		}
		return ctx.Err()
	}); err != nil {
		return b, err
	}
	b.Bytes, b.SHA256, err = sum(ctx, path)
	return b, err
}

func sum(ctx context.Context, path string) (n int64, hash string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	for err == nil && ctx.Err() == nil {
		var part int64
		part, err = io.CopyN(h, f, 16<<20)
		n += part
	}
	if err != io.EOF {
		return 0, "", cmp.Or(ctx.Err(), err)
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

// Receive writes a backup that is read from r to a new file, with its manifest. If what is read is
// not what the manifest describes, there is no file.
func Receive(r io.Reader, b deadletter.Backup, to string) error {
	if err := Absent(to); err != nil {
		return err
	}
	f, err := create(to + unchecked)
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), r)
	err = errors.Join(err, f.Sync(), f.Close())
	if hash := hex.EncodeToString(h.Sum(nil)); err == nil && hash != b.SHA256 {
		err = fmt.Errorf("%d of %d bytes arrived, or they were changed on the way", n, b.Bytes)
	}
	if err == nil {
		b.File = filepath.Base(to)
		err = publish(to, &b)
	}
	if err != nil {
		os.Remove(to + unchecked)
		return fmt.Errorf("backup %s: %w", to, err)
	}
	return nil
}

// publish gives a checked copy its name. The manifest comes first, so that no backup is without
// one.
func publish(to string, b *deadletter.Backup) error {
	if err := WriteManifest(to, b); err != nil {
		return err
	}
	if err := os.Rename(to+unchecked, to); err != nil {
		os.Remove(to + suffix)
		return err
	}
	return deadletter.SyncFolder(to)
}

// Verify checks a backup and compares it with its manifest. Without a manifest, it checks the file
// alone, and "manifest" is false.
func (s Source) Verify(ctx context.Context, path string, whole bool) (b deadletter.Backup, manifest bool, err error) {
	return s.verify(ctx, path, whole, nil)
}

func (s Source) verify(
	ctx context.Context, path string, whole bool, decode Decode,
) (b deadletter.Backup, manifest bool, err error) {
	said, err := Manifest(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, false, err
	}
	manifest = err == nil
	if b, err = s.check(ctx, path, whole, decode); err != nil {
		return b, manifest, fmt.Errorf("backup %s cannot be used: %w", path, err)
	}
	if manifest && b.SHA256 != said.SHA256 {
		return b, true, fmt.Errorf(
			"%w: backup %s is not the file that its manifest describes: it has %d bytes with the SHA-256 %s, and %s says %d "+
				"bytes with %s; take another backup, or move the manifest away to use the file as it is",
			deadletter.ErrInvalid, path, b.Bytes, b.SHA256, path+suffix, said.Bytes, said.SHA256,
		)
	}
	if manifest {
		b.At, b.Version, b.Rehearsed = said.At, said.Version, said.Rehearsed
	}
	b.File = filepath.Base(path)
	return b, manifest, nil
}

// Rehearse verifies a backup, and also decodes the letters that it reads. It takes no lock,
// connects to nothing, and changes only the manifest, in which it records the result.
func (s Source) Rehearse(ctx context.Context, path string, decode Decode) (deadletter.Rehearsal, error) {
	r := deadletter.Rehearsal{At: s.Now().UTC().Truncate(time.Second)}
	b, manifest, err := s.verify(ctx, path, false, decode)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	r.Letters, r.Read, r.Errors = b.Total(), b.Compared, b.Damaged
	if err != nil {
		r.Problem = deadletter.Visible(err.Error())
	}
	if !manifest {
		return r, nil
	}
	said, err := Manifest(path)
	if err != nil {
		return r, err
	}
	said.Rehearsed = &r
	if err := WriteManifest(path, &said); err != nil && !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) {
		return r, err
	}
	return r, nil
}

// Manifest reads the manifest of a backup. The error wraps fs.ErrNotExist if there is none.
func Manifest(path string) (b deadletter.Backup, err error) {
	text, err := os.ReadFile(path + suffix)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%w: %s is not the manifest of a backup: %w", deadletter.ErrInvalid, path+suffix, err)
	}
	return b, nil
}

// WriteManifest durably writes the manifest of a backup.
func WriteManifest(path string, b *deadletter.Backup) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	f, err := create(path + suffix + unchecked)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+suffix+unchecked, path+suffix)
	}
	if err != nil {
		os.Remove(path + suffix + unchecked)
		return err
	}
	return nil
}

// Name returns the name of a backup file that was made at the given time.
func Name(at time.Time) string { return "dlo-" + at.UTC().Format(layout) }

const layout = "20060102T150405Z.db"

// maxManifest is the maximum size of a manifest in bytes. Other files with the suffix are not read.
const maxManifest = 64 << 10

// List returns the manifests of the backups in a folder, newest first. It leaves out files without
// a manifest, files that do not have the size that their manifest says, and those that were made
// later than "now": a clock was wrong, and they would count as the newest for a long time.
func List(folder string, now time.Time) ([]deadletter.Backup, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list []deadletter.Backup
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), suffix)
		info, err := e.Info()
		if !is || err != nil || !info.Mode().IsRegular() || info.Size() > maxManifest {
			continue
		}
		path := filepath.Join(folder, name)
		b, err := Manifest(path)
		if err != nil || b.SHA256 == "" || b.At.After(now.Add(time.Minute)) {
			continue
		}
		b.File = name // it may have been renamed
		if info, err := os.Stat(path); err == nil && info.Size() == b.Bytes {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(x, y deadletter.Backup) int {
		return cmp.Or(y.At.Compare(x.At), strings.Compare(y.File, x.File))
	})
	return list, nil
}

// Find returns the path of a backup: the path itself, or the newest backup in a folder. In a folder
// with backups of several stores, a person has to name the file.
func Find(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, err
	}
	list, err := List(path, time.Now())
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: there is no backup with a manifest in %s", deadletter.ErrNotFound, path)
	}
	if err != nil {
		return "", err
	}
	for _, b := range list {
		if b.Store != list[0].Store {
			return "", fmt.Errorf(
				"%w: %s has backups of several stores, for example %s and %s: name the file",
				deadletter.ErrInvalid, path, list[0].File, b.File,
			)
		}
	}
	return filepath.Join(path, list[0].File), nil
}
