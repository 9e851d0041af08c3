package query

import "strings"

// text is a value as parsed.
type text struct {
	at     int      // start position
	pieces []string // between the stars
	stars  []int    // their positions
}

func (t text) literal() string { return strings.Join(t.pieces, "*") }

func (t *text) byte(c byte) { t.pieces[len(t.pieces)-1] += string([]byte{c}) }

// star begins a new piece. Adjacent stars count as one.
func (t *text) star(pos int) {
	if len(t.pieces) == 1 || t.pieces[len(t.pieces)-1] != "" {
		t.pieces = append(t.pieces, "")
	}
	t.stars = append(t.stars, pos)
}

// value parses one value, quoted or plain, and stops before the comma, space or end.
func (p *parser) value() (text, error) {
	if p.at(`"`) {
		return p.quoted(","+space, "after a closing quote comes a comma, a space or the end", true)
	}
	t := p.plain(`,"` + space)
	switch {
	case p.at(`"`):
		return text{}, mistake(p.pos, "quotes go around a whole value")
	case p.pos == t.at:
		return text{}, mistake(t.at, `a value is missing here; an empty one is written ""`)
	}
	return t, nil
}

// plain reads up to one of the given bytes. A backslash makes a following star literal. Before any
// other byte, the backslash is part of the text.
func (p *parser) plain(end string) text {
	t := text{at: p.pos, pieces: []string{""}}
	for ; p.pos < len(p.text) && !p.at(end); p.pos++ {
		switch {
		case strings.HasPrefix(p.text[p.pos:], `\*`):
			p.pos++
			t.byte('*')
		case p.at("*"):
			t.star(p.pos)
		default:
			t.byte(p.text[p.pos])
		}
	}
	return t
}

// quoted parses a quoted text, which must be followed by one of the given bytes or the end. Without
// globs, stars are literal.
func (p *parser) quoted(next, want string, globs bool) (text, error) {
	t := text{at: p.pos, pieces: []string{""}}
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch {
		case p.at(`\`) && p.pos+1 < len(p.text):
			p.pos++
			t.byte(p.text[p.pos])
		case p.at("*") && globs:
			t.star(p.pos)
		case p.at(`"`):
			p.pos++
			if p.pos < len(p.text) && !p.at(next) {
				return text{}, &Error{p.pos, want}
			}
			return t, nil
		default:
			t.byte(p.text[p.pos])
		}
	}
	return text{}, &Error{t.at, "this quote is not closed"}
}
