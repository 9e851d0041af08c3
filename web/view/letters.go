package view

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// LettersPage is the list of letters that a query selects.
type LettersPage struct {
	Shell
	Query        string             // as typed
	QueryError   *QueryError        // if set, there are no rows, tokens or facets
	Tokens       []Token            // the terms of the query
	States       []deadletter.State // states that the query allows; empty: all
	Facets       []Facet
	Histogram    *Histogram // nil: none
	Range        Range      // time of receipt in the query
	Views        []deadletter.View
	Rows         []deadletter.Row
	Total        int
	Exact        bool   // Total is the full count, not a limit
	Newer, Older string // cursors; "" at the ends
	Order        deadletter.Order
	Sorts        []Sort // the available orders
	InStore      int    // number of letters in the store, regardless of the query; -1: unknown
	Unindexed    int    // number of letters not yet searchable by words, if the query searches words
	FirstRun     *FirstRun
	All          All
	Retries      *GroupGuard // retries of the group, if the list shows one group only; nil: it does not
	Doubts       []string    // in the query
	Looked       *Looked     // how far unindexed fields were searched; nil: all are indexed
	Widen        string      // link to the list without its narrowest term if nothing matches; "" = none
}

// Sort is an order in which a list can be shown.
type Sort struct {
	Order deadletter.Order
	Link  string // URL of the list in that order
	On    bool   // current order of the list
}

// All defines "all that match" on this page, so that an operation takes exactly what was displayed.
type All struct {
	Query string    // with fixed times
	Until time.Time // time of the page; zero: actions on all letters are impossible
	Typed string    // Query that ends at Until, for the command line
}

// QueryError is a mistake in a query and its position.
type QueryError struct {
	Pos  int // index of the first wrong byte
	Want string
}

// Token is one term of the query. Remove is the URL of the list without that term.
type Token struct {
	Text   string
	Not    bool // it excludes
	Remove string
}

// wide reports whether the list needs its State column. If the query allows only a single state,
// the column would show that state in every row.
func (p LettersPage) wide() bool { return len(p.States) != 1 }

// bulk lists the verbs in button order. Destructive verbs come last.
var bulk = []deadletter.Verb{deadletter.VerbRequeue, deadletter.VerbRetryNow, deadletter.VerbReschedule, deadletter.VerbRelease, deadletter.VerbHold, deadletter.VerbRestore, deadletter.VerbDiscard, deadletter.VerbPurge}

// verbs lists the actions that are possible in the states that the list may show.
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

// here returns the URL of this page of the list.
func (p LettersPage) here() string { return p.Shell.Path }

// Looked describes how far a search through unindexed fields went.
type Looked struct {
	Paths   []string // unindexed paths of the body
	Letters int      // letters examined
	Back    time.Time
	All     bool // no letters remain
}

// lookedWords describes how far the search went.
func (p LettersPage) lookedWords() string {
	l := p.Looked
	text := "Looked through " + LetterCount(l.Letters)
	if l.All {
		return text + ", which are all further letters that the rest of the query selects."
	}
	return text + ", back to " + Clock(p.Now, l.Back.Truncate(time.Second)) + " UTC."
}

// found returns text with the number of matching letters: "1,341 match" or "10,000+ match".
func (p LettersPage) found() string {
	if p.Total == 1 && p.Exact {
		return "1 matches"
	}
	if p.Looked != nil && !p.Exact {
		return Count(p.Total) + " found so far"
	}
	return AtLeast(p.Total, p.Exact) + " match"
}

// long reports whether the query is too long to be repeated in many links.
func (p LettersPage) long() bool { return len(p.Query) > 1000 }

// indexWords explains how to index paths of the body.
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
