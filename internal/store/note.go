package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// notePath returns the path of the file in which the store notes its progress. The path contains
// the name of the store, so a different store at the same path uses a different file.
func (s *Store) notePath() string {
	return s.path + ".progress-" + s.ShortName()
}

// Note durably writes the store's progress to a file beside the store. If an older copy later
// replaces the store's file, the note shows that the copy is older. Note ignores progress that is
// older than the progress noted last.
func (s *Store) Note(p deadletter.Progress) error {
	c := &s.course
	c.noting.Lock()
	defer c.noting.Unlock()
	if p.Commits <= c.noted {
		return nil
	}
	err := replace(s.notePath(), p.Bytes())
	if err != nil {
		err = fmt.Errorf("note beside the store what is sent: %w", err)
	} else {
		c.noted = p.Commits
	}
	c.unnoted = err
	return err
}

// Unnoted returns the error of the last call of the method Note. If that call succeeded, it returns
// nil.
func (s *Store) Unnoted() error {
	s.course.noting.Lock()
	defer s.course.noting.Unlock()
	return s.course.unnoted
}

// replace writes a file atomically. After a crash, the file has either its old or its new contents.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readNote reads the progress from the note beside the store. It returns nil if there is no note,
// or if the note cannot be parsed.
func (s *Store) readNote() (*deadletter.Progress, error) {
	text, err := os.ReadFile(s.notePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := deadletter.ParseProgress(text)
	if err != nil || p.Store != s.Progress().Store {
		s.log.Warn(
			"what is noted beside the store cannot be read; it is written again", "file", s.notePath(), "err", err,
		)
		return nil, nil
	}
	return &p, nil
}

// compareWithNote checks whether the store's file is older than the note beside it. If it is,
// compareWithNote returns the noted progress. It is called before anything is written to the store.
func (s *Store) compareWithNote(ctx context.Context) (older *deadletter.Progress, err error) {
	p, err := s.readNote()
	if err != nil || p == nil {
		return nil, err
	}
	now := s.Progress()
	if p.Commits > now.Commits || p.Claims > now.Claims {
		return p, nil
	}
	s.course.beside = now.Claims-p.Claims <= int64(maxUnnoted*max(1, len(s.brokers)))
	return nil, nil
}

// maxUnnoted is the maximum number of claim transactions per broker that may be missing in the note
// beside the store after the process has died. It is 2, because a dispatcher has two workers, and
// each of them may have committed a claim that is not noted yet. If more claims are missing in the
// note, the note does not prove that the file is current.
const maxUnnoted = 2

// Strangers returns the notes that other stores left beside this store. Such a note shows that
// another store was once at the same path.
func (s *Store) Strangers() []string {
	found, err := filepath.Glob(escapeGlob(s.path) + ".progress-????????")
	if err != nil {
		return nil
	}
	var list []string
	for _, name := range found {
		id := name[len(name)-8:]
		if _, err := hex.DecodeString(id); err == nil && name != s.notePath() {
			list = append(list, name)
		}
	}
	return list
}

// escapeGlob escapes the special characters of a filepath.Glob pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
