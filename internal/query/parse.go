package query

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// MaxText is the maximum length of a query in bytes.
const MaxText = 4096

const (
	maxTerms  = 50
	maxValues = 500 // maximum number of values of a term; each value becomes a bound parameter in SQL
)

// Options contains settings of the parser.
type Options struct {
	Fields []Field   // fields that a query can contain; nil = the fields of letters
	Now    time.Time // time from which relative times count; zero = time.Now()
	// reports whether a field is masked, so that queries must not contain it, e.g.
	// "header.authorization", "body.customer.email" or "message_id"; nil = no field is masked
	Masked func(field string) bool
	// reports whether the search index contains a path of the body; nil = it contains none
	Body func(path string) bool
	// also allows paths of the body that are not in the search index, because the caller itself
	// searches the letters for them
	Look bool
}

// Parse parses a query, which consists of `field:value` terms. A space between terms means AND. A
// comma between values means OR, and a leading minus means NOT. Quotes enclose text with spaces,
// commas or colons. A term without a field is free text, which is searched for in the words of
// letters:
//
//	state:dead,held queue:billing.* -type:acme.notify.v1.EmailRequested since:2h "tenant unknown"
//
// Two terms with the same field are also connected by AND. In the result, free text comes last. The
// error is always an *Error.
func Parse(text string, o Options) (Query, error) {
	if len(text) > MaxText {
		return Query{}, errorAt(MaxText, "a query is at most %d bytes long", MaxText)
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Fields == nil {
		o.Fields = Fields
	}
	o.Now = o.Now.UTC().Truncate(time.Millisecond)
	p := parser{text: text, o: o}
	var q Query
	for p.skipSpace(); p.pos < len(text); p.skipSpace() {
		if len(q.Terms) == maxTerms {
			return Query{}, errorAt(p.pos, "a query has at most %d terms", maxTerms)
		}
		start := p.pos
		term, err := p.term()
		if err != nil {
			return Query{}, err
		}
		if term.Field == Sort && q.Order() != "" {
			return Query{}, errorAt(start, "a list has one order")
		}
		q.Terms = append(q.Terms, term)
	}
	q.wordsLast()
	return q, nil
}

type parser struct {
	text string
	pos  int
	o    Options
}

const space = " \t\r\n"

// nextIs reports whether the byte at the current position is one of the given bytes.
func (p *parser) nextIs(bytes string) bool {
	return p.pos < len(p.text) && strings.IndexByte(bytes, p.text[p.pos]) >= 0
}

func (p *parser) skipSpace() {
	for p.nextIs(space) {
		p.pos++
	}
}

// term parses one term: a field with its values, or free text.
func (p *parser) term() (Term, error) {
	var t Term
	if p.nextIs("-") {
		t.Not = true
		p.pos++
		switch {
		case p.pos == len(p.text) || p.nextIs(space):
			return Term{}, errorAt(p.pos, "a term is missing here: a minus goes right before the term that it negates")
		case p.nextIs("-"):
			return Term{}, errorAt(p.pos, "there are two minus signs here; put text that begins with a minus in quotes")
		}
	}
	start := p.pos
	length := strings.IndexAny(p.text[start:], `: "`+"\t\r\n")
	if length >= 0 && p.text[start+length] == ':' {
		if err := p.field(&t, p.text[start:start+length]); err != nil {
			return Term{}, err
		}
		p.pos = start + length + 1
		return p.values(t, start)
	}
	if length > 0 && p.text[start+length] == '"' && strings.HasSuffix(p.text[start:start+length], ".") {
		if f, _ := fieldNamed(p.text[start:start+length-1], p.o.Fields); f == Header || f == Body {
			p.pos = start + length
			name, err := p.quoted(":", "after a quoted name comes a colon", false)
			if err != nil {
				return Term{}, err
			}
			if !p.nextIs(":") {
				return Term{}, errorAt(p.pos, "after a quoted name comes a colon")
			}
			p.pos++
			t.Field, t.Name = f, name.literal()
			if t.Name == "" {
				return Term{}, errorAt(name.at, "a name is missing here")
			}
			return p.values(t, start)
		}
	}
	return p.words(t)
}

// field parses the name of a field. The parameter "text" is everything before the colon, and it
// begins at the current position.
func (p *parser) field(t *Term, text string) error {
	head, name, dotted := strings.Cut(text, ".")
	f, ok := fieldNamed(head, p.o.Fields)
	switch {
	case !ok:
		list := make([]string, len(p.o.Fields))
		for i, f := range p.o.Fields {
			list[i] = string(f)
		}
		meant := didYouMean(strings.ToLower(head), list)
		if meant == "" && p.o.Body != nil && p.o.Body(text) {
			meant = " (did you mean body." + quotable(text) + "?)"
		}
		return errorAt(
			p.pos, "there is no field %q%s; the fields are %s; put text that contains a colon in quotes",
			quotable(text), meant, strings.Join(list, ", "),
		)
	case f != Header && f != Body && dotted:
		return errorAt(p.pos+len(head), "%s has no parts: it is written %s:", f, f)
	case f == Header && !dotted:
		return errorAt(p.pos+len(head), "a header is named behind a dot, for example header.x-tenant:48213")
	case f == Body && !dotted:
		return errorAt(p.pos+len(head), "a field of the body is named behind a dot, for example body.customer.id:48213")
	case dotted && name == "":
		return errorAt(p.pos+len(text), "a name is missing here")
	case strings.Contains(name, "*"):
		return errorAt(
			p.pos+strings.IndexByte(text, '*'), "a name has no stars; put one that is part of the name in quotes",
		)
	}
	t.Field, t.Name = f, name
	return nil
}

// values parses the values of a term. The parameter "start" is the position at which the field of
// the term begins.
func (p *parser) values(t Term, start int) (Term, error) {
	path := string(t.Field)
	if t.Name != "" {
		path += "." + t.Name
	}
	switch {
	case t.Field == Sort && t.Not:
		return Term{}, errorAt(start, "an order is not negated: sort:oldest and sort:received are opposites")
	case p.o.Masked != nil && p.o.Masked(path):
		return Term{}, errorAt(start, "%s is masked: letters cannot be found by it", quotable(path))
	case t.Field == Body && !p.o.Look && (p.o.Body == nil || !p.o.Body(t.Name)):
		return Term{}, errorAt(
			start,
			"%s is not indexed, so only a list looks for it: add %s to search.fields of the configuration, or search for the text",
			quotable(path), quotable(t.Name),
		)
	}
	for read := 0; ; read++ {
		if read == maxValues {
			return Term{}, errorAt(p.pos, "a term has at most %d values", maxValues)
		}
		text, err := p.value()
		if err != nil {
			return Term{}, err
		}
		v, err := readValue(t.Field, text, p.o.Now)
		var here *Error
		if errors.As(err, &here) {
			return Term{}, here
		}
		if err != nil {
			return Term{}, &Error{text.at, err.Error()}
		}
		t.add(v)
		if !p.nextIs(",") {
			return t, nil
		}
		if t.Field == Age || t.Field == Since || t.Field == Before || t.Field == Until || t.Field == Sort {
			return Term{}, errorAt(p.pos, "%s has one value", t.Field)
		}
		p.pos++
	}
}

// words parses a term that is free text.
func (p *parser) words(t Term) (Term, error) {
	t.Field = Words
	if p.nextIs(`"`) {
		text, err := p.quoted(space, "after a closing quote comes a space or the end", false)
		if err != nil {
			return Term{}, err
		}
		if !searchable(text.literal()) {
			return Term{}, errorAt(text.at, "there is no word to search for in these quotes")
		}
		t.Values = []Value{literally(text.literal())}
		return t, nil
	}
	text := p.unquoted(space + `"`)
	raw := p.text[text.at:p.pos]
	switch {
	case p.nextIs(`"`):
		return Term{}, errorAt(p.pos, "quotes go around a whole text")
	case slices.Contains([]string{"AND", "OR", "NOT"}, raw):
		return Term{}, errorAt(
			text.at,
			"a space means AND, a comma means OR (state:dead,held) and a minus means NOT; put the word itself in quotes",
		)
	case !searchable(strings.Join(text.pieces, "")):
		return Term{}, errorAt(text.at, "there is no word to search for in %q", quotable(raw))
	case len(text.pieces) > 2 || len(text.pieces) == 2 && text.pieces[1] != "":
		return Term{}, errorAt(
			text.stars[0],
			`a star goes at the end of a word, for example time*; one that is part of the text is written \*`,
		)
	}
	if i := strings.IndexAny(raw, "<>"); i > 0 {
		if f, _ := fieldNamed(raw[:i], p.o.Fields); f == Attempts || f == Size || f == Age {
			return Term{}, errorAt(
				text.at+i, "a colon is missing here, for example %s:%s; put text with a comparison in quotes", f,
				quotable(raw[i:]),
			)
		}
	}
	if len(text.pieces) == 1 {
		t.Values = []Value{literally(text.pieces[0])}
	} else {
		t.Values = []Value{{Raw: pattern(text.pieces), Pattern: text.pieces}}
	}
	return t, nil
}
