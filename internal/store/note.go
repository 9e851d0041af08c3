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

// besides is the file that progress is noted in. It bears the name of the store, so that another
// store in the same place has another.
func (s *Store) besides() string {
	name := s.Progress().Store
	return s.path + ".progress-" + name[:min(8, len(name))]
}

// Note writes down beside the file how far the store has got, durably: a file that is put in the
// place of this one, and is older, is found out by it. What is older than what is noted is not.
func (s *Store) Note(p deadletter.Progress) error {
	c := &s.course
	c.noting.Lock()
	defer c.noting.Unlock()
	if p.Commits <= c.noted {
		return nil
	}
	err := replace(s.besides(), p.Bytes())
	if err != nil {
		err = fmt.Errorf("note beside the store what is sent: %w", err)
	} else {
		c.noted = p.Commits
	}
	c.unnoted = err
	return err
}

// Unnoted returns why the last Note failed, nil when it did not.
func (s *Store) Unnoted() error {
	s.course.noting.Lock()
	defer s.course.noting.Unlock()
	return s.course.unnoted
}

// replace writes a file so that it has its old or its new contents whenever the machine stops.
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

// noted reads what is noted beside the file; nil where nothing can be read there.
func (s *Store) noted() (*deadletter.Progress, error) {
	text, err := os.ReadFile(s.besides())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := deadletter.ParseProgress(text)
	if err != nil || p.Store != s.Progress().Store {
		s.log.Warn("what is noted beside the store cannot be read; it is written again", "file", s.besides(), "err", err)
		return nil, nil
	}
	return &p, nil
}

// compare looks whether the file is older than what is noted beside it, before anything is written.
func (s *Store) compare(ctx context.Context) (older *deadletter.Progress, err error) {
	p, err := s.noted()
	if err != nil || p == nil {
		return nil, err
	}
	now := s.Progress()
	if p.Commits > now.Commits || p.Claims > now.Claims {
		return p, nil
	}
	s.course.beside = now.Claims-p.Claims <= int64(unnoted*max(1, len(s.known.list)))
	return nil, nil
}

// unnoted is how many claims of one broker may not be noted yet when the process dies: its
// dispatcher has two workers. A note that is older belongs to an older file.
const unnoted = 2

// Strangers are the notes of other stores beside this one: another store was in its place.
func (s *Store) Strangers() []string {
	found, err := filepath.Glob(globbed(s.path) + ".progress-????????")
	if err != nil {
		return nil
	}
	var list []string
	for _, name := range found {
		id := name[len(name)-8:]
		if _, err := hex.DecodeString(id); err == nil && name != s.besides() {
			list = append(list, name)
		}
	}
	return list
}

// globbed escapes what is special in a pattern of filepath.Glob.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
