package descriptor

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	//lint:ignore SA1019 source.go needs its printer, and one parser is enough
	"github.com/jhump/protoreflect/desc"
	//lint:ignore SA1019 likewise
	"github.com/jhump/protoreflect/desc/protoparse"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// The compiler can take much longer than the size of its input suggests. A file of 1 MB can take
// minutes if all its fields, options, extensions or methods are in one place, and the compiler
// cannot be stopped. It therefore runs in a process of its own, a second instance of this program.
// That process is killed when nobody waits for its result any more, or when it has taken too long.
const (
	compileCPU  = 10 // seconds of processor time; the largest tree within the limits needs three (2026-11-23)
	compileWait = time.Minute
	// environment variable of that process: how many seconds of processor time it may take
	compiles = "DLO_COMPILES_PROTO"
)

func init() {
	if seconds, err := strconv.ParseUint(os.Getenv(compiles), 10, 32); err == nil {
		os.Exit(compileFor(seconds, os.Stdin, os.Stdout))
	}
}

// compilation is the input of the compiler process.
type compilation struct {
	Text     map[string][]byte // source texts of a tree, by the names that imports use
	Files    []string          // files to compile, together with their imports
	Comments bool
	Lacking  bool // an import is in no file: what it defines stays unresolved
}

// outcome is the output of the compiler process: a descriptor set, or the errors by file name. An
// error that belongs to no particular file has the file name "".
type outcome struct {
	Set    []byte
	Failed map[string]string
}

// compileFor is the main function of the compiler process.
func compileFor(seconds uint64, from io.Reader, to io.Writer) (code int) {
	// When the compiler process has used all of its processor time, the kernel kills it, whatever
	// it is doing at that moment.
	if err := limitProcessor(seconds); err != nil {
		return 1
	}
	var c compilation
	if err := gob.NewDecoder(from).Decode(&c); err != nil {
		return 1
	}
	if err := gob.NewEncoder(to).Encode(c.compile()); err != nil {
		return 1
	}
	return 0
}

// runProcess compiles in a process of its own. The process may use the given number of seconds of
// processor time. The error wraps ErrSchemaTooLarge if this time is not enough. If ctx ends, the
// error is ctx.Err().
func (c *compilation) runProcess(ctx context.Context, seconds int) (*outcome, error) {
	waiting, cancel := context.WithTimeout(ctx, compileWait)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		program = "/proc/self/exe" // works even if somebody has replaced the file of the program by another version
	}
	var in, out bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(c); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(waiting, program)
	cmd.Env = []string{compiles + "=" + strconv.Itoa(seconds), "GOMAXPROCS=1"} // leaves the other CPUs to other work
	cmd.Stdin, cmd.Stdout = &in, &out
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &ended) && !ended.Exited():
		return nil, fmt.Errorf(
			"%w: it takes more than %d s to compile; upload a descriptor set (buf build -o set.binpb, or protoc --include_imports --descriptor_set_out=set.binpb)",
			ErrSchemaTooLarge, seconds,
		)
	case err != nil:
		return nil, fmt.Errorf("compile in a process of its own: %w", err)
	}
	answer := &outcome{}
	return answer, gob.NewDecoder(&out).Decode(answer)
}

// compile parses the sources in this process.
func (c *compilation) compile() (out outcome) {
	defer func() {
		if recover() != nil { // hostile sources can make the parser panic; see Decode
			out = outcome{Failed: map[string]string{"": "internal error while parsing"}}
		}
	}()
	failed := map[string]string{}
	fail := func(file, text string) {
		if failed[file] == "" {
			if strings.Contains(text, `edition "2024"`) {
				text = errEdition
			}
			failed[file] = text
		}
	}
	p := protoparse.Parser{
		IncludeSourceCodeInfo: c.Comments,
		Accessor: func(name string) (io.ReadCloser, error) {
			b, ok := c.Text[name]
			if !ok || !fs.ValidPath(name) {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(b)), nil
		},
		ErrorReporter: func(e protoparse.ErrorWithPos) error {
			at := e.GetPosition()
			text := deadletter.Cut(deadletter.Visible(e.Unwrap().Error()), 300)
			fail(at.Filename, fmt.Sprintf("line %d, column %d: %s", at.Line, at.Col, text))
			return nil
		},
	}
	if c.Lacking {
		set, err := c.parseAlone(p, fail)
		if err != nil && len(failed) == 0 {
			fail("", deadletter.Visible(err.Error()))
		}
		return outcome{Set: set, Failed: failed}
	}
	fds, err := p.ParseFiles(c.Files...)
	if err != nil && len(failed) == 0 {
		// This error has no position, for example because an import is missing. To find the file, the
		// files are parsed one by one.
		for _, f := range c.Files {
			if len(c.Files) == 1 {
				fail(f, deadletter.Visible(err.Error()))
				break
			}
			if _, err := p.ParseFiles(f); err != nil {
				fail(f, deadletter.Visible(err.Error()))
			}
		}
		if len(failed) == 0 {
			fail("", deadletter.Visible(err.Error()))
		}
	}
	if len(failed) > 0 {
		return outcome{Failed: failed}
	}
	set, err := proto.Marshal(withImports(fds))
	if err != nil {
		return outcome{Failed: map[string]string{"": deadletter.Visible(err.Error())}}
	}
	return outcome{Set: set}
}

// parseAlone parses each file without its imports, and completes the names of types from the files
// that there are. A type that no file defines stays unresolved if a missing import may define it.
func (c *compilation) parseAlone(p protoparse.Parser, fail func(file, text string)) ([]byte, error) {
	// options that a missing import defines are kept as they are written, and have no effect
	p.ValidateUnlinkedFiles, p.InterpretOptionsInUnlinkedFiles = true, true
	files, err := p.ParseFilesButDoNotLink(c.Files...)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*descriptorpb.FileDescriptorProto, len(files))
	for _, f := range files {
		byName[f.GetName()] = f
	}
	seen := map[string]bool{}
	var lacks func(name string) bool // an import of the file is missing, directly or indirectly
	lacks = func(name string) bool {
		if f := byName[name]; f != nil && !seen[name] {
			seen[name] = true
			return slices.ContainsFunc(f.Dependency, lacks)
		}
		return byName[name] == nil && !isWellKnownFile(name)
	}
	for file, name := range complete(files) {
		if clear(seen); !lacks(file) {
			fail(file, "the type "+deadletter.Visible(name)+" is not defined")
		}
	}
	return proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
}

// withImports returns a set of the given files and everything that they import.
func withImports(files []*desc.FileDescriptor) *descriptorpb.FileDescriptorSet {
	set, seen := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	var add func(*desc.FileDescriptor)
	add = func(f *desc.FileDescriptor) {
		if seen[f.GetName()] {
			return
		}
		seen[f.GetName()] = true
		set.File = append(set.File, f.AsFileDescriptorProto())
		for _, i := range f.GetDependencies() {
			add(i)
		}
	}
	for _, f := range files {
		add(f)
	}
	return set
}
