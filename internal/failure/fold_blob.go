package failure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// readBlob reads JSON inside a text, or a dictionary or list in the form that Python or Ruby
// prints. It removes the contents and keeps the brackets. It also keeps the values of members such
// as "code", in which other services report errors. For example, {"code": "card_declined",
// "charge": "ch_17"} becomes {card_declined}. An incomplete blob extends to the end of the text.
func (f *folder) readBlob() bool {
	open := f.src[f.at]
	rest := strings.TrimLeftFunc(
		f.src[f.at+1:], func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) },
	)
	if rest == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(rest)
	switch {
	case isQuote(first):
	case open == '{' && first == '}', open == '[' && first == ']':
	case open == '[' && (first == '{' || first == '['):
	default:
		return false
	}
	said, end := scanBlob(f.src[f.at:], first == '\'')
	f.at += end
	f.addPiece(mark, string(open))
	for i, s := range said {
		if i > 0 {
			f.addPiece(mark, "|")
		}
		for j, w := range strings.Fields(s) {
			if j > 0 {
				f.addPiece(space, " ")
			}
			f.putChunk(w)
		}
	}
	f.addPiece(mark, string(open+2)) // } and ] come two code points after { and [
	return true
}

// telling contains the names of the members that describe an error. Their values are kept.
var telling = wordSet("code error error_code errorCode reason title")

const maxSaid = 3

// scanBlob returns the length of the blob at the beginning of a text. A blob is JSON, or a
// dictionary or list in the form that Python or Ruby prints. scanBlob also returns the values of
// members that describe an error, whose names are in the set "telling". It omits a value that does
// not consist of words.
func scanBlob(s string, apostrophes bool) (said []string, end int) {
	depth, key, colon := 0, "", false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\'' && apostrophes:
			from := i + 1
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			text := s[from:min(i, len(s))]
			if colon && telling[key] && isWords(text) && len(said) < maxSaid {
				said = append(said, text)
			}
			key, colon = text, false
		case c == '{' || c == '[':
			depth++
			key, colon = "", false
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return said, i + 1
			}
			key, colon = "", false
		case c == ':':
			colon = true
		case c == ',':
			key, colon = "", false
		}
	}
	return said, len(s)
}

// isWords reports whether a text consists only of words.
func isWords(s string) bool {
	if s == "" || len(s) > 80 || strings.Trim(s, " ._-") == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x80 || !isLetter(c) && strings.IndexByte(" ._-", c) < 0 {
			return false
		}
	}
	return true
}
