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

// comment is a line that is nothing else.
var comment = regexp.MustCompile(`^\t*//`)

// TestCommentsFit: comments are read, so their lines have 100 columns at most.
func TestCommentsFit(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_templ.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if line = strings.TrimSuffix(line, "\n"); comment.MatchString(line) && utf8.RuneCountInString(line) > 100 {
				t.Errorf("%s:%d has %d columns", path, n, utf8.RuneCountInString(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
