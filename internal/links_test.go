package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	unslug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of all headings in a document, as GitHub generates them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := unslug.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// TestNoLinkIsDead checks every link in the documents that leads to a file of the project or to a
// heading in such a file. It does not check links to other sites.
func TestNoLinkIsDead(t *testing.T) {
	t.Parallel()
	followed := 0
	sources(t, func(path string, lines []string) {
		if filepath.Ext(path) != ".md" {
			return
		}
		text := strings.ReplaceAll(strings.Join(lines, "\n"), "](\n", "](")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			followed++
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			there, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: there is no %s", path, m[1])
				continue
			}
			if anchor == "" || there.IsDir() {
				continue
			}
			if content, err := os.ReadFile(target); err != nil || !anchors(string(content))[anchor] {
				t.Errorf("%s: %s has no heading of that name", path, m[1])
			}
		}
	})
	if followed < 100 {
		t.Errorf("only %d links were found", followed)
	}
}
