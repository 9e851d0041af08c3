package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the maximum width of a line in comments and in documents.
const columns = 100

// comments holds a pattern for each file extension. The pattern matches lines that are only a
// comment.
var comments = map[string]*regexp.Regexp{
	".go":    regexp.MustCompile(`^\t*//`),
	".templ": regexp.MustCompile(`^\t*//`),
	".sql":   regexp.MustCompile(`^\s*--`),
	".yaml":  regexp.MustCompile(`^\s*# `),
	".js":    regexp.MustCompile(`^\s*(//|/?\*+) `),
	"":       regexp.MustCompile(`^\s*# `), // shell scripts and the Makefile
}

// unbroken is a pattern for lines that cannot be wrapped, because they contain a JSDoc type.
var unbroken = regexp.MustCompile(`^\s*/?\*+ .*@(type|param|returns)`)

// TestCommentsFit checks that comment lines have at most 100 columns.
func TestCommentsFit(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, lines []string) {
		comment, ok := comments[filepath.Ext(path)]
		if !ok || strings.HasSuffix(path, "_templ.go") {
			return
		}
		for i, line := range lines {
			if n := utf8.RuneCountInString(
				line,
			); n > columns && comment.MatchString(line) && !unbroken.MatchString(line) {
				t.Errorf("%s:%d has %d columns", path, i+1, n)
			}
		}
	})
}

// TestProseFits checks that lines in the documents have at most 100 columns. Lines of code, tables
// and images may be longer.
func TestProseFits(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, lines []string) {
		if filepath.Ext(path) != ".md" {
			return
		}
		code := false
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|") ||
				strings.HasPrefix(line, "![") {
				continue
			}
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("%s:%d has %d columns", path, i+1, n)
			}
		}
	})
}

// sources reads the files of the project, including those in the folders .ci and .github, and calls
// the function "visit" for each.
func sources(t *testing.T, visit func(path string, lines []string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" &&
			d.Name() != ".github":
			return filepath.SkipDir
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.Type().IsRegular() || filepath.Ext(path) == "" && filepath.Dir(path) != "../.ci" &&
			d.Name() != "Makefile":
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && utf8.Valid(text) {
			visit(path, strings.Split(string(text), "\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
