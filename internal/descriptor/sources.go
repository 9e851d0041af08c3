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
	bad     []error // errors of files that were rejected before parsing
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
		case hiddenName(name) || e.IsDir() || path.Ext(name) != ".proto":
			return nil
		}
		return s.read(fsys, name)
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

// trees finds the directories to which imports are relative (the roots), and puts files together
// that import each other, even from several roots.
//
// An import is looked for in the directories above its file, first in the one where most of the
// imports of this file can be found. If it is in none of them, it may be below any directory, such
// as third_party; the nearest one counts. A file that nobody imports, and that imports nothing,
// belongs to the innermost root above it, or else to the top directory. The trees are sorted by
// root, and their files by name.
func (s *sources) trees() []sourceTree {
	names := slices.Sorted(maps.Keys(s.text))
	ending := make(map[string][]string) // the paths that end with a name, by this name
	for _, n := range names {
		for at := 0; ; {
			ending[n[at:]] = append(ending[n[at:]], n)
			next := strings.IndexByte(n[at:], '/')
			if next < 0 {
				break
			}
			at += next + 1
		}
	}
	isVendored := func(n string) bool {
		return slices.ContainsFunc(strings.Split(n, "/"), func(d string) bool { return slices.Contains(vendored, d) })
	}
	own := slices.DeleteFunc(slices.Clone(names), isVendored)
	if len(own) == 0 {
		own = names
	}
	roots := make(map[string]string) // the root of each file
	joined := joins{}                // of roots
	isRoot := make(map[string]bool)
	for left := own; len(left) > 0; left = left[1:] { // grows by what is imported
		n := left[0]
		if !s.importsOwn(n) {
			continue
		}
		home := cmp.Or(roots[n], s.home(n))
		roots[n], isRoot[home] = home, true
		for _, i := range s.imports[n] {
			to := nearest(n, home, i, ending[i])
			if to == "" || isWellKnownFile(i) {
				continue
			}
			root := path.Clean(strings.TrimSuffix(to, i))
			if roots[to] == "" {
				roots[to], isRoot[root] = root, true
				left = append(left, to)
			}
			joined.join(home, roots[to])
		}
	}
	byTree := make(map[string]*sourceTree)
	for _, n := range names {
		root, ok := roots[n]
		if !ok {
			if !slices.Contains(own, n) {
				continue
			}
			root = "."
			for _, dir := range parentDirs(n) {
				if isRoot[dir] {
					root = dir
				}
			}
		}
		t := byTree[joined.of(root)]
		if t == nil {
			t = &sourceTree{root: root, paths: make(map[string]string)}
			byTree[joined.of(root)] = t
		}
		name := strings.TrimPrefix(n, root+"/")
		switch twin := t.paths[name]; {
		case twin == "":
			t.files, t.paths[name] = append(t.files, name), n
		case !bytes.Equal(s.text[twin], s.text[n]):
			s.bad = append(s.bad, fmt.Errorf(
				"%s: %s is imported by the same name, and differs: remove one of them",
				withoutPath(n), deadletter.Visible(twin),
			))
		}
		if !isVendored(root) && (root < t.root || isVendored(t.root)) {
			t.root = root
		}
	}
	var list []sourceTree
	for _, t := range byTree {
		slices.Sort(t.files)
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b sourceTree) int { return strings.Compare(a.root, b.root) })
	return list
}

// home returns the directory above a file in which most of its imports can be found, or the
// outermost of several.
func (s *sources) home(n string) string {
	best, found := ".", -1
	for _, dir := range parentDirs(n) {
		have := 0
		for _, i := range s.imports[n] {
			if _, ok := s.text[path.Join(dir, i)]; ok && !isWellKnownFile(i) {
				have++
			}
		}
		if have > found {
			best, found = dir, have
		}
	}
	return best
}

// nearest returns the path of the file that an import in the file "from" means, or "". The paths
// found end with the name of the import.
func nearest(from, home, name string, found []string) string {
	if p := path.Join(home, name); slices.Contains(found, p) {
		return p
	}
	best, most := "", -1
	for _, p := range found {
		same := 0
		for same < min(len(p), len(from)) && p[same] == from[same] {
			same++
		}
		if same = strings.Count(p[:same], "/"); same > most && p != from {
			best, most = p, same
		}
	}
	return best
}

// joins are names that belong together: each leads to another one, or stands for its group.
type joins map[string]string

func (j joins) of(name string) string {
	for next, ok := j[name]; ok; next, ok = j[name] {
		name = next
	}
	return name
}

func (j joins) join(a, b string) {
	if a, b = j.of(a), j.of(b); a != b {
		j[max(a, b)] = min(a, b)
	}
}

// importsOwn reports whether a file imports any file that is not well known.
func (s *sources) importsOwn(name string) bool {
	return slices.ContainsFunc(s.imports[name], func(i string) bool { return !isWellKnownFile(i) })
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
