package web

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// liveHeader names, in a request for a page that is open already, the kinds of what has changed:
// "letters operation". Only what is about them is sent.
const liveHeader = "Dlo-Live"

// liveKinds are those of a request; nil = the whole page is asked for.
func liveKinds(r *http.Request) []string { return strings.Fields(r.Header.Get(liveHeader)) }

// liveParts are the elements of a page that data-live marks with one of the kinds, as they are
// written there, and the check boxes of its rows, by which a page counts what is new.
func liveParts(page []byte, kinds []string) []byte {
	var out bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(page))
	for inside := 0; ; { // elements that are open in the part that is being copied
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

// marked says whether a part begins with a tag.
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

// empty are the elements of our pages that have no end tag.
var empty = map[atom.Atom]bool{atom.Input: true, atom.Wbr: true, atom.Br: true, atom.Hr: true, atom.Meta: true, atom.Link: true, atom.Img: true}
