package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// ChangeSetting returns how a new value of a setting changes the configuration file, and the rules
// that result. If "digest" is not "", it also saves the file, records who did it, and applies the
// file as SIGHUP does. The digest is that of the file for which the person saw the change. If the
// file cannot be saved, the error wraps ErrConflict. The caller has checked the person's rights.
func (s *Server) ChangeSetting(
	ctx context.Context, by deadletter.Principal, to deadletter.Setting, digest string,
) (deadletter.SettingChange, *rules.Set, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	path, text := s.cfg.Rules.File, []byte(nil)
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return deadletter.SettingChange{}, nil, conflict("%v", err)
		}
	}
	c, cfg, err := config.Change(path, string(text), to, s.getenv)
	stale := c.Digest != s.rules.Set().Digest
	if _, wrong := errors.AsType[*config.Error](err); wrong {
		return c, nil, conflict("the configuration file has mistakes now: %v", err)
	} else if err != nil {
		return c, nil, err
	}
	temporary := ""
	if stale {
		c.Unsaved = "the file has changed since dlo read it; send SIGHUP to dlo, or restart it, and try again"
	} else if c.Unsaved == "" {
		temporary, c.Unsaved = writeBeside(path, c.Now)
		defer os.Remove(temporary)
	}
	switch {
	case digest == "":
		return c, &cfg.Rules, nil
	case c.Unsaved != "":
		return c, nil, conflict("%s", c.Unsaved)
	case digest != c.Digest:
		return c, nil, conflict("the file has changed since you looked at the change; check it again")
	}
	ctx = context.WithoutCancel(ctx) // a saved file is also applied
	replaced := false
	if err := s.store.RecordWith(ctx, deadletter.Once(
		deadletter.ActConfigured, by.Name, c.Changes, deadletter.Target{Kind: deadletter.TargetConfiguration},
	), func() error {
		if now, err := os.ReadFile(path); err != nil || string(now) != string(text) {
			return conflict("the file has just been changed by somebody else")
		}
		if err := os.Rename(temporary, path); err != nil {
			return conflict("the file cannot be replaced (%v); it may be mounted by itself, as in a container, where "+
				"dlo can replace only files of a mounted directory", err)
		}
		replaced = true
		return nil
	}); err != nil {
		if replaced { // the act was not committed
			before, _ := writeBeside(path, c.Was)
			err = errors.Join(err, os.Rename(before, path))
		}
		return c, nil, err
	}
	c.Saved = true
	if _, err := s.reload(ctx, deadletter.Service.Name); err != nil {
		return c, nil, conflict("the file was saved, and dlo could not load it: %v", err)
	}
	return c, &cfg.Rules, nil
}

func conflict(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{deadletter.ErrConflict}, args...)...)
}

// writeBeside writes a text into a new file beside a file, with the mode and the owner of that
// file. It returns the name of the new file, or the reason why the file cannot be replaced.
func writeBeside(path, text string) (name, why string) {
	shown := deadletter.Visible(path)
	info, err := os.Lstat(path)
	if err != nil {
		return "", err.Error()
	}
	was, known := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !known || was.Nlink != 1 {
		return "", shown + " is a link, or no regular file"
	}
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil || f.Close() != nil {
		return "", shown + " is not writable by dlo"
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", "the directory of " + shown + " is not writable by dlo"
	}
	if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
		f.Close()
		return f.Name(), shown + " belongs to another user or group, so dlo cannot replace it"
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return f.Name(), shown + " cannot be written: " + err.Error()
	}
	return f.Name(), ""
}
