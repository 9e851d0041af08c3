package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	auditEvery = time.Second // time between two looks for new acts
	auditBatch = 500         // maximum number of acts that are written at once
	auditSaid  = time.Minute // minimum time between two log lines about a file that cannot be written
)

// auditFile copies the audit log to a file for a SIEM, with one line of JSON for each act. It
// writes each line at least once. After a crash, the file can contain the last lines twice, with
// equal ids. The file is opened for each batch, so that people can rotate it by renaming it.
type auditFile struct {
	path string
	// returns acts whose ids are greater than "after", oldest first, and at most as many as "limit"
	// says
	acts  func(ctx context.Context, after int64, limit int) ([]deadletter.Act, error)
	mask  func(name, text string) (string, bool)
	log   *slog.Logger
	every time.Duration

	last int64     // id of the last act that was written
	said time.Time // when a failure was last logged
}

// open reads which act an earlier process wrote last. It also checks that the file can be written.
func (a *auditFile) open() error {
	text, err := os.ReadFile(a.position())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if a.last, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return fmt.Errorf(
				"%s does not contain the number of an act; delete this file, and dlo writes the audit log again from its beginning",
				a.position(),
			)
		}
	}
	return a.write(nil)
}

// position returns the path of the file that says how far the audit has been copied. This file
// contains the id of the newest audit entry in the audit file.
func (a *auditFile) position() string { return a.path + ".position" }

// run copies acts until ctx is done. It then copies the acts that are left.
func (a *auditFile) run(ctx context.Context) error {
	for {
		stopping := ctx.Err() != nil
		more, err := a.copy(context.WithoutCancel(ctx))
		if now := time.Now(); err != nil && now.Sub(a.said) >= auditSaid {
			a.said = now
			a.log.Warn("the audit log cannot be copied to its file; it is tried again", "file", a.path, "err", err)
		}
		if stopping && (!more || err != nil) {
			return nil
		}
		if more && err == nil {
			continue
		}
		select {
		case <-time.After(a.every):
		case <-ctx.Done():
		}
	}
}

// copy writes one batch of acts. The result "more" is true if there may be further acts to write.
func (a *auditFile) copy(ctx context.Context) (more bool, err error) {
	list, err := a.acts(ctx, a.last, auditBatch)
	if err != nil || len(list) == 0 {
		return false, err
	}
	var lines bytes.Buffer
	for _, act := range list {
		for i := range act.Targets {
			act.Targets[i].Title, _ = a.mask("", act.Targets[i].Title)
		}
		line, err := api.Marshal(act)
		if err != nil {
			return false, err
		}
		lines.Write(append(line, '\n'))
	}
	if err := a.write(lines.Bytes()); err != nil {
		return false, err
	}
	last := list[len(list)-1].ID
	if err := os.WriteFile(a.position()+".new", []byte(strconv.FormatInt(last, 10)+"\n"), 0o600); err != nil {
		return false, err
	}
	if err := os.Rename(a.position()+".new", a.position()); err != nil {
		return false, err
	}
	a.last = last
	return len(list) == auditBatch, nil
}

// write appends lines to the file and syncs the file.
func (a *auditFile) write(lines []byte) error {
	file, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(lines)
	return errors.Join(err, file.Sync(), file.Close())
}
