// Package query is the language by which pages, the API and the CLI select letters; docs/query.md
// is its manual. A text is parsed once, here; the store compiles the result to SQL. It does no
// input or output, and it does not know which letters there are.
package query

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Query is a conjunction of terms, free text last; the zero Query selects every letter.
type Query struct{ Terms []Term }

// Term is one condition: the field has one of the values, or with Not none of them.
type Term struct {
	Field  Field
	Name   string // of header.NAME and body.PATH: what stands behind the dot
	Not    bool
	Values []Value // at least one, each once; of Words, Age, Since and Before exactly one
}

// Value is what a term compares with. Fields that compare text have a Pattern, attempts and size a
// Number, times a Time.
type Value struct {
	Raw     string   // as written, without quotes; relative times stay relative
	Pattern []string // the literal pieces between the stars: ["acme."] is exact, ["acme.", ""] is acme.*; of Words, a second piece "" makes the last word a prefix
	Compare Compare
	Number  int64     // attempts; bytes of size
	Time    time.Time // since, before: the instant, UTC, in whole milliseconds; age: now minus the age, so that "> 2h" selects what was received before it
	Result  deadletter.Result
	Op      deadletter.OperationID
}

// Compare is how attempts, size and age compare; Equal for all other fields.
type Compare string

const (
	Equal   Compare = ""
	Less    Compare = "<"
	AtMost  Compare = "<="
	More    Compare = ">"
	AtLeast Compare = ">="
)

// Selection is what an operation freezes: the letters of a query as of Until (zero: now), or chosen
// letters; in both cases without Except.
type Selection struct {
	Query       *Query
	IDs, Except []deadletter.ID
	Until       time.Time
}

// exact says whether v stands for one text, without a star.
func (v Value) exact() bool { return len(v.Pattern) == 1 }

func (v Value) equal(o Value) bool {
	return v.Raw == o.Raw && slices.Equal(v.Pattern, o.Pattern) && v.Compare == o.Compare && v.Number == o.Number && v.Time.Equal(o.Time) && v.Result == o.Result && v.Op == o.Op
}

// add appends a value that the term does not have yet.
func (t *Term) add(v Value) {
	if !slices.ContainsFunc(t.Values, v.equal) {
		t.Values = append(t.Values, v)
	}
}

// split takes "header.x-tenant" apart; Values and With take such a field as well.
func split(f Field) (Field, string) {
	head, name, _ := strings.Cut(string(f), ".")
	if f := Field(head); f == Header || f == Body {
		return f, name
	}
	return f, ""
}

// Values returns the texts that q asks a field for, such as the chosen values of a facet: those of
// its only positive term. Nil when there is no such term, more than one, or one with stars,
// comparisons or times. The field may be "header.NAME" or "body.PATH".
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

// With returns q with its positive terms for f replaced by one for exactly the given texts, in
// which a star is a star, in the place of the first; without values, q without them. Terms with a
// minus stay. The field may be "header.NAME" or "body.PATH"; texts of Words are one term each.
func (q Query) With(f Field, values ...string) Query {
	field, name := split(f)
	var put []Term
	for _, v := range values {
		if len(put) == 0 || field == Words {
			put = append(put, Term{Field: field, Name: name})
		}
		put[len(put)-1].add(exactly(field, v))
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

// Order is the order that q asks a list for; "" where it asks for none.
func (q Query) Order() deadletter.Order {
	for _, t := range q.Terms {
		if t.Field == Sort {
			return deadletter.Order(t.Values[0].Pattern[0])
		}
	}
	return ""
}

// Split divides q into what an index answers, and the terms on fields of the body that no index
// knows.
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

// Holds says whether a term on text holds for a value of its field; ok is whether there is one.
func (t Term) Holds(value string, ok bool) bool {
	has := ok && slices.ContainsFunc(t.Values, func(v Value) bool { return v.matches(value) })
	return has != t.Not
}

// matches says whether a text is what v stands for, with its stars.
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

// Without returns q without its i-th term; q itself when there is none.
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

// fixedLayout is RFC 3339 with the milliseconds in which letters are received.
const fixedLayout = "2006-01-02T15:04:05.000Z"

// Fixed returns the query that selects tomorrow what q selects now: times that are relative to now
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
			return t // an instant already
		}
	}
	t.Values = []Value{{Raw: at.UTC().Format(fixedLayout), Time: at}}
	return t
}
