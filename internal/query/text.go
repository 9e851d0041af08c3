package query

import "strings"

// text is a value that the parser has read.
type text struct {
	at     int      // position in the query at which the value begins
	pieces []string // pieces of the value between its stars
	stars  []int    // positions of the stars in the query
}

func (t text) literal() string { return strings.Join(t.pieces, "*") }

func (t *text) byte(c byte) { t.pieces[len(t.pieces)-1] += string([]byte{c}) }

// star ends one piece of a value and begins the next one. A value with stars is stored as pieces:
// sms-*-eu has the pieces "sms-" and "-eu". Several stars in a row count as one.
func (t *text) star(pos int) {
	if len(t.pieces) == 1 || t.pieces[len(t.pieces)-1] != "" {
		t.pieces = append(t.pieces, "")
	}
	t.stars = append(t.stars, pos)
}

// value parses one value, with or without quotes. It stops before the comma or space that follows
// the value.
func (p *parser) value() (text, error) {
	if p.nextIs(`"`) {
		return p.quoted(","+space, "after a closing quote comes a comma, a space or the end", true)
	}
	t := p.unquoted(`,"` + space)
	switch {
	case p.nextIs(`"`):
		return text{}, errorAt(p.pos, "quotes go around a whole value")
	case p.pos == t.at:
		return text{}, errorAt(t.at, `a value is missing here; an empty one is written ""`)
	}
	return t, nil
}

// unquoted parses a text without quotes, which ends before one of the given bytes. A backslash
// before a star makes the star literal. Any other backslash is part of the text.
func (p *parser) unquoted(end string) text {
	t := text{at: p.pos, pieces: []string{""}}
	for ; p.pos < len(p.text) && !p.nextIs(end); p.pos++ {
		switch {
		case strings.HasPrefix(p.text[p.pos:], `\*`):
			p.pos++
			t.byte('*')
		case p.nextIs("*"):
			t.star(p.pos)
		default:
			t.byte(p.text[p.pos])
		}
	}
	return t
}

// quoted parses a text in quotes. The closing quote must be followed by one of the bytes in the
// parameter "followers", or by the end of the query. If it is not, the error has the text of the
// parameter "want". If the parameter "globs" is false, stars are literal.
func (p *parser) quoted(followers, want string, globs bool) (text, error) {
	t := text{at: p.pos, pieces: []string{""}}
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch {
		case p.nextIs(`\`) && p.pos+1 < len(p.text):
			p.pos++
			t.byte(p.text[p.pos])
		case p.nextIs("*") && globs:
			t.star(p.pos)
		case p.nextIs(`"`):
			p.pos++
			if p.pos < len(p.text) && !p.nextIs(followers) {
				return text{}, &Error{p.pos, want}
			}
			return t, nil
		default:
			t.byte(p.text[p.pos])
		}
	}
	return text{}, &Error{t.at, "this quote is not closed"}
}
