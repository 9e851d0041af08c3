package web

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// liveHeader is the request header in which an open page names what has changed, for example
// "letters operation". The response then contains only the affected parts of the page.
const liveHeader = "Dlo-Live"

// liveKinds returns the kinds of changes that a request names in its header. It returns nil if the
// whole page is requested.
func liveKinds(r *http.Request) []string { return strings.Fields(r.Header.Get(liveHeader)) }

// liveParts returns the elements of a page that have changed. An element names in its attribute
// data-live the kinds of changes that affect it, and the parameter "kinds" lists the kinds that
// have happened. liveParts copies the elements unchanged. It also returns the check boxes of the
// rows, from which the browser counts the new rows.
func liveParts(page []byte, kinds []string) []byte {
	var out bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(page))
	for inside := 0; ; { // inside is the number of open elements in the part that is copied
		kind := z.Next()
		if kind == html.ErrorToken {
			return out.Bytes()
		}
		raw := slices.Clone(z.Raw())
		t := z.Token()
		switch {
		case inside == 0 && !beginsPart(t, kinds):
			continue
		case kind == html.StartTagToken && !empty[t.DataAtom]:
			inside++
		case kind == html.EndTagToken:
			inside--
		}
		out.Write(raw)
	}
}

// beginsPart reports whether the tag t begins a part of the page that liveParts returns. This is so
// if the attribute data-live of the tag contains one of the given kinds of changes, or if the tag
// has the attribute data-pick.
func beginsPart(t html.Token, kinds []string) bool {
	for _, a := range t.Attr {
		switch {
		case a.Key == "data-pick":
			return true
		case a.Key == "data-live" && slices.ContainsFunc(
			strings.Fields(a.Val), func(k string) bool { return slices.Contains(kinds, k) },
		):
			return true
		}
	}
	return false
}

// empty contains the HTML elements in the pages of dlo that have no end tag.
var empty = map[atom.Atom]bool{
	atom.Input: true, atom.Wbr: true, atom.Br: true, atom.Hr: true, atom.Meta: true, atom.Link: true, atom.Img: true,
}
