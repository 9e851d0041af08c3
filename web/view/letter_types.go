package view

import (
	"net/url"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// TypeChoice contains the types that a person can pick for a letter, and the types that are already
// picked.
type TypeChoice struct {
	May      bool              // the person may pick a type
	Names    []string          // the registered types
	Unnamed  int               // the number of registered types that are not in Names
	Picks    []deadletter.Pick // the picks for this letter, strongest first: for the letter, the group, the queue
	Inside   []payload.Inside  // the messages in members of a JSON body
	Members  []string          // the paths of such members, also those whose type is unknown
	Typed    string            // the rejected input, together with For, Path and Reason
	For      string
	Path     string
	Reason   string
	Problem  string // why the input was rejected
	Readable bool   // dlo can read the body
}

// typeFor is one choice of what a type is picked for, for example the letter or its queue.
type typeFor struct{ value, label string }

// typeFors returns what a type can be picked for: the letter, its group or its queue. It omits an
// unknown group or queue.
func (p LetterPage) typeFors() []typeFor {
	list := []typeFor{{"letter", "This letter"}}
	if p.Letter.Group != 0 {
		list = append(list, typeFor{"group", "Its group, " + p.Letter.Group.String()})
	}
	if p.Letter.Queue != "" {
		list = append(list, typeFor{"binding", "Its queue, " + queueName(p.Letter.Queue)})
	}
	return list
}

// candidates returns the message types that the page proposes for the letter, and a few words about
// the candidates that it does not show.
func (p LetterPage) candidates() (shown []payload.Match, others string) {
	n := min(len(p.Candidates), max(candidatesShown, p.Tied))
	switch {
	case p.Tied > n:
		others = Count(p.Tied-n) + " more fit as well"
	case len(p.Candidates) > n:
		others = Count(len(p.Candidates)-n) + " more with lower scores"
	}
	return p.Candidates[:n], others
}

// needsChoice reports whether a person has to choose a type because several fit equally well.
func (p LetterPage) needsChoice() bool {
	return p.Tied > 1 && !slices.ContainsFunc(p.Candidates, func(m payload.Match) bool { return m.Type == p.Chosen })
}

// typesShown reports whether the page has anything to show or to choose about the type.
func (p LetterPage) typesShown() bool {
	return len(p.Candidates) > 0 || len(p.Types.Picks) > 0 || p.Types.May
}

// picked reports whether the letter is decoded with a type that a person picked. If a person picked
// a type for the queue, but the letter itself names another type, the named type takes precedence.
// In that case, picked returns false.
func (p LetterPage) picked() bool {
	return len(p.Types.Picks) > 0 && p.Types.Picks[0].Path == "" && p.Types.Picks[0].Type == p.Decoded.Type
}

// counts reports whether the pick with the given index decides a type of the letter.
func (p LetterPage) counts(i int) bool {
	k := p.Types.Picks[i]
	return i == 0 && p.picked() || k.Path != "" && slices.ContainsFunc(p.Types.Inside, func(in payload.Inside) bool {
		return in.Path == k.Path && in.Type == k.Type
	})
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

// pickedFor describes what a pick applies to: the letter, its group or its queue.
func pickedFor(k deadletter.Pick) []Span {
	switch {
	case k.Letter != "":
		return []Span{{Text: "for this letter"}}
	case k.Group != 0:
		return []Span{{Text: "for its group, " + k.Group.String()}}
	}
	list := append([]Span{
		{Text: "for "},
		{Text: line(k.Queue, 60), Code: true},
	}, boundBy("", k.Queue, k.Key, k.Queue)[1:]...)
	if k.Path != "" {
		list = append(list, Span{Text: ", member "}, Span{Text: line(k.Path, 60), Code: true})
	}
	return list
}

// typeAction returns the URL to which a form sends the type of a letter.
func typeAction(id deadletter.ID) string { return "/letters/" + url.PathEscape(string(id)) + "/type" }

// tabURL returns the URL of the page of the letter with its tab, for forms.
func (p LetterPage) tabURL() string { return LetterURL(p.Letter.ID, p.Query, p.Tab) }
