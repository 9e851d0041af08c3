package cli

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

func typesTable() command {
	return noun("types", groupRules, "Manage descriptor sets, with which dlo decodes bodies.",
		command{
			name: "list", help: "List descriptor sets; with a word, types and fields with it in their names.",
			args: struct {
				callCmd
				Word string `arg:"" json:"q" optional:"" help:"Part of the name of a type or a field; upper and lower case are the same."`
			}{},
			with: "q", other: &command{
				route: "GET /types", answer: api.Types{}, rows: "hits", columns: "type field is set",
				none: "no type or field has that in its name", note: `{{template "problems" .}}`,
			},
			route: "GET /types", answer: api.Types{}, rows: "sets",
			none: "there are no sets; dlo types add adds one", note: `{{template "problems" .}}`,
			columns: "set=name version=version|short state=current|current types=type_count source from=detail " +
				"who=by came=current_at|age",
		},
		command{
			name: "show", help: "Print a type as .proto, or what a set holds.", args: typesShowCmd{},
			answer: api.TypeSource{}, note: `{{template "definitions" .}}`, text: "{{whole .Text}}",
		},
		command{
			name: "add", help: "Add descriptor sets, or new versions of them, or say what they would change.",
			args: typesAddCmd{}, answer: api.Upload{}, text: `{{template "upload" .}}`,
		},
		command{
			name: "match", help: "Say which types a body matches, and why.", args: bodyCmd{},
			route: "POST /types/match", answer: api.MatchAnswer{}, rows: "matches",
			columns: "score=score|score type why=reasons",
			note:    "{{.Verdict}}, of {{.Types}} types{{with .Why}}: {{.}}{{end}}",
		},
		command{
			name: "decode", help: "Print a body as JSON.", args: typesDecodeCmd{},
			route: "POST /types/match", answer: api.MatchAnswer{}, note: `{{template "steps" .}}`,
		},
		act("bind", "Bind queues to a type, for letters that do not name their type.", struct {
			callCmd
			Queue  string `arg:"" help:"The queue that letters died in; * stands for anything, ? for one character."`
			Type   string `arg:"" help:"The full name of a registered message type."`
			Key    string `help:"Only letters with this routing key; * and ? as in the queue."`
			Path   string `help:"Only the member of JSON bodies that holds the message as base64, for example row.payload."`
			Reason string `help:"Why, for the audit."`
		}{}, "POST /bindings", api.Pick{}, `{{template "pick" .}}`),
		act("unbind", "Remove a binding, or the pick for a group or a letter.", numberedCmd{},
			"DELETE /bindings/{id}", nil, "binding {{.id}} is removed"),
		command{
			name: "bindings", help: "List bindings, and picks for groups and letters.",
			route: "GET /bindings", answer: api.Bindings{}, rows: "bindings configuration",
			none:    "there are no bindings and no picks",
			columns: "id for=|picked read_as=type who=by|by saved=at|age reason",
		},
		command{
			name: "remove", help: "Take an uploaded set out of use, with all its versions.",
			args: struct {
				callCmd
				askFlags
				Set string `arg:"" help:"The set, as the list shows it."`
			}{},
			route: "DELETE /types/{set}", answer: api.Removal{}, text: `{{template "removal" .}}`,
			ask: "remove set {{.Set}} with {{.Types}} types; {{.Letters}} letters have one of them",
		},
	)
}

type typesShowCmd struct {
	answerFlags
	Name string `arg:"" help:"A type, by its full or short name, or a set."`
}

// Run prints a type or the types of a set.
func (c typesShowCmd) Run(p *Program, k *kong.Context) error {
	a, _, err := fetch[api.Types](c.serverFlags, p, http.MethodGet, "/types", nil)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(a.Sets, func(s descriptor.Set) bool { return s.Name == c.Name && s.Current }); i >= 0 {
		set := a.Sets[i]
		set.At = time.Time{} // only `types list` shows the time at which a version first arrived
		raw, err := api.Marshal(set)
		names := command{answer: set, note: `{{template "set" .}}`, text: "{{range .Types}}{{.}}\n{{end}}"}
		return cmp.Or(err, c.print(p, names, raw))
	}
	path := withQuery("/types/proto", map[string]any{"type": c.Name})
	_, raw, err := fetch[api.TypeSource](c.serverFlags, p, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return c.print(p, commandOf(k.Selected()), raw)
}

// bodyCmd is a command about a body that is a file, and the properties of its letter.
type bodyCmd struct {
	callCmd
	File            bytesFile `arg:"" json:"body" help:"The body; - reads it from the standard input."`
	ContentType     string    `help:"The content type."`
	ContentEncoding string    `help:"The content encoding, for example gzip."`
	Property        string    `json:"type" help:"The type property."`
	Queue           string    `help:"The queue, for bindings."`
	Key             string    `help:"The routing key, for bindings."`
}

type typesDecodeCmd struct {
	bodyCmd
	Type string `json:"as" help:"Decode the body as this type, even if it matches another."`
}

// Run prints a body as JSON, and on standard error how it was decoded.
func (c typesDecodeCmd) Run(p *Program, k *kong.Context) error {
	raw, err := c.perform(p, k, commandOf(k.Selected()), nil)
	var a api.MatchAnswer
	if err == nil {
		err = api.Unmarshal(raw, &a)
	}
	d := a.Decoded
	if d.CharsetGuessed {
		fmt.Fprintf(p.Stderr, "The charset %s is a guess.\n", d.Charset)
	}
	switch {
	case err != nil || c.Output != "table" || d.Kind == "empty":
		return err
	case c.Type != "" && d.Type == "":
		return fmt.Errorf("it cannot be decoded as %s: %s", c.Type, d.Problem)
	case string(d.JSON) != "" && string(d.JSON) != "null":
		return printJSON(p.Stdout, d.JSON, true)
	case d.Kind == "text":
		return p.write(a.Text + "\n")
	}
	return errors.New(cmp.Or(d.Problem, a.Why, "no type can decode it"))
}

type typesAddCmd struct {
	answerFlags
	Name   string   `help:"The name of the set; defaults to the file name without its extension."`
	DryRun bool     `name:"dry-run" help:"Say what would change, and change nothing."`
	Files  []string `arg:"" name:"file" help:"A descriptor set, a Buf image, a .proto file, or a zip file or directory of these. Each argument becomes one set; - reads one from the standard input."`
}

// Run adds each file as a set.
func (c typesAddCmd) Run(p *Program, k *kong.Context) error {
	if c.Name != "" && len(c.Files) > 1 {
		return fmt.Errorf("%w: --name names one set; add one file at a time", errUsage)
	}
	for n, name := range c.Files {
		if err := c.add(p, commandOf(k.Selected()), name); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			if n > 0 && !c.DryRun {
				return fmt.Errorf("%w: the sets before it are added: %s", errPartly, err)
			}
			return err
		}
	}
	return nil
}

func (c typesAddCmd) add(p *Program, add command, name string) error {
	content, name, err := schemaFile(p, name)
	if err != nil {
		return err
	}
	values := map[string]any{"filename": name, "name": c.Name, "dry_run": c.DryRun}
	body := upload{bytes.NewReader(content), "application/octet-stream"}
	_, raw, err := fetch[api.Upload](c.serverFlags, p, http.MethodPost, withQuery("/types", values), body)
	if err != nil {
		return err
	}
	return c.print(p, add, raw)
}

const maxSchemaFiles = 10_000

// schemaFile returns the content and the name to send to the server. The source is a file, standard
// input or a directory. A directory is sent as a zip file.
func schemaFile(p *Program, name string) ([]byte, string, error) {
	if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, "", err
		}
		b, err := zipDirectory(os.DirFS(name))
		return b, filepath.Base(abs) + ".zip", err
	}
	b, err := readInput(p, name)
	return b, strings.TrimPrefix(filepath.Base(name), "-"), err
}

// zipDirectory returns a zip file that contains the schema files of a directory. It omits every
// file and directory whose name begins with a dot.
func zipDirectory(fsys fs.FS) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	files, size := 0, 0
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(e.Name(), ".")
		switch {
		case err == nil && hidden && e.IsDir():
			return fs.SkipDir
		case err != nil || hidden || e.IsDir() || !descriptor.IsSchema(name):
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		if files, size = files+1, size+len(text); files > maxSchemaFiles || size > maxGiven {
			return fmt.Errorf("%w: it has more than 64 MiB or 10,000 files of schemas; add a part of it", errUsage)
		}
		to, failed := z.Create(name)
		if err = errors.Join(err, failed); err == nil {
			_, err = to.Write(text)
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
