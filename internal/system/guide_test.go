package system

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// guide is a document whose commands a test runs one by one.
type guide struct {
	t    *testing.T
	name string
	text string
	todo []string // commands in the code blocks that the test has not run yet
}

func readGuide(t *testing.T, name string) *guide {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return &guide{t: t, name: name, text: string(text), todo: shownCommands(string(text))}
}

// command returns a command that the document shows, and fails the test if the document does not
// show it. The texts in "examples" are pairs, as in strings.NewReplacer. In the returned command,
// the second text of each pair replaces the first.
func (g *guide) command(shown string, examples ...string) string {
	g.t.Helper()
	running := strings.Join(strings.Fields(g.text), " ")
	n := slices.Index(g.todo, shown)
	if n >= 0 {
		g.todo = slices.Delete(g.todo, n, n+1)
	} else if !strings.Contains(g.text, "\n"+shown+"\n") && !strings.Contains(running, "`"+shown+"`") {
		g.t.Fatalf("docs/%s does not say %q", g.name, shown)
	}
	return replaceExamples(g.t, shown, examples...)
}

// block returns the n-th code block in the given language. The texts in "examples" are pairs. In
// the returned block, the second text of each pair replaces the first.
func (g *guide) block(language string, n int, examples ...string) string {
	g.t.Helper()
	parts := strings.Split(g.text, "```"+language+"\n")
	if len(parts) <= n {
		g.t.Fatalf("docs/%s has no block %d of %s", g.name, n, language)
	}
	text, _, _ := strings.Cut(parts[n], "```")
	return replaceExamples(g.t, text, examples...)
}

// checkAllRun checks that the test has run every command in the document's code blocks.
func (g *guide) checkAllRun() {
	g.t.Helper()
	if len(g.todo) > 0 {
		g.t.Errorf("docs/%s says more: %q", g.name, g.todo)
	}
}

// replaceExamples returns a text in which the second text of each pair in "examples" replaces the
// first. It fails the test if a text to replace is missing.
func replaceExamples(t *testing.T, text string, examples ...string) string {
	t.Helper()
	for i := 0; i < len(examples); i += 2 {
		if !strings.Contains(text, examples[i]) {
			t.Fatalf("%q does not have %q", text, examples[i])
		}
		text = strings.ReplaceAll(text, examples[i], examples[i+1])
	}
	return text
}
