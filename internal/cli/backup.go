package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/backup"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Backups makes, restores and rehearses backups on this machine.
type Backups interface {
	Make(ctx context.Context, cfg config.Config, to string, whole bool) (deadletter.Backup, error)
	Take(ctx context.Context, cfg config.Config, whole bool) (io.ReadCloser, deadletter.Backup, error)
	Restore(ctx context.Context, from, to string, replace, whole bool) (deadletter.Backup, string, error)
	Rehearse(ctx context.Context, cfg config.Config, path string) (string, deadletter.Rehearsal, error)
}

type backupCmd struct {
	serverFlags
	To     string `arg:"" help:"A new file, a folder in which the backup gets a name, or - for standard output."`
	Config string `json:"-" placeholder:"FILE" help:"Copy the store of this configuration file on this machine, whether or not dlo is running. Without it, a running server sends the backup."`
	Full   bool   `json:"-" help:"Check all letters and indexes, and not only 1,000 letters."`
}

// Run makes a backup. On standard output it prints what the manifest says, unless the backup itself
// is written there.
func (c backupCmd) Run(p *Program) error {
	made, err := c.make(p)
	if err != nil || c.To == "-" {
		return err
	}
	return tell(p.Stdout, `{{.File}}: {{.Total}} letters as of {{clock .At}}, {{.Bytes}} bytes, SHA-256 {{.SHA256}}
{{- with .Damaged}}
{{.}} of {{$.Compared}} letters are damaged, in the store as well{{end}}`, made)
}

func (c backupCmd) make(p *Program) (made deadletter.Backup, err error) {
	to := c.To
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, backup.Name(time.Now()))
	}
	switch {
	case to == "-" && terminal(p.Stdout):
		return made, fmt.Errorf("%w: a backup is no text: name a file, or redirect the output to one", errUsage)
	case to != "-":
		if err := backup.Absent(to); err != nil {
			return made, err
		}
	}
	if to != "-" && c.Config != "" {
		cfg, err := loadConfig(p, config.File{Flag: c.Config})
		if err != nil {
			return made, err
		}
		made, err = p.Backups.Make(p.Ctx, cfg, to, c.Full)
		made.File = to
		return made, err
	}
	content, made, err := c.take(p)
	if err != nil {
		return made, err
	}
	defer content.Close()
	if to == "-" {
		_, err = io.Copy(p.Stdout, content)
		return made, err
	}
	if err := backup.Receive(content, made, to); err != nil {
		return made, err
	}
	made.File = to
	return made, nil
}

// take returns the content of a backup: from this machine, or from a server.
func (c backupCmd) take(p *Program) (content io.ReadCloser, made deadletter.Backup, err error) {
	if c.Config != "" {
		cfg, err := loadConfig(p, config.File{Flag: c.Config})
		if err != nil {
			return nil, made, err
		}
		return p.Backups.Take(p.Ctx, cfg, c.Full)
	}
	path := "/backup"
	if c.Full {
		path += "?full=1"
	}
	c.patient = true
	answer, err := c.send(p, http.MethodPost, path, upload{})
	if err != nil {
		return nil, made, err
	}
	if err := json.Unmarshal([]byte(answer.Header.Get(api.BackupHeader)), &made); err != nil {
		answer.Body.Close()
		return nil, made, c.unreadable(err)
	}
	return answer.Body, made, nil
}

type restoreCmd struct {
	From     string `arg:"" type:"path" help:"A backup, or a folder of which the newest backup is used."`
	Store    string `type:"path" xor:"what" required:"" help:"Where to put the store. No dlo may have it open."`
	Rehearse bool   `xor:"what" required:"" help:"Restore nothing. Open the backup read-only, count its letters, and decode 1,000 of them."`
	Replace  bool   `help:"Keep the store that is there under another name, and put the backup in its place."`
	Full     bool   `help:"Check all letters and indexes, and not only 1,000 letters."`
	Config   string `placeholder:"FILE" help:"For a rehearsal: the configuration file (or $DLO_CONFIG) with the settings that decode letters."`
}

// Run restores or rehearses a backup.
func (c restoreCmd) Run(p *Program) error {
	if c.Rehearse {
		return c.rehearse(p)
	}
	made, old, err := p.Backups.Restore(p.Ctx, c.From, c.Store, c.Replace, c.Full)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf(
			"%w: there is a store already; --replace keeps it under another name and puts the backup in its place", err,
		)
	case err != nil:
		return err
	}
	return tell(p.Stdout, `{{with .old}}the store that was there is now {{.}}
{{end}}{{.to}}: {{.made.Total}} letters as of {{clock .made.At}}
{{- with .made.Damaged}}
{{.}} of {{$.made.Compared}} letters are damaged{{end}}
{{.made.AfterRestore}}`, map[string]any{"made": made, "to": c.Store, "old": old})
}

func (c restoreCmd) rehearse(p *Program) error {
	cfg, err := loadConfig(p, config.File{Flag: c.Config})
	if err != nil {
		return err
	}
	path, r, err := p.Backups.Rehearse(p.Ctx, cfg, c.From)
	if err != nil {
		return err
	}
	if err := tell(p.Stdout, `{{.file}}: {{.is.Letters}} letters, {{.is.Read}} of them read and decoded, {{.is.Errors}} errors
{{- if and .is.Letters (not .is.Read) (not .is.Problem)}}
it is from an older version: dlo migrates it at its start, and reads its letters only then{{end}}
{{- with .is.Problem}}
{{.}}{{end}}`, map[string]any{"file": path, "is": r}); err != nil {
		return err
	}
	if r.Problem != "" || r.Errors > 0 {
		return errors.New("the backup cannot be relied on; take another one, and rehearse it")
	}
	return nil
}
