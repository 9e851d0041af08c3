// Package query is the language by which pages, the API and the CLI select letters. A text is parsed once, here; the store compiles the result to
// SQL. It does no input or output.
package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Field is the name of something that a term can ask for.
type Field string

const (
	State  Field = "state"
	Queue  Field = "queue"
	Type   Field = "type"
	Reason Field = "reason"
	Group  Field = "group"
)

// Fields lists the fields in the order in which facets show them.
var Fields = []Field{State, Queue, Type, Reason, Group}

// NoType is the value of type: that stands for letters without one.
const NoType = "none"

// Term is one condition: the field has one of the values.
type Term struct {
	Field  Field
	Values []string // at least one, each once
}

// Query is a conjunction of terms; the zero Query selects every letter.
type Query struct{ Terms []Term }

// Error is a mistake in a query, with its place.
type Error struct {
	Pos  int    // of the first byte that is wrong, from 0
	Want string // what is wrong there and what would be right
}

func (e *Error) Error() string { return fmt.Sprintf("at character %d: %s", e.Pos+1, e.Want) }

// Unwrap makes a mistake in a query an ErrInvalid.
func (e *Error) Unwrap() error { return deadletter.ErrInvalid }

const (
	maxText   = 4096 // bytes of a query
	maxTerms  = 50
	maxValues = 500 // of one term: they become bound parameters
)

// Parse reads `field:value` terms joined by spaces, which means AND; a comma inside a value means OR; quotes hold spaces, commas and colons:
//
//	state:dead,held queue:"my queue",sms type:acme.notify.v1.EmailRequested
//
// The fields are state, queue, type, reason and group. A field that occurs twice is an AND of both terms. The error is always an *Error.
func Parse(text string) (Query, error) {
	if len(text) > maxText {
		return Query{}, &Error{maxText, fmt.Sprintf("a query is at most %d bytes long", maxText)}
	}
	p := parser{text: text}
	var q Query
	for p.skipSpace(); p.pos < len(text); p.skipSpace() {
		term, err := p.term()
		if err != nil {
			return Query{}, err
		}
		if len(q.Terms) == maxTerms {
			return Query{}, &Error{p.pos, fmt.Sprintf("a query has at most %d terms", maxTerms)}
		}
		q.Terms = append(q.Terms, term)
	}
	return q, nil
}

type parser struct {
	text string
	pos  int
}

func (p *parser) skipSpace() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) term() (Term, error) {
	start := p.pos
	length := strings.IndexAny(p.text[start:], ": \t\r\n\",")
	if length < 0 || p.text[start+length] != ':' {
		return Term{}, &Error{start, "a term looks like state:dead; searching for words is not in this version"}
	}
	name := p.text[start : start+length]
	field := Field(strings.ToLower(name))
	if !slices.Contains(Fields, field) {
		return Term{}, &Error{start, fmt.Sprintf("there is no field %q in this version; the fields are %s", deadletter.Visible(deadletter.Cut(name, 40)), fieldNames())}
	}
	p.pos = start + length + 1
	term := Term{Field: field}
	for {
		at := p.pos
		value, err := p.value()
		if err != nil {
			return Term{}, err
		}
		if err := check(field, value); err != nil {
			return Term{}, &Error{at, err.Error()}
		}
		if !slices.Contains(term.Values, value) {
			term.Values = append(term.Values, value)
		}
		if len(term.Values) > maxValues {
			return Term{}, &Error{at, fmt.Sprintf("a term has at most %d values", maxValues)}
		}
		if p.pos >= len(p.text) || p.text[p.pos] != ',' {
			return term, nil
		}
		p.pos++
	}
}

// value reads one value, quoted or plain, and stops before the comma, the space or the end.
func (p *parser) value() (string, error) {
	at := p.pos
	if at < len(p.text) && p.text[at] == '"' {
		var b strings.Builder
		for i := at + 1; i < len(p.text); i++ {
			switch c := p.text[i]; {
			case c == '\\' && i+1 < len(p.text):
				i++
				b.WriteByte(p.text[i])
			case c == '"':
				p.pos = i + 1
				if p.pos < len(p.text) && strings.IndexByte(", \t\r\n", p.text[p.pos]) < 0 {
					return "", &Error{p.pos, "after a closing quote comes a comma, a space or the end"}
				}
				return b.String(), nil
			default:
				b.WriteByte(c)
			}
		}
		return "", &Error{at, "this quote is not closed"}
	}
	for p.pos < len(p.text) && strings.IndexByte(", \t\r\n", p.text[p.pos]) < 0 {
		if p.text[p.pos] == '"' {
			return "", &Error{p.pos, "a quote stands around a whole value"}
		}
		p.pos++
	}
	if p.pos == at {
		return "", &Error{at, "a value is missing here; an empty one is written \"\""}
	}
	return p.text[at:p.pos], nil
}

func check(f Field, value string) error {
	switch f {
	case State:
		if !slices.Contains(deadletter.States, deadletter.State(value)) {
			names := make([]string, len(deadletter.States))
			for i, s := range deadletter.States {
				names[i] = string(s)
			}
			return fmt.Errorf("there is no state %q; the states are %s", deadletter.Visible(deadletter.Cut(value, 40)), strings.Join(names, ", "))
		}
	case Group:
		if _, err := deadletter.ParseGroupID(value); err != nil {
			return fmt.Errorf("a group is written G-418")
		}
	}
	return nil
}

func fieldNames() string {
	names := make([]string, len(Fields))
	for i, f := range Fields {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// String writes q in the form that Parse reads back to an equal Query.
func (q Query) String() string {
	var b strings.Builder
	for i, t := range q.Terms {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(t.Field) + ":")
		for j, v := range t.Values {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(v))
		}
	}
	return b.String()
}

func quote(v string) string {
	if v != "" && !strings.ContainsAny(v, "\", \t\r\n") {
		return v
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}

// Values returns what q asks of a field: of its only term for it. Nil when it asks nothing, or in more than one term.
func (q Query) Values(f Field) []string {
	var values []string
	for _, t := range q.Terms {
		if t.Field == f {
			if values != nil {
				return nil
			}
			values = t.Values
		}
	}
	return values
}

// With returns q with its terms for f replaced by one for the given values, in the place of the first; without values, q without f.
func (q Query) With(f Field, values ...string) Query {
	var out Query
	placed := len(values) == 0
	for _, t := range q.Terms {
		if t.Field != f {
			out.Terms = append(out.Terms, t)
		} else if !placed {
			out.Terms, placed = append(out.Terms, Term{f, values}), true
		}
	}
	if !placed {
		out.Terms = append(out.Terms, Term{f, values})
	}
	return out
}

// Selection is what an operation freezes: chosen letters.
type Selection struct{ IDs []deadletter.ID }
