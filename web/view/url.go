package view

import (
	"net/url"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// address returns a path with parameters. The argument pairs alternates names and values. Pairs
// with an empty value are left out.
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

// LettersURL returns the URL of the list of letters that q selects. The arguments "after" and
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

// maxCarried is the maximum length in bytes of a query in the links of a list. The limit is needed
// because 50 rows repeat the query, and the size of the page is limited.
const maxCarried = 200

// carried returns q for use in links, or "" if it is too long.
func carried(q string) string {
	if len(q) > maxCarried {
		return ""
	}
	return q
}

// LetterURL returns the URL of a letter's page. q keeps the filter of the list unless the filter is
// very long. An empty tab stands for the first tab.
func LetterURL(id deadletter.ID, q string, tab Tab) string {
	if tab == TabDecoded {
		tab = ""
	}
	return address("/letters/"+url.PathEscape(string(id)), "q", carried(q), "tab", string(tab))
}

// BodyURL returns the URL for downloading the stored bytes of a letter.
func BodyURL(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/body" }

// RevealURL returns the URL for revealing one masked value of a letter.
func RevealURL(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/reveal" }

// GroupURL returns the URL of a group's page.
func GroupURL(g deadletter.GroupID) string { return "/groups/" + g.String() }

// OperationURL returns the URL of an operation's page.
func OperationURL(o deadletter.OperationID) string { return "/operations/" + o.String() }
