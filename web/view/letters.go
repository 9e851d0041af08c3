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
	QueryError   *QueryError        // set: there are no rows, tokens or facets
	Tokens       []Token            // the terms of the query
	States       []deadletter.State // what the query restricts the state to; empty: all
	Facets       []Facet
	Histogram    *Histogram // nil: none
	Range        Range      // what the query says about the time of receipt
	Views        []deadletter.View
	Rows         []deadletter.Row
	Total        int
	Exact        bool   // Total is the whole count, not where counting stopped
	Newer, Older string // cursors; "" at the ends
	Order        deadletter.Order
	Sorts        []Sort // the orders that the list may have
	InStore      int    // letters in the store, whatever the query; -1: unknown
	Unindexed    int    // letters that a search for words does not see yet, where the query searches for words
	FirstRun     *FirstRun
	All          All
	Retries      *GroupGuard // of the only group that the list shows; nil: it shows others, or none
	Doubts       []string    // that it asks for
	Looked       *Looked     // how far was looked for what no index knows; nil: an index knows all of the query
	Widen        string      // the list with its narrowest term left out, where nothing matches; "" = none
}

// Sort is an order that a list may have.
type Sort struct {
	Order deadletter.Order
	Link  string // the list in this order
	On    bool   // it is the order of the list
}

// All is what "all that match" means on this page, so that an operation takes exactly what was
// displayed.
type All struct {
	Query string    // with fixed times
	Until time.Time // the instant of the page; zero: nothing can be done to all
	Typed string    // Query that ends at Until, for the command line
}

// QueryError is a mistake in a query, with its place.
type QueryError struct {
	Pos  int // of the first byte that is wrong
	Want string
}

// Token is one term of the query; Remove is the list without it.
type Token struct {
	Text   string
	Not    bool // it excludes
	Remove string
}

// wide says whether the list needs its State column: a column never repeats the filter.
func (p LettersPage) wide() bool { return len(p.States) != 1 }

// bulk lists the verbs in the order of their buttons: what destroys comes last.
var bulk = []deadletter.Verb{deadletter.VerbRequeue, deadletter.VerbRetryNow, deadletter.VerbReschedule, deadletter.VerbRelease, deadletter.VerbHold, deadletter.VerbRestore, deadletter.VerbDiscard, deadletter.VerbPurge}

// verbs lists what can be done to letters in the states that the list may show.
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

// here is the address of this page of the list.
func (p LettersPage) here() string { return p.Shell.Path }

// Looked says how far letters were looked through.
type Looked struct {
	Paths   []string // of the body, that no index knows
	Letters int      // that were looked at
	Back    time.Time
	All     bool // there are no further ones
}

// lookedWords says how far was looked.
func (p LettersPage) lookedWords() string {
	l := p.Looked
	text := "Looked through " + LetterCount(l.Letters)
	if l.All {
		return text + ", all that the rest of the query selects from here on."
	}
	return text + ", back to " + Clock(p.Now, l.Back.Truncate(time.Second)) + " UTC."
}

// found says how many letters match: "1,341 match", "10,000+ match".
func (p LettersPage) found() string {
	if p.Total == 1 && p.Exact {
		return "1 matches"
	}
	if p.Looked != nil && !p.Exact {
		return Count(p.Total) + " found so far"
	}
	return AtLeast(p.Total, p.Exact) + " match"
}

// long says whether the query is too long to be in many links of one page.
func (p LettersPage) long() bool { return len(p.Query) > 1000 }

// indexWords says how a path of the body is found at once.
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
