package static

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

var inQuotes = regexp.MustCompile(`"[^"]*"`)

// What is sent says what the files say: no text in them has what lean takes away.
func TestLeanTakesNothingThatCounts(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(embedded, ".", func(name string, d fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || d.IsDir() || ext != ".css" && ext != ".js" {
			return err
		}
		body, err := fs.ReadFile(embedded, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(body), "\n") {
			if ext == ".js" && (strings.Count(line, "`")%2 == 1 || strings.HasPrefix(strings.TrimSpace(line), "/*") || strings.HasSuffix(strings.TrimSpace(line), "*/") && !strings.Contains(line, "/*")) {
				t.Errorf("%s:%d: a text or a comment that goes over lines: %s", name, i+1, line)
			}
			if ext == ".css" {
				for _, text := range inQuotes.FindAllString(line, -1) {
					if tight.Replace(text) != text {
						t.Errorf("%s:%d: %s would be sent as %s", name, i+1, text, tight.Replace(text))
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, sent string }{
		"a.js":  {"// why\n  const a = 'x'; // here\n\n  b('//');\n", "const a = 'x'; // here\nb('//');\n"},
		"a.css": {"/* why */\n.a, .b :is(i) { color: red; margin: 0 1px; }\n@media (max-width: 1rem) {\n  .c { content: \"▸ \"; }\n}\n", ".a,.b :is(i){color:red;margin:0 1px}\n@media (max-width:1rem) {\n.c{content:\"▸ \"}\n}\n"},
		"a.svg": {"  <svg/>\n", "  <svg/>\n"},
	} {
		if got := string(lean(name, []byte(c.file))); got != c.sent {
			t.Errorf("%s: %q", name, got)
		}
	}
}
