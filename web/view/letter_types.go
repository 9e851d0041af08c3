package view

import (
	"net/url"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TypeChoice holds the types that a person can choose for a letter, and the types already picked.
type TypeChoice struct {
	May      bool              // a type can be picked
	Names    []string          // registered types
	Unnamed  int               // number of registered types missing from Names
	Picks    []deadletter.Pick // picks for this letter, strongest first: letter, group, queue
	Typed    string            // rejected input, with For and Reason
	For      string
	Reason   string
	Problem  string // why the input was rejected
	Readable bool   // dlo can read the body
}

// typeFor is one scope for which a type can be picked, such as the letter or its queue.
type typeFor struct{ value, label string }

// typeFors lists the scopes for which a type can be picked. Unknown groups and queues are left out.
func (p LetterPage) typeFors() []typeFor {
	list := []typeFor{{"letter", "This letter"}}
	if p.Letter.Group != 0 {
		list = append(list, typeFor{"group", "Its group, " + p.Letter.Group.String()})
	}
	if p.Letter.Origin.Queue != "" {
		list = append(list, typeFor{"binding", "Its queue, " + queueName(p.Letter.Origin.Queue)})
	}
	return list
}

// candidates returns the candidates to show and a description of the others.
func (p LetterPage) candidates() (shown []Candidate, others string) {
	n := min(len(p.Candidates), max(candidatesShown, p.Tied))
	switch {
	case p.Tied > n:
		others = Count(p.Tied-n) + " more fit as well"
	case len(p.Candidates) > n:
		others = Count(len(p.Candidates)-n) + " more with lower scores"
	}
	return p.Candidates[:n], others
}

// open reports whether several types fit equally well, so that people have to choose one.
func (p LetterPage) open() bool {
	return p.Tied > 1 && !slices.ContainsFunc(p.Candidates, func(c Candidate) bool { return c.Chosen })
}

// typesShown reports whether there is anything to show or to choose about the type.
func (p LetterPage) typesShown() bool {
	return len(p.Candidates) > 0 || len(p.Types.Picks) > 0 || p.Types.May
}

// picked reports whether the letter is decoded with the type that people picked. If the letter
// names a type, that type takes precedence over the binding of the letter's queue.
func (p LetterPage) picked() bool {
	return len(p.Types.Picks) > 0 && p.Types.Picks[0].Type == p.Decoded.Type
}

func (p LetterPage) typesTitle() string {
	switch {
	case len(p.Candidates) > 0:
		return "Matches " + Number(max(len(p.Candidates), p.Tied), "type", "types")
	case p.picked():
		return "Type, picked by people"
	}
	return "Type"
}

// pickedFor describes what a pick applies to, as seen from a letter.
func pickedFor(k deadletter.Pick) []Span {
	switch {
	case k.Letter != "":
		return []Span{{Text: "for this letter"}}
	case k.Group != 0:
		return []Span{{Text: "for its group, " + k.Group.String()}}
	}
	return append([]Span{{Text: "for "}, {Text: line(k.Queue, 60), Code: true}}, boundBy("", k.Queue, k.Key, k.Queue)[1:]...)
}

// typeAction returns the URL that picks a type for a letter.
func typeAction(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/type" }

// back returns the URL of this page with its tab, for forms.
func (p LetterPage) back() string { return LetterURL(p.Letter.ID, p.Query, p.Tab) }
