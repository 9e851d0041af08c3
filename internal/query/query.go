// Package query implements the language with which pages, the API and the CLI select letters. Its
// manual is docs/query.md. This package parses a text once, and the store compiles the result to
// SQL. The package does no I/O and does not know which letters exist.
package query

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Query is a conjunction of terms, with free text last. The zero Query selects every letter.
type Query struct{ Terms []Term }

// Term is one condition: the field has one of the values, or none of them if Not is set.
type Term struct {
	Field  Field
	Name   string // for header.NAME and body.PATH: the part after the dot
	Not    bool
	Values []Value // at least one, no duplicates; exactly one for Words, Age, Since, Before
}

// Value is the value that a term compares with. It has a Pattern for text fields, a Number for
// attempts and size, and a Time for times.
type Value struct {
	Raw     string   // as written, but without quotes; relative times stay relative
	Pattern []string // the literal pieces between the stars: ["acme."] is exact, ["acme.", ""] is acme.*; for Words, a second piece "" makes the last word a prefix
	Compare Compare
	Number  int64     // attempts; bytes of size
	Time    time.Time // since, before: the instant, UTC, in whole milliseconds; age: now minus the age, so that "> 2h" selects letters received before Time
	Result  deadletter.Result
	Op      deadletter.OperationID
}

// Compare is the comparison used for attempts, size and age. It is Equal for all other fields.
type Compare string

const (
	Equal   Compare = ""
	Less    Compare = "<"
	AtMost  Compare = "<="
	More    Compare = ">"
	AtLeast Compare = ">="
)

// Selection defines the letters that an operation freezes. These are the letters that match a query
// as of Until (zero: now), or chosen letters. In both cases, Except is excluded.
type Selection struct {
	Query       *Query
	IDs, Except []deadletter.ID
	Until       time.Time
}

// exact reports whether v stands for a single text, without stars.
func (v Value) exact() bool { return len(v.Pattern) == 1 }

func (v Value) equal(o Value) bool {
	return v.Raw == o.Raw && slices.Equal(v.Pattern, o.Pattern) && v.Compare == o.Compare && v.Number == o.Number && v.Time.Equal(o.Time) && v.Result == o.Result && v.Op == o.Op
}

// add appends a value unless the term already has it.
func (t *Term) add(v Value) {
	if !slices.ContainsFunc(t.Values, v.equal) {
		t.Values = append(t.Values, v)
	}
}

// split splits "header.x-tenant" into field and name. Values and With accept such fields.
func split(f Field) (Field, string) {
	head, name, _ := strings.Cut(string(f), ".")
	if f := Field(head); f == Header || f == Body {
		return f, name
	}
	return f, ""
}

// Values returns the texts for which q queries a field, such as the chosen values of a facet. These
// are the texts of the field's only positive term. Values returns nil if there is no such term or
// more than one, or if the term has stars, comparisons or times. The argument f may be
// "header.NAME" or "body.PATH".
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

// With replaces the positive terms for f with a single term that selects exactly the given texts.
// Stars in the texts are literal. The new term takes the place of the first old term. If no values
// are given, With removes the old terms. It keeps terms with a minus. The argument f may be
// "header.NAME" or "body.PATH". For Words, each text becomes a term.
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

// Order returns the list order that q requests, or "".
func (q Query) Order() deadletter.Order {
	for _, t := range q.Terms {
		if t.Field == Sort {
			return deadletter.Order(t.Values[0].Pattern[0])
		}
	}
	return ""
}

// Split divides q into the part that an index can answer, and the terms for body fields without an
// index.
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

// Holds reports whether a text term is true for a field's value. The argument ok says whether the
// field exists.
func (t Term) Holds(value string, ok bool) bool {
	has := ok && slices.ContainsFunc(t.Values, func(v Value) bool { return v.matches(value) })
	return has != t.Not
}

// matches reports whether a text matches v, including its stars.
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

// Without returns q without its i-th term, or q unchanged if there is no such term.
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

// fixedLayout is RFC 3339 with milliseconds, the resolution of receive times.
const fixedLayout = "2006-01-02T15:04:05.000Z"

// Fixed returns a query that will always select the letters that q selects now. Relative times
// become instants, and an age becomes since or before.
func (q Query) Fixed() Query {
	var out Query
	for _, t := range q.Terms {
		out.Terms = append(out.Terms, t.fixed())
	}
	return out
}

func (t Term) fixed() Term {
	if t.Field != Age && t.Field != Since && t.Field != Before || len(t.Values) != 1 {
		return t
	}
	v := t.Values[0]
	at := v.Time
	switch {
	case t.Field == Age: // receive times are whole milliseconds, so "at most T" is "before T + 1 ms"
		if v.Compare == AtLeast || v.Compare == Less {
			at = at.Add(time.Millisecond)
		}
		if v.Compare == More || v.Compare == AtLeast {
			t.Field = Before
		} else {
			t.Field = Since
		}
	default:
		if _, err := duration(v.Raw); err != nil {
			return t // already an instant
		}
	}
	t.Values = []Value{{Raw: at.UTC().Format(fixedLayout), Time: at}}
	return t
}
