package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/term"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// answerFlags are the flags that select the server and the output format.
type answerFlags struct {
	serverFlags
	Output string `json:"-" short:"o" enum:"table,json,jsonl,csv" default:"table" help:"How to print: table, json, jsonl or csv."`
}

// say prints a line on standard output. The line is safe for a terminal.
func (p *Program) say(format string, args ...any) error { return sayTo(p.Stdout, format, args...) }

// note prints a line on standard error. It is safe for a terminal, too.
func (p *Program) note(format string, args ...any) { sayTo(p.Stderr, format, args...) }

// write prints a text of several lines on standard output. For a terminal, it makes the text safe.
func (p *Program) write(text string) error {
	if terminal(p.Stdout) {
		text = deadletter.VisibleLines(text)
	}
	_, err := io.WriteString(p.Stdout, text)
	return err
}

func sayTo(out io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(out, deadletter.Visible(fmt.Sprintf(format, args...)))
	return err
}

func printJSON(out io.Writer, v any, indent bool) error {
	raw, err := api.Marshal(v)
	if err == nil && indent {
		err = (*jsontext.Value)(&raw).Indent(jsontext.WithIndent("  "))
	}
	_, wrong := fmt.Fprintln(out, deadletter.EscapeJSON(string(raw)))
	return errors.Join(err, wrong)
}

// openInput opens a file for reading. The name "-" stands for standard input.
func openInput(p *Program, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.Stdin), nil
	}
	return os.Open(name)
}

const maxGiven = 64 << 20 // bytes; the server has lower limits for most of it

// readInput reads a file that a command line names. A file that cannot be opened, or that is larger
// than the limit, is a mistake in the command line.
func readInput(p *Program, name string) ([]byte, error) {
	in, err := openInput(p, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxGiven+1))
	if err == nil && len(text) > maxGiven {
		err = fmt.Errorf("%w: %s has more than %d MiB", errUsage, name, maxGiven>>20)
	}
	return text, err
}

// These are arguments and flags that name a file, whose content is sent; - is standard input.
type (
	lineFile  string // lines of JSON, of any length
	textFile  string
	bytesFile string
	jsonFile  string
)

func (f lineFile) content(p *Program) (any, error) {
	in, err := openInput(p, string(f))
	return upload{in, "application/x-ndjson"}, err
}

func (f textFile) content(p *Program) (any, error) {
	if p.rules = string(f); f == "-" {
		p.rules = "standard input"
	}
	text, err := readInput(p, string(f))
	return string(text), err
}

func (f bytesFile) content(p *Program) (any, error) { return readInput(p, string(f)) }

func (f jsonFile) content(p *Program) (any, error) {
	text, err := readInput(p, string(f))
	if err == nil && !json.Valid(text) {
		err = fmt.Errorf("%w: %s holds no JSON", errUsage, deadletter.Visible(string(f)))
	}
	return json.RawMessage(text), err
}

// askFlags are the flags of a command that asks before it changes something.
type askFlags struct {
	DryRun bool `name:"dry-run" help:"Say what would change, and change nothing."`
	Yes    bool `json:"-" short:"y" help:"Do not ask."`
}

// confirm asks on the terminal before a command changes something. With --yes, it does not ask.
// Without a terminal, it returns an error.
func (f serverFlags) confirm(p *Program, k *kong.Context, question string) error {
	switch {
	case isSet(k, "yes"):
		return nil
	case !terminal(p.Stdin):
		return fmt.Errorf("%w: %s needs --yes when there is no terminal to ask on", errUsage, pathOf(k.Selected()))
	}
	if err := f.sayServer(p); err != nil {
		return err
	}
	answer, _ := p.ask(question+"? [y/N] ", false)
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// ask prints a question and reads a line of at most 4 KiB. A terminal does not show a secret. ask
// stops waiting when the user interrupts dlo.
func (p *Program) ask(question string, secret bool) (string, error) {
	fmt.Fprint(p.Stderr, deadletter.Visible(question))
	read := func() ([]byte, error) { return bufio.NewReader(io.LimitReader(p.Stdin, 4096)).ReadBytes('\n') }
	if secret && terminal(p.Stdin) {
		fd := int(p.Stdin.(*os.File).Fd())
		if state, err := term.GetState(fd); err == nil {
			defer term.Restore(fd, state)
		}
		read = func() ([]byte, error) { return term.ReadPassword(fd) }
	}
	answers := make(chan string, 1)
	go func() {
		if text, err := read(); err == nil || err == io.EOF && len(text) > 0 {
			answers <- strings.TrimRight(string(text), "\r\n")
		}
		close(answers)
	}()
	text, ok := "", false
	select {
	case <-p.Ctx.Done():
	case text, ok = <-answers:
	}
	if secret || !ok {
		fmt.Fprintln(p.Stderr)
	}
	if !ok {
		return "", errors.New("there was no answer, so nothing was done")
	}
	if !secret { // a password may begin or end with a space
		text = strings.TrimSpace(text)
	}
	return text, nil
}

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// due is a flag for a time, or for the duration from now until then.
type due struct{ time.Time }

// UnmarshalText parses a time or a duration.
func (d *due) UnmarshalText(text []byte) (err error) {
	if in, err := deadletter.ParseDuration(string(text)); err == nil && in >= 0 {
		d.Time = time.Now().Add(in)
		return nil
	}
	if d.Time, err = time.Parse(time.RFC3339, string(text)); err != nil {
		err = fmt.Errorf("%q is not a time from now such as 30m or 12h, nor a time such as 2026-11-22T06:00:00Z", text)
	}
	return err
}

// letterArg, groupArg and operationArg are arguments that name a letter, a group such as G-418, and
// an operation such as O-77.
type (
	letterArg    string
	groupArg     string
	operationArg string
)

// UnmarshalText checks the id of a letter.
func (a *letterArg) UnmarshalText(text []byte) error { return readID(text, a, deadletter.ParseID) }

// UnmarshalText checks the id of a group.
func (a *groupArg) UnmarshalText(text []byte) error { return readID(text, a, deadletter.ParseGroupID) }

// UnmarshalText checks the id of an operation.
func (a *operationArg) UnmarshalText(text []byte) error {
	return readID(text, a, deadletter.ParseOperationID)
}

func readID[A ~string, ID any](text []byte, into *A, parse func(string) (ID, error)) error {
	id, err := parse(string(text))
	*into = A(fmt.Sprint(id))
	return err
}
