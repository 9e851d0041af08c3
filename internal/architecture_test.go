package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhereToAddNamesWhatIsThere checks that the files and tests named in the first table of
// docs/architecture.md exist.
func TestWhereToAddNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n| I want to add |")
	table, _, _ := strings.Cut(rest, "\n\n")
	for _, file := range regexp.MustCompile(`\b(?:internal|web|docs)/[\w/]+\.\w+`).FindAllString(table, -1) {
		if _, err := os.Stat("../" + file); err != nil && !strings.Contains(file, "NAME") {
			t.Error(err)
		}
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(code, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest\w+`).FindAllString(table, -1)
	for _, name := range named {
		if !tests[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	if len(named) == 0 {
		t.Error("no test is named")
	}
}
