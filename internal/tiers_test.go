package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	declared  = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n(.*)\n`)
	fullLine  = regexp.MustCompile(`(?m)^\t(testenv\.)?Full\(t\)$`)
	elsewhere = regexp.MustCompile(`testenv\.(Soak|Bench)\(t\)`)
)

// TestEveryTestHasItsTier compares the table in CONTRIBUTING with the tests. The second column must
// name tests of `make test`, among them each test of internal/system, because these tests cost the
// most. The third column must name each file with a test that testenv.Full marks.
func TestEveryTestHasItsTier(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| Promise |")
	table, _, _ = strings.Cut(table, "\n\n")
	var essential, files []string
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, "|")
		for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			essential = append(essential, m[1])
		}
		for _, room := range strings.Split(cells[3], ";") {
			name, list, _ := strings.Cut(strings.TrimSpace(room), ": ")
			for _, file := range strings.Split(list, ", ") {
				if file != "" {
					files = append(files, name+"/"+file)
				}
			}
		}
	}
	there, marked := map[string]bool{}, map[string]bool{}
	for _, root := range []string{".", "../web", "../cmd"} {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			full := 0
			for _, m := range declared.FindAllStringSubmatch(string(code), -1) {
				switch name, first := m[1], m[2]; {
				case fullLine.MatchString(first):
					full++
					marked[name] = true
				case strings.HasPrefix(path, "system/") && name != "TestMain" &&
					!elsewhere.MatchString(body(string(code), name)) && !slices.Contains(essential, name):
					t.Errorf("%s is in make test, but not in the table of CONTRIBUTING", name)
				default:
					there[name] = true
				}
			}
			if n := len(fullLine.FindAllString(string(code), -1)); n != full {
				t.Errorf("%s calls testenv.Full %d times, but %d tests begin with it", path, n, full)
			}
			file := strings.TrimSuffix(strings.TrimPrefix(path, "../"), "_test.go")
			if i := slices.Index(files, file); full > 0 && i < 0 {
				t.Errorf("%s has tests of make test-full, but is not in the table of CONTRIBUTING", path)
			} else if i >= 0 && full == 0 {
				t.Errorf("%s is in the table of CONTRIBUTING, but has no test of make test-full", path)
			} else if i >= 0 {
				files = slices.Delete(files, i, i+1)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range essential {
		if !there[name] || marked[name] {
			t.Errorf("make test has no %s, although the table of CONTRIBUTING says so", name)
		}
	}
	for _, file := range files {
		t.Errorf("%s is in the table of CONTRIBUTING twice, or is not there", file)
	}
}

// body returns the text of a test from its name on.
func body(code, name string) string {
	_, after, _ := strings.Cut(code, "func "+name+"(")
	text, _, _ := strings.Cut(after, "\n}\n")
	return text
}
