package testenv

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// update is the -update flag of `go test`. Only test binaries have this flag.
var update = func() *bool {
	if !testing.Testing() {
		return new(bool)
	}
	return flag.Bool("update", false, "rewrite golden files in testdata")
}()

// Updates reports whether tests rewrite their golden files.
func Updates() bool { return *update }

// Golden compares the output of a component with the file testdata/name. It compares outlines with
// one element on each line (see outline), so that it can show the lines that differ, and not the
// whole page. `go test -update` rewrites the file.
func Golden(t testing.TB, name string, component interface {
	Render(ctx context.Context, w io.Writer) error
},
) {
	t.Helper()
	var page bytes.Buffer
	if err := component.Render(t.Context(), &page); err != nil {
		t.Fatalf("render %s: %v", name, err)
	}
	GoldenHTML(t, name, page.String())
}

// GoldenHTML compares HTML with the file testdata/name, as Golden does. The HTML is a page or a
// part of a page.
func GoldenHTML(t testing.TB, name, page string) {
	t.Helper()
	got, err := outline(page)
	if err != nil {
		t.Fatalf("outline %s: %v", name, err)
	}
	GoldenText(t, name, got)
}

// GoldenText compares a text line by line with the file testdata/name, which `go test -update`
// rewrites.
func GoldenText(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; `go test -update` writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got); `go test -update` rewrites it:\n%s", path, diff)
	}
}

// outline parses a page, or part of one, and prints each element on its own line below its parent,
// without end tags:
//
//	<td class="n">
//	  <a href="/letters/1"> one letter
//	  of many
//
// Text follows its element on the same line if the element contains nothing else. Runs of white
// space become one blank, and leading and trailing white space is dropped. Where HTML preserves
// white space, the text is printed as a quoted string. Attributes keep their order.
func outline(page string) (string, error) {
	var b strings.Builder
	if start := strings.TrimSpace(page); len(start) >= 9 && strings.EqualFold(start[:9], "<!doctype") {
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return "", err
		}
		for n := range doc.ChildNodes() {
			outlineNode(&b, n, 0)
		}
		return b.String(), nil
	}
	// Inside a template, a fragment may begin with any element, such as tr.
	anywhere := &html.Node{Type: html.ElementNode, Data: "template", DataAtom: atom.Template}
	nodes, err := html.ParseFragment(strings.NewReader(page), anywhere)
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		outlineNode(&b, n, 0)
	}
	return b.String(), nil
}

func outlineNode(b *strings.Builder, n *html.Node, depth int) {
	indent := strings.Repeat("  ", depth)
	switch n.Type {
	case html.DoctypeNode:
		fmt.Fprintf(b, "%s<!doctype %s>\n", indent, n.Data)
	case html.CommentNode:
		fmt.Fprintf(b, "%s<!-- %s -->\n", indent, outlineText(n))
	case html.TextNode:
		if text := outlineText(n); text != "" {
			fmt.Fprintf(b, "%s%s\n", indent, text)
		}
	case html.ElementNode:
		fmt.Fprintf(b, "%s<%s", indent, n.Data)
		for _, a := range n.Attr {
			key := a.Key
			if a.Namespace != "" {
				key = a.Namespace + ":" + key
			}
			fmt.Fprintf(b, " %s=%q", key, a.Val)
		}
		b.WriteString(">")
		if only := n.FirstChild; only != nil && only == n.LastChild && only.Type == html.TextNode {
			if text := outlineText(only); text != "" {
				b.WriteString(" " + text)
			}
			b.WriteString("\n")
			return
		}
		b.WriteString("\n")
		for c := range n.ChildNodes() {
			outlineNode(b, c, depth+1)
		}
	}
}

func outlineText(n *html.Node) string {
	for p := n.Parent; p != nil; p = p.Parent {
		switch p.DataAtom {
		case atom.Pre, atom.Textarea, atom.Script, atom.Style:
			return fmt.Sprintf("%q", n.Data)
		}
	}
	return strings.Join(strings.Fields(n.Data), " ")
}
