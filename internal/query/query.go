// Package query implements the language in which pages, the API and the CLI select letters. Its
// manual is docs/query.md. The package parses a query once, and the store converts the result to
// SQL. The package does no I/O and does not know which letters exist.
package query

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Query is a list of terms that must all be true. Free text comes last. The zero Query selects
// every letter.
type Query struct{ Terms []Term }

// Term is one condition: the field has one of the values. If Not is set, the field must have none
// of them.
type Term struct {
	Field  Field
	Name   string // part after the dot in header.NAME and body.PATH
	Not    bool
	Values []Value // one or more values without duplicates; exactly one for Words, Age, Since and Before
}

// Value is a value with which a term compares a field. Text fields use Pattern. The fields
// "attempts" and "size" use Number. Fields about times use Time.
type Value struct {
	Raw string // text as it was written, without quotes; a relative time stays relative
	// literal pieces between the stars: ["acme."] stands for acme. without stars, and ["acme.", ""]
	// for acme.*; for Words, the pieces [X, ""] mean that the last word of X is a prefix
	Pattern []string
	Compare Compare
	Number  int64 // number of attempts, or size in bytes
	// since and before: the given time; age: now minus the age, so that "> 2h" selects letters
	// received before Time; always UTC, in whole milliseconds
	Time   time.Time
	Result deadletter.Result
	Op     deadletter.OperationID
}

// Compare is the operator of a comparison. Only attempts, size and age use operators other than
// Equal.
type Compare string

const (
	Equal   Compare = ""
	Less    Compare = "<"
	AtMost  Compare = "<="
	More    Compare = ">"
	AtLeast Compare = ">="
)

// Selection defines the letters on which an operation acts. These are either the letters that match
// a query at the time Until (zero = now), or the letters in IDs. The letters in Except are left out
// in both cases.
type Selection struct {
	Query       *Query
	IDs, Except []deadletter.ID
	Until       time.Time
}

// exact reports whether the value contains no stars, so that it stands for a single text.
func (v Value) exact() bool { return len(v.Pattern) == 1 }

func (v Value) equal(o Value) bool {
	return v.Raw == o.Raw && slices.Equal(v.Pattern, o.Pattern) && v.Compare == o.Compare && v.Number == o.Number &&
		v.Time.Equal(o.Time) && v.Result == o.Result && v.Op == o.Op
}

// add adds a value to the term, unless the term already has it.
func (t *Term) add(v Value) {
	if !slices.ContainsFunc(t.Values, v.equal) {
		t.Values = append(t.Values, v)
	}
}

// split splits a field such as "header.x-tenant" into the field and the name. The methods Values
// and With accept such fields.
func split(f Field) (Field, string) {
	head, name, _ := strings.Cut(string(f), ".")
	if f := Field(head); f == Header || f == Body {
		return f, name
	}
	return f, ""
}

// Values returns the texts that q selects for a field, for example the chosen values of a facet. If
// exactly one term on the field has no minus, the texts are the values of this term. If there is no
// such term, or more than one, Values returns nil. It also returns nil if the term has stars,
// comparisons or times. The parameter f may be "header.NAME" or "body.PATH".
func (q Query) Values(f Field) []string {
	field, name := split(f)
	var values []string
	found := false
	for _, t := range q.Terms {
		if t.Field != field || t.Name != name || t.Not {
			continue
		}
		if found {
			return nil
		}
		found = true
		for _, v := range t.Values {
			if !v.exact() {
				return nil
			}
			values = append(values, v.Pattern[0])
		}
	}
	return values
}

// With returns a copy of the query in which one new term replaces the terms on a field. The new
// term selects exactly the given texts, and stars in these texts are literal. Its position is that
// of the first old term. If there are no texts, With only removes the old terms.
//
// With keeps the terms on the field that have a minus. The parameter f may be "header.NAME" or
// "body.PATH". For the field Words, each text becomes a term of its own.
func (q Query) With(f Field, values ...string) Query {
	field, name := split(f)
	var put []Term
	for _, v := range values {
		if len(put) == 0 || field == Words {
			put = append(put, Term{Field: field, Name: name})
		}
		put[len(put)-1].add(literalValue(field, v))
	}
	var out Query
	placed := false
	for _, t := range q.Terms {
		if t.Field != field || t.Name != name || t.Not {
			out.Terms = append(out.Terms, t)
		} else if !placed {
			out.Terms, placed = append(out.Terms, put...), true
		}
	}
	if !placed {
		out.Terms = append(out.Terms, put...)
	}
	out.wordsLast()
	return out
}

// Order returns the order in which the query wants letters to be listed. If the query has no order,
// it returns "".
func (q Query) Order() deadletter.Order {
	for _, t := range q.Terms {
		if t.Field == Sort {
			return deadletter.Order(t.Values[0].Pattern[0])
		}
	}
	return ""
}

// Split divides a query into two parts. The first part can be answered with the search index. The
// second part contains the terms on body fields that are not in the index.
func (q Query) Split(indexed func(path string) bool) (answered Query, looked []Term) {
	for _, t := range q.Terms {
		if t.Field == Body && !indexed(t.Name) {
			looked = append(looked, t)
		} else {
			answered.Terms = append(answered.Terms, t)
		}
	}
	return answered, looked
}

// Holds reports whether a term on a text field is true for a letter. The parameter "value" is the
// value of the field in the letter. The parameter "ok" is false if the letter does not have the
// field.
func (t Term) Holds(value string, ok bool) bool {
	has := ok && slices.ContainsFunc(t.Values, func(v Value) bool { return v.matches(value) })
	return has != t.Not
}

// matches reports whether a text matches the value, including its stars.
func (v Value) matches(text string) bool {
	if v.exact() {
		return text == v.Pattern[0]
	}
	last := len(v.Pattern) - 1
	text, ok := strings.CutPrefix(text, v.Pattern[0])
	if !ok || !strings.HasSuffix(text, v.Pattern[last]) {
		return false
	}
	text = strings.TrimSuffix(text, v.Pattern[last])
	for _, piece := range v.Pattern[1:last] {
		_, rest, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// Without returns the query without the term at position i, counted from 0. If there is no such
// term, it returns the query unchanged.
func (q Query) Without(i int) Query {
	if i < 0 || i >= len(q.Terms) {
		return q
	}
	return Query{slices.Delete(slices.Clone(q.Terms), i, i+1)}
}

func (q *Query) wordsLast() {
	slices.SortStableFunc(q.Terms, func(a, b Term) int {
		last := map[bool]int{true: 1}
		return last[a.Field == Words] - last[b.Field == Words]
	})
}

// fixedLayout is RFC 3339 with milliseconds, because the store records times of receipt in
// milliseconds.
const fixedLayout = "2006-01-02T15:04:05.000Z"

// Fixed returns a copy of the query that still selects the same letters later. In the copy,
// relative times are fixed times, and an age is a term on "since" or "before".
func (q Query) Fixed() Query {
	var out Query
	for _, t := range q.Terms {
		out.Terms = append(out.Terms, t.withFixedTime())
	}
	return out
}

func (t Term) withFixedTime() Term {
	if t.Field != Age && t.Field != Since && t.Field != Before || len(t.Values) != 1 {
		return t
	}
	v := t.Values[0]
	at := v.Time
	switch {
	case t.Field == Age: // times of receipt are whole milliseconds, so "at most T" equals "before T + 1 ms"
		if v.Compare == AtLeast || v.Compare == Less {
			at = at.Add(time.Millisecond)
		}
		if v.Compare == More || v.Compare == AtLeast {
			t.Field = Before
		} else {
			t.Field = Since
		}
	default:
		if _, err := parseDuration(v.Raw); err != nil {
			return t // the time is already fixed
		}
	}
	t.Values = []Value{{Raw: at.UTC().Format(fixedLayout), Time: at}}
	return t
}
