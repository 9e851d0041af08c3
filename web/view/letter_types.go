package view

import (
	"net/url"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TypeChoice is what a person can say about the type of a letter, and what people have said.
type TypeChoice struct {
	May      bool              // a type can be picked
	Names    []string          // of registered types
	Unnamed  int               // registered types that are not among Names
	Picks    []deadletter.Pick // that are for the letter, the strongest first: for it, for its group, for its queue
	Typed    string            // as it was written, with For and Reason, where it was refused
	For      string
	Reason   string
	Problem  string // why it was refused
	Readable bool   // something reads the body
}

// typeFor is what a type can be picked for.
type typeFor struct{ value, label string }

// typeFors lists what a type can be picked for: what nothing is known of is left out.
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

// candidates are those that are shown, and what is said of the others.
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

// open says whether several types fit equally well, so that people have to say which it is.
func (p LetterPage) open() bool {
	return p.Tied > 1 && !slices.ContainsFunc(p.Candidates, func(c Candidate) bool { return c.Chosen })
}

// typesShown says whether there is something to say or to choose about the type.
func (p LetterPage) typesShown() bool {
	return len(p.Candidates) > 0 || len(p.Types.Picks) > 0 || p.Types.May
}

// picked says whether the letter is read as people picked: what it says of itself comes before what
// its queue is bound to.
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

// pickedFor says what a pick is for, seen from a letter.
func pickedFor(k deadletter.Pick) []Span {
	switch {
	case k.Letter != "":
		return []Span{{Text: "for this letter"}}
	case k.Group != 0:
		return []Span{{Text: "for its group, " + k.Group.String()}}
	}
	return append([]Span{{Text: "for "}, {Text: line(k.Queue, 60), Code: true}}, boundBy("", k.Queue, k.Key, k.Queue)[1:]...)
}

// typeAction is where a type of a letter is picked.
func typeAction(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/type" }

// back is this page with its tab, for forms.
func (p LetterPage) back() string { return LetterURL(p.Letter.ID, p.Query, p.Tab) }
