package descriptor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// These are the limits of one tree of .proto files. They are checked before parsing, because a
// syntax tree needs about fifty times the memory of its source, and deep nesting uses up the stack.
const (
	maxSourceBytes      = 16 << 20
	maxSourceDepth      = 64
	maxSourceStatements = 500_000
	// bytes of a tree whose comments are kept; with its comments, a tree needs about ten times the
	// memory of its source
	maxCommented = 4 << 20
)

const errEdition = "edition 2024 is not understood in .proto files: upload a descriptor set (buf build -o set.binpb, or protoc --include_imports --descriptor_set_out=set.binpb)"

// AddSource adds a tree of .proto files as the newest version of the set with the given name. It
// returns the sorted full names of the message types. The imports must be relative to one directory
// of the tree, and AddSource finds out which one it is. The tree need not contain the well-known
// types.
//
// Files of edition 2024 are rejected, and users have to upload a descriptor set instead. If
// AddSource returns an error, it has changed nothing.
func (r *Registry) AddSource(name string, fsys fs.FS) ([]string, error) {
	src, err := readSources(fsys)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", deadletter.Visible(name), err)
	}
	s, err := src.compileOne(context.Background())
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", deadletter.Visible(name), err)
	}
	r.Add(deadletter.SchemaVersion{Name: name}, s)
	return s.Types(), nil
}

// compileOne compiles sources that must form a single tree, and must not have errors.
func (s *sources) compileOne(ctx context.Context) (*Schema, error) {
	trees := s.trees()
	switch {
	case len(trees) == 0:
		return nil, errors.New("there is no .proto file in it")
	case len(trees) > 1:
		var roots []string
		for _, t := range trees {
			roots = append(roots, deadletter.Visible(t.root))
		}
		return nil, fmt.Errorf(
			"imports resolve from several directories (%s): add each of them on its own", strings.Join(roots, ", "),
		)
	}
	schema, bad := s.compile(ctx, trees[0])
	if len(bad) > 0 {
		return nil, bad[0]
	}
	return schema, nil
}

// sources holds the .proto files of a directory, by path.
type sources struct {
	text    map[string][]byte
	imports map[string][]string
	bufDirs []string // the directories with a buf.yaml
	modules []string // the directories of its modules
	bad     []error  // errors of files that were rejected before parsing
	total   int
}

func newSources() *sources {
	return &sources{text: make(map[string][]byte), imports: make(map[string][]string)}
}

// readSources reads all .proto files of a file system. It returns an error if any file is rejected.
func readSources(fsys fs.FS) (*sources, error) {
	s := newSources()
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case hiddenName(name) && e.IsDir():
			return fs.SkipDir
		case hiddenName(name) || e.IsDir():
			return nil
		case kindOf(name) == bufFile:
			s.readModules(fsys, name)
		case kindOf(name) == sourceFile:
			return s.read(fsys, name)
		}
		return nil
	})
	if err == nil && len(s.bad) > 0 {
		err = s.bad[0]
	}
	return s, err
}

// hiddenName reports whether a name begins with a dot. Such names are skipped, because Kubernetes
// keeps the files of a mounted ConfigMap below "..data" and links to them.
func hiddenName(name string) bool {
	base := path.Base(name)
	return base != "." && strings.HasPrefix(base, ".")
}

// read reads one file. It returns an error only if a limit on all files together is exceeded. If a
// file is rejected for another reason, read adds the error to s.bad.
func (s *sources) read(fsys fs.FS, name string) error {
	if len(s.text) == MaxFiles {
		return fmt.Errorf("%w: more than %s files", ErrSchemaTooLarge, deadletter.Count(MaxFiles))
	}
	b, err := readRegular(fsys, name, maxSourceBytes-s.total)
	if errors.Is(err, ErrSchemaTooLarge) {
		return fmt.Errorf(
			"%w: the .proto files have more than %s together; a descriptor set may have more", ErrSchemaTooLarge,
			deadletter.Bytes(maxSourceBytes),
		)
	}
	if err == nil {
		err = checkSource(b)
	}
	if err != nil {
		s.bad = append(s.bad, fmt.Errorf("%s: %w", withoutPath(name), err))
		return nil
	}
	s.total += len(b)
	s.text[name] = b
	s.imports[name] = importsOf(b)
	return nil
}

// readRegular reads a regular file of at most limit bytes. If the file system follows links, the
// name may be a link to such a file. The size that the file system reports may be wrong, for
// example in a zip file. If the file turns out to be larger than that, readRegular returns an
// error.
func readRegular(fsys fs.FS, name string, limit int) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > int64(limit) {
		return nil, fmt.Errorf("%w: more than %s", ErrSchemaTooLarge, deadletter.Bytes(limit))
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, info.Size()+1) // one allocation, because a slice that grows would take several times as much
	n, err := io.ReadFull(f, b)
	switch {
	case err == nil:
		return nil, errors.New("it is larger than it claims")
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return nil, err
	}
	return b[:n:n], nil
}

// checkSource rejects a source that a parser would have to nest too deeply, or that has too many
// elements.
func checkSource(b []byte) error {
	depth, statements, types := 0, 0, 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '{', '[', '<', '(':
			if depth++; depth > maxSourceDepth {
				return fmt.Errorf("%w: nested deeper than %d levels", ErrSchemaTooLarge, maxSourceDepth)
			}
			statements++
		case '}', ']', '>', ')':
			depth = max(depth-1, 0)
		case ';', ',':
			statements++
		case '"', '\'':
			for i++; i < len(b) && b[i] != c && b[i] != '\n'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			statements++
		case '/':
			if i+1 < len(b) && b[i+1] == '/' {
				for i < len(b) && b[i] != '\n' {
					i++
				}
			} else if i+1 < len(b) && b[i+1] == '*' {
				end := bytes.Index(b[i+2:], []byte("*/"))
				if end < 0 {
					return errors.New("a comment does not end")
				}
				i += end + 3
			}
		case 'm', 'g':
			if hasWord(b[i:], "message") || hasWord(b[i:], "group") {
				types++
			}
		}
		switch {
		case statements > maxSourceStatements:
			return fmt.Errorf("%w: more than %s statements", ErrSchemaTooLarge, deadletter.Count(maxSourceStatements))
		case types > maxSetTypes:
			return fmt.Errorf("%w: more than %s types", ErrSchemaTooLarge, deadletter.Count(maxSetTypes))
		}
	}
	return nil
}

func hasWord(b []byte, word string) bool {
	return len(b) > len(word) && string(b[:len(word)]) == word &&
		(b[len(word)] == ' ' || b[len(word)] == '\t' || b[len(word)] == '\n')
}

// importsOf finds the imports of a .proto source line by line. It is not a full parser, but its
// result is good enough to find the directory from which the imports resolve.
func importsOf(b []byte) []string {
	var list []string
	for line := range bytes.Lines(b) {
		for part := range bytes.SplitSeq(line, []byte(";")) {
			part = bytes.TrimSpace(part)
			rest, ok := bytes.CutPrefix(part, []byte("import"))
			if !ok {
				continue
			}
			from := bytes.IndexAny(rest, `"'`)
			if from < 0 {
				continue
			}
			name := string(rest[from+1:])
			if to := strings.IndexAny(name, `"'`); to > 0 {
				list = append(list, name[:to])
			}
		}
	}
	return list
}

// sourceTree is a set of files that import each other. Files have the names that imports use.
type sourceTree struct {
	root  string            // the directory that names the tree: "." or a path
	files []string          // sorted
	paths map[string]string // the paths of the files, by name
}

// path returns the path of a file. If no file has the name, it returns the name.
func (t sourceTree) path(name string) string { return cmp.Or(t.paths[name], name) }

// vendored are directories that hold copies of other people's files. Of these, only what is
// imported is read.
var vendored = []string{"third_party", "vendor", "node_modules"}

// trees finds the directories to which imports are relative (the roots), and returns one tree for
// each: the files below the root, and what they import from other roots.
//
// The roots are the modules of buf.yaml, if there is such a file. Otherwise, the root of a file is
// the directory above it in which most of its imports can be found. An import that is not in the
// root of its file may be below any directory, such as third_party; the nearest one counts. A file
// that imports nothing belongs to the root by which others import it, or else to the innermost root
// above it, or else to the top directory. The trees are sorted by root, and their files by name.
func (s *sources) trees() []sourceTree {
	names := slices.Sorted(maps.Keys(s.text))
	ending := make(map[string][]string) // the paths that end with a name, by this name
	for _, n := range names {
		for _, dir := range parentDirs(n) {
			ending[below(n, dir)] = append(ending[below(n, dir)], n)
		}
	}
	own := slices.DeleteFunc(slices.Clone(names), s.isForeign)
	if len(own) == 0 {
		own = names
	}
	homes, isRoot := make(map[string]string), make(map[string]bool) // the root of each file
	for _, n := range own {
		homes[n] = s.home(n)
		isRoot[homes[n]] = true
	}
	for _, n := range own {
		for _, i := range s.imports[n] {
			if to := nearest(n, homes[n], i, ending[i]); to != "" && homes[to] == "" {
				homes[to] = path.Clean(strings.TrimSuffix(to, i))
				isRoot[homes[to]] = true
			}
		}
	}
	trees := make(map[string]*sourceTree)
	for _, n := range own {
		root := homes[n]
		if root == "" {
			root = "."
			for _, dir := range parentDirs(n) {
				if isRoot[dir] {
					root = dir
				}
			}
		}
		if trees[root] == nil {
			trees[root] = &sourceTree{root: root, paths: make(map[string]string)}
		}
		trees[root].paths[below(n, root)] = n
	}
	var list []sourceTree
	for _, root := range slices.Sorted(maps.Keys(trees)) {
		t := trees[root]
		for left := slices.Sorted(maps.Keys(t.paths)); len(left) > 0; left = left[1:] { // grows by what is imported
			n := t.path(left[0])
			home := path.Clean(strings.TrimSuffix(n, left[0]))
			for _, i := range s.imports[n] {
				to := nearest(n, home, i, ending[i])
				switch there := t.paths[i]; {
				case to == "" || isWellKnownFile(i) || there == to:
				case there == "":
					t.paths[i] = to
					left = append(left, i)
				case !bytes.Equal(s.text[there], s.text[to]):
					s.bad = append(s.bad, fmt.Errorf(
						"%s: it imports %s as %s, and %s has that name, too, and differs",
						withoutPath(n), deadletter.Visible(to), deadletter.Visible(i), deadletter.Visible(there),
					))
				}
			}
		}
		t.files = slices.Sorted(maps.Keys(t.paths))
		list = append(list, *t)
	}
	return list
}

// below returns the path of a file from one of the directories above it.
func below(name, dir string) string { return strings.TrimPrefix(name, dir+"/") }

// isForeign reports whether a file is a copy of somebody else's, or belongs to a buf.yaml and is in
// none of its modules.
func (s *sources) isForeign(n string) bool {
	in := func(list []string) bool {
		return slices.ContainsFunc(parentDirs(n), func(dir string) bool { return slices.Contains(list, dir) })
	}
	return isVendored(n) || in(s.bufDirs) && !in(s.modules)
}

func isVendored(n string) bool {
	return slices.ContainsFunc(strings.Split(n, "/"), func(d string) bool { return slices.Contains(vendored, d) })
}

// readModules reads the directories of modules from a buf.yaml or buf.work.yaml (docs of buf, v1
// and v2). If the file has another form, it is left out, and the imports decide.
func (s *sources) readModules(fsys fs.FS, name string) {
	b, err := readRegular(fsys, name, 1<<20)
	var file struct {
		Modules     []struct{ Path string }
		Directories []string
	}
	if err != nil || isVendored(name) || yaml.Unmarshal(b, &file) != nil {
		return
	}
	for _, m := range file.Modules {
		file.Directories = append(file.Directories, m.Path)
	}
	if len(file.Directories) == 0 {
		file.Directories = []string{"."}
	}
	s.bufDirs = append(s.bufDirs, path.Dir(name))
	for _, dir := range file.Directories {
		s.modules = append(s.modules, path.Join(path.Dir(name), dir))
	}
}

// home returns the module of a file, or else the directory above it in which most of its imports
// can be found, the outermost of several. It returns "" if there is none.
func (s *sources) home(n string) (best string) {
	most := 1
	for _, dir := range slices.Backward(parentDirs(n)) {
		if slices.Contains(s.modules, dir) {
			return dir
		}
		have := 0
		for _, i := range s.imports[n] {
			if _, ok := s.text[path.Join(dir, i)]; ok && !isWellKnownFile(i) {
				have++
			}
		}
		if have >= most {
			best, most = dir, have
		}
	}
	return best
}

// nearest returns the path of the file that an import in the file "from" means, or "". The paths
// found end with the name of the import.
func nearest(from, home, name string, found []string) (best string) {
	if p := path.Join(home, name); slices.Contains(found, p) {
		return p
	}
	most := 0
	for _, p := range found {
		same := 0 // directories that the two files have in common
		for _, dir := range parentDirs(p) {
			if dir == "." || strings.HasPrefix(from, dir+"/") {
				same++
			}
		}
		if same > most && p != from {
			best, most = p, same
		}
	}
	return best
}

// parentDirs returns the directories above a file, the outermost first.
func parentDirs(name string) []string {
	list := []string{"."}
	for i, c := range name {
		if c == '/' {
			list = append(list, name[:i])
		}
	}
	return list
}

func isWellKnownFile(name string) bool { return wellKnownFile(name) >= 0 }

// compile compiles a tree into a schema. It omits files that do not compile, and files that import
// them. For each of these files, it returns an error with the position. The schema is nil if no
// file is left.
func (s *sources) compile(ctx context.Context, t sourceTree) (*Schema, []error) {
	var bad []error
	files := t.files
	for round := 0; len(files) > 0; round++ {
		set, failed, err := s.parse(ctx, t, files)
		if err != nil {
			if t.root != "." {
				err = fmt.Errorf("%s: %w", withoutPath(t.root), err)
			}
			return nil, append(bad, err)
		}
		if len(failed) == 0 {
			v, err := ReadSet(set) // the set is read like any other, so that its version does not depend on its source
			if err != nil {
				return nil, append(bad, fmt.Errorf("%s: %w", withoutPath(t.root), err))
			}
			return v, bad
		}
		for _, f := range files {
			if err := failed[f]; err != nil {
				bad = append(bad, err)
			}
		}
		// these errors come after the errors that caused them, whatever the order of the files and
		// of the parallel parser is
		bad = append(bad, s.failedImporters(t, files, failed)...)
		left := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return failed[f] != nil })
		if len(left) == len(files) || round == 100 { // the error is in a file that was not requested
			for _, err := range failed {
				bad = append(bad, err)
			}
			return nil, bad
		}
		files = left
	}
	return nil, bad
}

// failedImporters finds the files that import a failed file, directly or indirectly. It adds them
// to the map "failed", and returns their errors.
func (s *sources) failedImporters(t sourceTree, files []string, failed map[string]error) (bad []error) {
	for again := true; again; {
		again = false
		for _, f := range files {
			for _, i := range s.imports[t.path(f)] {
				if failed[i] != nil && failed[f] == nil {
					failed[f] = fmt.Errorf(
						"%s: it imports %s, which is left out", withoutPath(t.path(f)), deadletter.Visible(i),
					)
					bad, again = append(bad, failed[f]), true
				}
			}
		}
	}
	return bad
}

// parse compiles the given files and their imports into a descriptor set. The result "failed" has
// one error for each file that does not compile. The result "err" is an error only if the parser
// could not run.
func (s *sources) parse(
	ctx context.Context, t sourceTree, files []string,
) (set []byte, failed map[string]error, err error) {
	c := compilation{Text: map[string][]byte{}, Files: files, Comments: s.total <= maxCommented}
	for name, p := range t.paths {
		c.Text[name] = s.text[p]
		c.Lacking = c.Lacking || slices.ContainsFunc(s.imports[p], func(i string) bool {
			return t.paths[i] == "" && !isWellKnownFile(i)
		})
	}
	out, err := c.runProcess(ctx, compileCPU)
	if err != nil {
		return nil, nil, err
	}
	failed = make(map[string]error, len(out.Failed))
	for f, text := range out.Failed {
		failed[f] = fmt.Errorf("%s: %s", withoutPath(t.path(f)), text)
	}
	return out.Set, failed, nil
}
