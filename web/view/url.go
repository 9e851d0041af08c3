package view

import (
	"net/url"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// address is a path with parameters: pairs of a name and a value, those without a value left out.
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

// LettersURL is the path of the list of letters that q selects; after and before are cursors.
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

// exportURL is where the letters that q selects are downloaded from.
func exportURL(q, format string) string {
	return "/letters/export?" + url.Values{"q": {q}, "format": {format}}.Encode()
}

// maxCarried is the longest query that the links of a list carry along: 50 rows repeat it, and a
// page has its budget.
const maxCarried = 200

// carried is a query as links carry it along; "" where it is too long.
func carried(q string) string {
	if len(q) > maxCarried {
		return ""
	}
	return q
}

// LetterURL is the path of a letter's page; q keeps the filter that its list had, unless that is
// very long, and tab "" is the first tab.
func LetterURL(id deadletter.ID, q string, tab Tab) string {
	if tab == TabDecoded {
		tab = ""
	}
	return address("/letters/"+url.PathEscape(string(id)), "q", carried(q), "tab", string(tab))
}

// BodyURL is where the stored bytes of a letter are downloaded from.
func BodyURL(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/body" }

// RevealURL is where one masked value of a letter is asked for.
func RevealURL(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/reveal" }

// GroupURL is the path of a group's page.
func GroupURL(g deadletter.GroupID) string { return "/groups/" + g.String() }

// OperationURL is the path of an operation's page.
func OperationURL(o deadletter.OperationID) string { return "/operations/" + o.String() }
