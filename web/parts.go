package web

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// liveHeader is the header in which an open page names the kinds of changes, for example "letters
// operation". The response then contains only the affected parts of the page.
const liveHeader = "Dlo-Live"

// liveKinds returns the kinds in a request's header, or nil if the whole page is requested.
func liveKinds(r *http.Request) []string { return strings.Fields(r.Header.Get(liveHeader)) }

// liveParts returns the elements of a page whose data-live attribute has one of the kinds. The
// elements are exactly as in the page. liveParts also returns the check boxes of the rows, which a
// page uses to count new rows.
func liveParts(page []byte, kinds []string) []byte {
	var out bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(page))
	for inside := 0; ; { // inside is the number of open elements in the part being copied
		kind := z.Next()
		if kind == html.ErrorToken {
			return out.Bytes()
		}
		raw := slices.Clone(z.Raw())
		t := z.Token()
		switch {
		case inside == 0 && !marked(t, kinds):
			continue
		case kind == html.StartTagToken && !empty[t.DataAtom]:
			inside++
		case kind == html.EndTagToken:
			inside--
		}
		out.Write(raw)
	}
}

// marked reports whether the tag t begins a part of the page that has one of the kinds in its
// data-live attribute.
func marked(t html.Token, kinds []string) bool {
	for _, a := range t.Attr {
		switch {
		case a.Key == "data-pick":
			return true
		case a.Key == "data-live" && slices.ContainsFunc(strings.Fields(a.Val), func(k string) bool { return slices.Contains(kinds, k) }):
			return true
		}
	}
	return false
}

// empty lists the elements in dlo's pages that have no end tag.
var empty = map[atom.Atom]bool{atom.Input: true, atom.Wbr: true, atom.Br: true, atom.Hr: true, atom.Meta: true, atom.Link: true, atom.Img: true}
