package view

import (
	"os"
	"strings"
	"testing"
)

// TestEveryPageHasHelp checks the menu at the top of each page: it links to the document of the
// page, and leads to the glossary and has the version.
func TestEveryPageHasHelp(t *testing.T) {
	t.Parallel()
	glossaryText, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range glossary {
		if row := "| " + w.word + " | " + w.meaning + " |\n"; !strings.Contains(string(glossaryText), row) {
			t.Errorf("docs/glossary.md lacks the row %s", row)
		}
	}
	for _, p := range Places {
		if _, err := os.Stat("../../docs/" + p.document); err != nil {
			t.Errorf("the document of %s: %v", p.Name, err)
		}
		page := render(t, topbar(Shell{Section: p.Section, Build: "v1.2.3"}))
		for _, want := range []string{
			`href="` + documents + p.document + `"`, `href="/glossary"`, "Keyboard shortcuts", "dlo v1.2.3",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the menu lacks %s", p.Name, want)
			}
		}
	}
}
