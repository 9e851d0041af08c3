package view

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

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
	Rows         []deadletter.Row
	Total        int
	Exact        bool   // Total is the whole count, not where counting stopped
	Newer, Older string // cursors; "" at the ends
	InStore      int    // letters in the store, whatever the query; -1: unknown
	FirstRun     *FirstRun
}

// QueryError is a mistake in a query, with its place.
type QueryError struct {
	Pos  int // of the first byte that is wrong
	Want string
}

// Token is one term of the query; Remove is the list without it.
type Token struct{ Text, Remove string }

// Facet lists the values of one field with their counts.
type Facet struct {
	Title  string
	Values []FacetValue
	More   int // values that are left out
}

// FacetValue is one value of a facet; Link is the list with it switched.
type FacetValue struct {
	Label string
	Count int
	On    bool
	Link  string
}

// FirstRun is what a list says as long as no letter was ever stored.
type FirstRun struct {
	Exchange string // the dead-letter exchange; "" when none is declared
	Inbox    string
	VHost    string
	Types    int // registered protobuf types
}

// wide says whether the list needs its State column: a column never repeats the filter.
func (p LettersPage) wide() bool { return len(p.States) != 1 }

// verbs lists what can be done to letters in the states that the list may show.
func (p LettersPage) verbs() []deadletter.Verb {
	states := p.States
	if len(states) == 0 {
		states = deadletter.States
	}
	var out []deadletter.Verb
	for _, v := range []deadletter.Verb{deadletter.VerbRequeue, deadletter.VerbRestore, deadletter.VerbDiscard} {
		if slices.ContainsFunc(states, v.May) {
			out = append(out, v)
		}
	}
	return out
}

// here is the address of this page of the list.
func (p LettersPage) here() string { return p.Shell.Path }

// found says how many letters match: "1,341 match", "10,000+ match".
func (p LettersPage) found() string {
	if p.Total == 1 && p.Exact {
		return "1 matches"
	}
	return AtLeast(p.Total, p.Exact) + " match"
}

// span says which part of the list is shown.
func (p LettersPage) span() string {
	place := "Newest"
	if p.Newer != "" {
		place = "Next"
	}
	if p.Newer != "" && p.Older == "" {
		place = "Oldest"
	}
	return place + " " + Count(len(p.Rows)) + " of " + AtLeast(p.Total, p.Exact)
}

// around cuts a wrong query into what stands before the mistake, the mistake itself, and the rest.
func (e QueryError) around(q string) (before, wrong, rest string) {
	at := min(max(e.Pos, 0), len(q))
	end := at
	for end < len(q) && q[end] != ' ' {
		end++
	}
	wrong = line(q[at:end], 200)
	if wrong == "" {
		wrong = " "
	}
	return deadletter.Visible(q[:at]), wrong, line(q[end:], 400)
}

func (v FacetValue) action() string {
	if v.On {
		return "remove filter"
	}
	return "add filter"
}

func (p LettersPage) filters() int {
	n := 0
	for _, f := range p.Facets {
		for _, v := range f.Values {
			if v.On {
				n++
			}
		}
	}
	return n
}

// typeName is the last part of a type, as lists show it.
func typeName(name string) string {
	if name == "" {
		return "no type"
	}
	_, last := typeParts(name)
	return deadletter.Cut(last, 60)
}

func queueName(name string) string {
	if name == "" {
		return "unknown"
	}
	return line(name, 60)
}

// failure is what the Error column says: the error where one is known, else why the letter is held, else the reason of its death.
func failure(r deadletter.Row) string {
	switch {
	case r.State == deadletter.StateHeld && r.Why != "":
		return r.Why
	case r.Error != "":
		return r.Error
	}
	return r.Reason
}

// command is the same list on the command line; empty for a query that would paste more than meets the eye.
func (p LettersPage) command() string {
	if deadletter.Visible(p.Query) != p.Query {
		return ""
	}
	return "dlo letters list -q '" + strings.ReplaceAll(p.Query, "'", `'\''`) + "'"
}

// onlyDead says whether the query asks for nothing but what needs a person: its empty answer is good news.
func (p LettersPage) onlyDead() bool {
	return len(p.Tokens) == 1 && len(p.States) == 1 && p.States[0] == deadletter.StateDead
}

func facetCount(n int) string {
	if n < 10_000 {
		return Count(n)
	}
	return Compact(n)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func pagerRel(word string) string {
	if word == "Newer" {
		return "prev"
	}
	return "next"
}

// verbClass is the look of the button of a verb: one primary button, discard always outlined in red.
func verbClass(v deadletter.Verb, primary bool) string {
	switch {
	case v == deadletter.VerbDiscard:
		return "btn-danger"
	case primary:
		return "btn-primary"
	}
	return ""
}

func on(on bool) templ.Attributes {
	if !on {
		return nil
	}
	return templ.Attributes{"aria-current": "true"}
}

func (s Shell) firstBroker() []Span {
	for _, b := range s.Brokers {
		if b.Up {
			return []Span{{Text: line(b.Detail, 100)}}
		}
	}
	return []Span{{Text: "Not yet."}}
}

func typesLine(n int) []Span {
	if n == 0 {
		return []Span{{Text: "Optional: payloads show field numbers and bytes until then."}}
	}
	return []Span{{Text: Number(n, "type is", "types are") + " known."}}
}

// command gives one queue the dead-letter exchange by policy.
func (f FirstRun) command() string {
	return "rabbitmqctl set_policy --vhost " + shellWord(line(f.VHost, 255)) + " --apply-to queues dead-letters '^my-queue$' " +
		shellWord(`{"dead-letter-exchange":"`+line(f.Exchange, 200)+`"}`)
}

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// errorColumn is the class of the column that says what went wrong: narrow where it has only reasons to say, so that what tells letters apart has the room.
func errorColumn(rows []deadletter.Row) string {
	for _, r := range rows {
		if failure(r) != r.Reason {
			return "c-err"
		}
	}
	return "c-s"
}
