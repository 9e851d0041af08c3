package view

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	root, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// hashes matches the hashes in the names of static files.
var hashes = regexp.MustCompile(`\.[0-9a-f]{12}\.`)

// inside returns the first element with the given name in a page.
func inside(t *testing.T, page, name string) string {
	t.Helper()
	var found string
	each(parse(t, page), func(n *html.Node) {
		if n.Data == name && found == "" {
			found = rendered(n)
		}
	})
	return found
}

// TestGoldenShell compares with golden files the parts that are the same on every page: once with
// all brokers connected, and once with one broker disconnected.
func TestGoldenShell(t *testing.T) {
	for _, name := range []string{"letters-first-run", "letters-broker-down"} {
		page := hashes.ReplaceAllString(render(t, pages()[name]), ".hash.")
		before, rest, _ := strings.Cut(page, "<main")
		_, after, _ := strings.Cut(rest, "</main>")
		testenv.GoldenHTML(t, "shell-"+name+".html", before+after)
	}
}

// each calls f for every HTML element of a page.
func each(n *html.Node, f func(n *html.Node)) {
	if n.Type == html.ElementNode {
		f(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		each(c, f)
	}
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func text(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(text(c))
	}
	return b.String()
}

// TestPagesKeepTheContentSecurityPolicy fails if a page contains anything that the policy forbids,
// or anything that would send requests to other hosts. This includes style attributes and elements,
// scripts that are not files of dlo, on*= attributes, and external and javascript addresses.
func TestPagesKeepTheContentSecurityPolicy(t *testing.T) {
	t.Parallel()
	all := pages()
	for name, c := range hostilePages(3000) {
		all["hostile-"+name] = c
	}
	known := []string{
		"a", "aside", "b", "body", "button", "caption", "circle", "code", "datalist", "dd", "del", "details", "dialog",
		"div", "dl", "dt", "fieldset", "figcaption", "figure", "form", "h1", "h2", "h3", "head", "header", "hr", "html",
		"input", "ins", "kbd", "label", "legend",
		"li", "line", "link", "main", "mark", "meta", "nav", "noscript", "ol", "option", "p", "path", "pre", "progress",
		"q", "rect", "script", "section", "select", "span", "summary", "svg", "symbol", "table", "tbody", "td", "text",
		"textarea", "th", "thead",
		"time", "title", "tr", "ul", "wbr", "use",
	}
	for name, c := range all {
		root := parse(t, render(t, c))
		if strings.ContainsAny(text(root), invisible) {
			t.Errorf("%s: invisible characters of a letter are on the page", name)
		}
		each(root, func(n *html.Node) {
			if !slices.Contains(known, n.Data) {
				t.Errorf("%s: element <%s> is not one of ours", name, n.Data)
			}
			if src, _ := attr(n, "src"); n.Data == "script" &&
				(!strings.HasPrefix(src, "/static/js/") || n.FirstChild != nil) {
				t.Errorf("%s: a script that is not our file: %q", name, src)
			}
			for _, a := range n.Attr {
				// In general, a page must show invisible characters in an escaped form. The
				// exception is the value of an input field, which must contain exactly what a
				// person typed there.
				if strings.ContainsAny(a.Val, invisible) && (n.Data != "input" || a.Key != "value") {
					t.Errorf("%s: invisible characters of a letter in <%s %s>", name, n.Data, a.Key)
				}
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on") {
					t.Errorf("%s: <%s> has the attribute %s", name, n.Data, a.Key)
				}
				rel, _ := attr(n, "rel")
				// the address of a ticket or a deploy, or one from the configuration
				outside := n.Data == "a" && (rel == "noreferrer" || rel == "noreferrer noopener") &&
					strings.HasPrefix(a.Val, "https://") && !strings.ContainsAny(a.Val, `"<> `)
				if slices.Contains([]string{
					"href", "src", "action", "formaction", "xlink:href",
				}, a.Key) && !local(a.Val) && !outside {
					t.Errorf("%s: <%s %s=%q> is not a path of ours", name, n.Data, a.Key, a.Val)
				}
			}
		})
	}
}

// invisible contains the invisible characters that pages must escape.
const invisible = "\x1b\x00\u202e\u200b"

func local(link string) bool {
	return strings.HasPrefix(link, "#") ||
		strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "//") && !strings.HasPrefix(link, `/\`)
}

// TestPagesAreAccessible checks those rules of accessible pages that can be checked without a
// browser: unique ids, labels, captions, scopes, names of buttons and regions, and one h1 per page.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	for name, c := range pages() {
		root := parse(t, render(t, c))
		ids := map[string]int{}
		icons := map[string]bool{}
		headings := 0
		each(root, func(n *html.Node) {
			if id, ok := attr(n, "id"); ok {
				ids[id]++
			}
		})
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%s: id %q occurs %d times", name, id, n)
			}
		}
		each(root, func(n *html.Node) {
			label, labelled := attr(n, "aria-label")
			switch n.Data {
			case "h1":
				headings++
			case "table":
				if !strings.Contains(rendered(n), "<caption") {
					t.Errorf("%s: a table without a caption", name)
				}
			case "th":
				if _, ok := attr(n, "scope"); !ok {
					t.Errorf("%s: <th> without scope: %s", name, text(n))
				}
			case "button", "a":
				if _, hidden := attr(n, "hidden"); strings.TrimSpace(text(n)) == "" && label == "" && !hidden {
					t.Errorf("%s: <%s> without a name: %s", name, n.Data, rendered(n))
				}
			case "input", "select", "textarea":
				kind, _ := attr(n, "type")
				id, _ := attr(n, "id")
				if kind == "hidden" || labelled || n.Parent.Data == "label" {
					break
				}
				if id == "" || !strings.Contains(rendered(root), `for="`+id+`"`) {
					t.Errorf("%s: an input without a label: %s", name, rendered(n))
				}
			case "pre":
				if tab, _ := attr(n, "tabindex"); tab != "0" || label == "" {
					t.Errorf("%s: a scrolling region that the keyboard cannot reach: %.80s", name, rendered(n))
				}
			case "form":
				if method, _ := attr(n, "method"); method == "" && label == "" {
					t.Errorf("%s: a search form without a name", name)
				}
			case "use":
				link, _ := attr(n, "href")
				icons[link[1:]] = true
			}
			for _, key := range []string{"aria-labelledby", "aria-describedby"} {
				refs, _ := attr(n, key)
				for ref := range strings.FieldsSeq(refs) {
					if ids[ref] == 0 {
						t.Errorf("%s: %s=%q names nothing", name, key, ref)
					}
				}
			}
		})
		if headings != 1 {
			t.Errorf("%s: %d h1 elements", name, headings)
		}
		for i := range icons {
			if ids[i] == 0 {
				t.Errorf("%s: icon %q is not in the sprite", name, i)
			}
		}
	}
}

func rendered(n *html.Node) string {
	var b strings.Builder
	html.Render(&b, n)
	return b.String()
}

// TestPagesStaySmall checks that no page exceeds 150 KB. If letters are hostile, a page may take
// 303 KB, and a page of 50 groups or 30 queues 485 KB: a byte of a name can take five bytes in
// HTML, and links and tooltips repeat the names.
func TestPagesStaySmall(t *testing.T) {
	t.Parallel()
	check := func(kind string, all map[string]templ.Component) {
		for name, c := range all {
			budget := 150_000
			if kind != "sample" {
				budget = 303_000
				if strings.HasPrefix(name, "triage") || name == "queues" {
					budget = 485_000
				}
			}
			if size := len(render(t, c)); size > budget {
				t.Errorf("%s page %s takes %d bytes, more than %d", kind, name, size, budget)
			}
		}
	}
	check("sample", pages())
	check("hostile", hostilePages(400))
	if !testing.Short() {
		check("huge", hostilePages(1<<20))
	}
}

// TestActionsArePosts checks that every form either gets a list with GET, or takes an action with
// POST.
func TestActionsArePosts(t *testing.T) {
	t.Parallel()
	for name, c := range pages() {
		each(parse(t, render(t, c)), func(n *html.Node) {
			if n.Data != "form" {
				return
			}
			action, _ := attr(n, "action")
			method, _ := attr(n, "method")
			role, _ := attr(n, "role")
			asks := action == "/triage" && role == "search" || action == "/letters" || action == "/jump" ||
				action == "/audit" || action == "/rules" || action == "/schemas"
			if asks != (method == "") {
				t.Errorf("%s: form %s has the method %q", name, action, method)
			}
		})
	}
}

// TestLivePartsStandAlone checks that every element that a live page fetches again can be parsed
// without the page around it. A table row, for example, cannot be parsed alone.
func TestLivePartsStandAlone(t *testing.T) {
	t.Parallel()
	for name, c := range pages() {
		each(parse(t, render(t, c)), func(n *html.Node) {
			if _, live := attr(n, "data-live"); !live {
				return
			}
			if id, _ := attr(n, "id"); id == "" {
				t.Errorf("%s: a live <%s> has no id", name, n.Data)
			}
			if slices.Contains([]string{
				"tr", "td", "th", "tbody", "thead", "caption", "option", "rect", "path",
			}, n.Data) {
				t.Errorf("%s: a live <%s> cannot stand alone", name, n.Data)
			}
		})
	}
}

// TestEveryLinkIsBelowTheBasePath checks that no page leads out of the path below which people
// reach dlo.
func TestEveryLinkIsBelowTheBasePath(t *testing.T) {
	t.Parallel()
	paths := regexp.MustCompile(` (?:href|src|action|formaction|data-events|data-query)="(/[^"]*)"`)
	ctx := WithReader(t.Context(), deadletter.Local, "/tools/dlo")
	for name, page := range pages() {
		var b strings.Builder
		if err := page.Render(ctx, &b); err != nil {
			t.Fatal(name, err)
		}
		for _, path := range paths.FindAllStringSubmatch(b.String(), -1) {
			if !strings.HasPrefix(path[1], "/tools/dlo/") {
				t.Errorf("%s leads to %s", name, path[1])
			}
		}
	}
}
