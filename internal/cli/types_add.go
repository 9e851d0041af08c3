package cli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type typesAddCmd struct {
	answerFlags
	Name   string   `name:"name" help:"The name of the set; defaults to the file name without its extension."`
	DryRun bool     `name:"dry-run" help:"Say what would change, and change nothing."`
	Files  []string `arg:"" name:"file" help:"A descriptor set, a Buf image, a .proto file, or a zip file or directory of these. Each argument becomes one set; - reads one from the standard input."`
}

func (c typesAddCmd) Run(p *Program) error {
	if c.Name != "" && len(c.Files) > 1 {
		return fmt.Errorf("%w: --name names one set; add one file at a time", errUsage)
	}
	for n, name := range c.Files {
		if err := c.add(p, name); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			if n > 0 && !c.DryRun {
				return fmt.Errorf("%w: the sets before it are added: %s", errPartly, err)
			}
			return err
		}
	}
	return nil
}

func (c typesAddCmd) add(p *Program, name string) error {
	content, name, err := schemaFile(p.Stdin, name)
	if err != nil {
		return err
	}
	values := url.Values{"filename": {name}}
	if c.Name != "" {
		values.Set("name", c.Name)
	}
	if c.DryRun {
		values.Set("dry_run", "1")
	}
	answer, err := c.send(
		p, 0, http.MethodPost, "/types?"+values.Encode(), bytes.NewReader(content), "Content-Type",
		"application/octet-stream",
	)
	if err != nil {
		return err
	}
	defer answer.Close()
	raw, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err != nil {
		return fmt.Errorf("the answer was cut off: %w", err)
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, json.RawMessage(raw), c.Output == "json")
	}
	var a api.Upload
	if err := api.Unmarshal(raw, &a); err != nil {
		return err
	}
	_, err = io.WriteString(p.Stdout, uploadText(&a))
	return err
}

// uploadText returns a description of what an uploaded descriptor set changes, with a line for each
// type.
func uploadText(a *api.Upload) string {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString(deadletter.Visible(fmt.Sprintf(format, args...)))
		b.WriteByte('\n')
	}
	what := map[string]string{"": "a new version", "older": "an older version again", "current": "nothing new"}[a.Known]
	if a.DryRun {
		what += " (nothing is changed yet)"
	}
	say("set %s %s: %d types in %d files, %s", a.Set, a.Version[:min(8, len(a.Version))], a.TypeCount, a.Files, what)
	rest := func(total, shown int) {
		if n := total - shown; n > 0 {
			say("  and %d more", n)
		}
	}
	for _, t := range a.Added {
		say("+ %s", t)
	}
	rest(a.AddedCount, len(a.Added))
	differences := func(t api.TypeChange) {
		for _, d := range t.Differences {
			say("    %s", d)
		}
		if t.More > 0 {
			say("    and %d more", t.More)
		}
	}
	for _, t := range a.Changed {
		say("~ %s", t.Type)
		differences(t)
	}
	rest(a.ChangedCount, len(a.Changed))
	for _, t := range a.Removed {
		say("- %s", t)
	}
	rest(a.RemovedCount, len(a.Removed))
	for _, t := range a.Conflicts {
		say("! %s is defined differently in set %s; a body is decoded with the definition that fits", t.Type, t.Set)
		differences(t)
	}
	rest(a.ConflictCount, len(a.Conflicts))
	if a.Letters > 0 {
		say("%d letters have a type that changes", a.Letters)
	}
	if a.Sampled > 0 {
		say("of the newest %d letters that no type can decode, the set can decode %d", a.Sampled, a.Readable)
	}
	return b.String()
}

const (
	maxSchemaFile  = 64 << 20 // in bytes; the server has the same limit
	maxSchemaFiles = 10_000
)

// schemaFile returns the content and the name to send to the server. The source is a file, standard
// input or a directory. A directory is sent as a zip file.
func schemaFile(stdin io.Reader, name string) ([]byte, string, error) {
	if name == "-" {
		b, err := readSome(stdin)
		return b, "", err
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errUsage, err)
	}
	if info.IsDir() {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, "", err
		}
		b, err := zipDirectory(os.DirFS(name))
		return b, filepath.Base(abs) + ".zip", err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errUsage, err)
	}
	defer f.Close()
	b, err := readSome(f)
	return b, filepath.Base(name), err
}

func readSome(from io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, maxSchemaFile+1))
	if err == nil && len(b) > maxSchemaFile {
		err = fmt.Errorf("%w: it has more than 64 MiB", errUsage)
	}
	return b, err
}

var schemaExtensions = []string{".proto", ".binpb", ".pb", ".desc", ".protoset", ".gz"}

// zipDirectory returns a zip file that contains the schema files of a directory. It omits every
// file and directory whose name begins with a dot.
func zipDirectory(fsys fs.FS) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	files, size := 0, int64(0)
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() || !slices.Contains(schemaExtensions, filepath.Ext(name)):
			return nil
		}
		from, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := z.Create(name)
		if err != nil {
			return err
		}
		n, err := io.Copy(to, io.LimitReader(from, maxSchemaFile+1-size))
		files, size = files+1, size+n
		if files > maxSchemaFiles || size > maxSchemaFile {
			return fmt.Errorf("%w: it has more than 64 MiB or 10,000 files of schemas; add a part of it", errUsage)
		}
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%w: there is neither a .proto file nor a descriptor set in it", errUsage)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
