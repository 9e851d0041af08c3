package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist checks that every test that docs/security.md names as evidence exists.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, root := range []string{".", "../web", "../cmd"} {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(code, -1) {
				there[string(m[1])] = true
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	names := regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllSubmatch(text, -1)
	if len(names) < 20 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, m := range names {
		if !there[string(m[1])] {
			t.Errorf("there is no %s", m[1])
		}
	}
}
