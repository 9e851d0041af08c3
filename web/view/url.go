package view

import (
	"context"
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// basePath returns the path below which people reach dlo, or "".
func basePath(ctx context.Context) string {
	r, _ := ctx.Value(readerKey{}).(reader)
	return r.base
}

// linkTo returns the link to a path of dlo for an attribute of a page. Links to other sites and to
// places in the page stay as they are.
func linkTo[S ~string](ctx context.Context, path S) S {
	if strings.HasPrefix(string(path), "/") {
		return S(basePath(ctx)) + path
	}
	return path
}

// address returns a path with parameters. The parameter "pairs" contains names and values in turn.
// Parameters with an empty value are omitted.
func address(path string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// LettersURL returns the URL of the list of the letters that q selects. The parameters "after" and
// "before" are cursors.
func LettersURL(q, after, before string) string {
	v := url.Values{}
	v.Set("q", q)
	if after != "" {
		v.Set("after", after)
	}
	if before != "" {
		v.Set("before", before)
	}
	return "/letters?" + v.Encode()
}

// exportURL returns the URL for downloading the letters that q selects.
func exportURL(q, format string) string {
	return "/letters/export?" + url.Values{"q": {q}, "format": {format}}.Encode()
}

// maxCarried is the maximum length in bytes of a query that the links of a list repeat. It is
// limited because 50 rows repeat the query, and pages have to stay small.
const maxCarried = 200

// shortQuery returns the query q for use in links. It returns "" if q is too long.
func shortQuery(q string) string {
	if len(q) > maxCarried {
		return ""
	}
	return q
}

// LetterURL returns the URL of the page of a letter. The parameter q is the query of the list. If q
// is very long, the URL omits it. If "tab" is empty, the page shows its first tab.
func LetterURL(id deadletter.ID, q string, tab Tab) string {
	if tab == TabDecoded {
		tab = ""
	}
	return address("/letters/"+url.PathEscape(string(id)), "q", shortQuery(q), "tab", string(tab))
}

// BodyURL returns the URL from which the stored bytes of a letter are downloaded.
func BodyURL(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/body" }

// RevealURL returns the URL to which a form sends the request to show one masked value of a letter.
func RevealURL(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/reveal" }

// GroupURL returns the URL of the page of a group.
func GroupURL(g deadletter.GroupID) string { return "/groups/" + g.String() }

// OperationURL returns the URL of the page of an operation.
func OperationURL(o deadletter.OperationID) string { return "/operations/" + o.String() }
