package view

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// LettersPage is the list of letters that a query selects.
type LettersPage struct {
	Shell
	Query        string             // the query as the person typed it
	QueryError   *query.Error       // if set, there are no rows, tokens or facets
	Needy        bool               // the query selects the dead and held letters, as the page does without a query
	InRetry      *InRetry           // set if the list has all letters because none is dead or held
	Tokens       []Token            // the terms of the query
	States       []deadletter.State // the states that the query allows; empty means all
	Facets       []Facet
	Histogram    *Histogram // nil if the page has no chart
	Range        Range      // the range of the time of receipt in the query
	Views        []deadletter.View
	Rows         []deadletter.Row
	Total        int
	Exact        bool   // Total is the full count and not a limit
	Newer, Older string // the cursors of the neighbouring pages, or "" at the ends
	Order        deadletter.Order
	Sorts        []Sort // the orders in which the list can be shown
	InStore      int    // the number of letters in the store, regardless of the query; -1 means unknown
	Unindexed    int    // letters that a search for words cannot find yet, if the query searches for words
	FirstRun     *FirstRun
	All          All
	Retries      *GroupGuard        // the retries of the group; nil unless the list shows a single group
	Doubts       []string           // the doubts that the query names
	Looked       *deadletter.Looked // how far fields without an index were searched; nil if all fields have one
	Widen        string             // if nothing matches, the link to the list without its narrowest term, or ""
}

// Sort is an order in which a list can be shown.
type Sort struct {
	Order deadletter.Order
	Link  string // the URL of the list in that order
	On    bool   // the list has this order now
}

// All describes the choice "all letters that match" on a list. It contains the query and the time
// at which the page was shown, so that an operation acts only on letters that the page counted.
type All struct {
	Query string    // the query with fixed times
	Until time.Time // the time of the page; if zero, actions on all letters are impossible
	Typed string    // the Query limited by Until, for the command line
}

// Token is one term of the query. Remove is the URL of the list without the term.
type Token struct {
	Text   string
	Not    bool // the term excludes letters
	Remove string
}

// showsState reports whether the list needs the column "State". If the query allows only one state,
// that column would show the same state in every row.
func (p LettersPage) showsState() bool { return len(p.States) != 1 }

// bulk contains the verbs for many letters in the order of their buttons. Destructive verbs come
// last.
var bulk = []deadletter.Verb{
	deadletter.VerbRequeue, deadletter.VerbRetryNow, deadletter.VerbReschedule, deadletter.VerbRelease,
	deadletter.VerbHold, deadletter.VerbRestore, deadletter.VerbDiscard, deadletter.VerbPurge,
}

// verbs returns the actions that are possible on letters in the states that the list may show.
func (p LettersPage) verbs() []deadletter.Verb {
	states := p.States
	if len(states) == 0 {
		states = deadletter.States
	}
	var out []deadletter.Verb
	for _, v := range bulk {
		if slices.ContainsFunc(states, v.May) {
			out = append(out, v)
		}
	}
	return out
}

// pageURL returns the URL of the current page of the list.
func (p LettersPage) pageURL() string { return p.Shell.Path }

// lookedWords describes how far a search in fields without an index has got. Such a search reads
// the letters one by one, and may end before it has read all of them.
func (p LettersPage) lookedWords() string {
	l := p.Looked
	text := "Looked through " + LetterCount(l.Letters)
	if l.All {
		return text + ", which are all further letters that the rest of the query selects."
	}
	return text + ", back to " + Clock(p.Now, l.Back.Truncate(time.Second)) + " UTC."
}

// foundWords returns words with the number of matching letters, for example "1,341 match" or
// "10,000+ match".
func (p LettersPage) foundWords() string {
	if p.Total == 1 && p.Exact {
		return "1 letter matches"
	}
	if p.Looked != nil && !p.Exact {
		return Count(p.Total) + " found so far"
	}
	return AtLeast(p.Total, p.Exact) + " match"
}

// hasLongQuery reports whether the query is too long to be repeated in many links.
func (p LettersPage) hasLongQuery() bool { return len(p.Query) > 1000 }

// indexWords explains how to make dlo index paths of the body.
func indexWords(paths []string) string {
	for i := range paths {
		paths[i] = line(paths[i], 100)
	}
	what := strings.Join(paths, ", ")
	if len(paths) == 1 {
		return "body." + what + " is not indexed; add it to search.fields of the configuration to find, count and requeue by it."
	}
	return "The paths " + what + " are not indexed; add them to search.fields of the configuration to find, count and requeue by them."
}
