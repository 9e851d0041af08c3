package failure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quoted values vary: `order "17" of 'anna' not found`. Quoted names do not vary, and they can be
// the only difference between two causes: `column "emial" does not exist`. Quoted text is therefore
// removed unless it is a name in the source code or the schema. It counts as a name in these cases:
//
//   - a word before or after it says what kind of thing it is: column "a", property 'name',
//     "email" is required
//   - it has the form of a class name: Acme.Orders.Placed, App\Message\Placed, Net::HTTP,
//     OrderPlaced
//   - it is the whole text: the message of a KeyError is only 'user_id'
//
// Names are kept without their quotes.

// quotes contains the pairs of opening and closing quotes. Some opening quotes have two closing
// quotes. For example, Ruby before 3.4 opens with a backquote and closes with an apostrophe.
var quotes = [...]struct{ open, shut, also rune }{
	{'"', '"', 0},
	{'\'', '\'', 0},
	{'`', '`', '\''},
	{'“', '”', 0},
	{'„', '“', '”'},
	{'‘', '’', 0},
	{'«', '»', 0},
}

func isQuote(r rune) bool { return strings.ContainsRune("\"'`“”„‘’«»", r) }

// readQuote reads a quoted text, or a quote that is never closed. A quote that is never closed
// becomes a space.
func (f *folder) readQuote(r rune, size int) bool {
	if !isQuote(r) {
		return false
	}
	for i, q := range quotes {
		if q.open != r || f.none[i] || (r == '\'' || r == '‘') && endsWord(f.src[:f.at]) {
			continue
		}
		end, after := f.closingQuote(f.at+size, q.shut, q.also)
		if end < 0 {
			f.none[i] = true
			continue
		}
		inner := f.src[f.at+size : end]
		name := strings.TrimSuffix(strings.Trim(inner, ` \`), "()")
		keep := isName(name) && (naming[f.wordBefore()] || saysName(f.src[after:]) || isClass(name))
		f.at = after
		f.addSpace()
		if folded := foldChunkOf(name); keep && folded != "#" {
			f.addPiece(word, folded)
		} else {
			f.addPiece(varies, "#")
		}
		f.glue = true
		return true
	}
	f.at += size
	f.addPiece(space, " ")
	return true
}

func foldChunkOf(name string) string {
	if name == "" {
		return "#"
	}
	return foldChunk(name)
}

// closingQuote returns the position of the closing quote, and the position after it. If there is no
// closing quote, the result "end" is -1. An apostrophe inside a word is not a closing quote.
func (f *folder) closingQuote(from int, shut, also rune) (end, after int) {
	for i := from; i < len(f.src); {
		r, size := utf8.DecodeRuneInString(f.src[i:])
		if r == '\\' && shut == '"' && i+1 < len(f.src) && f.src[i+1] == '\\' {
			i += 2
			continue
		}
		if (r == shut || r == also && also != 0) && ((r != '\'' && r != '’') || !beginsWord(f.src[i+size:])) {
			return i, i + size
		}
		i += size
	}
	return -1, 0
}

// wordBefore returns the last word before a quote, in lower case. If anything but spaces, colons,
// equals signs and opening brackets is between the word and the quote, it returns "".
func (f *folder) wordBefore() string {
	for i := len(f.out) - 1; i >= max(0, len(f.out)-4); i-- {
		switch t := f.out[i]; {
		case t.kind == word:
			return strings.ToLower(t.text)
		case t.kind == space || t.text == ":" || t.text == "=" || t.text == "(":
		default:
			return ""
		}
	}
	return ""
}

// naming contains words that say what a quoted name next to them stands for. For example, the word
// "column" says that the name is that of a column.
var naming = wordSet(
	"column columns table relation field fields property properties attribute parameter argument param constraint index view sequence function method procedure class type interface module package schema database enum variable operator trigger role namespace option setting header template queue exchange reading member tag command trait annotation directive keyword identifier symbol import export plugin",
)

// saying contains words that may follow a quoted name but never a quoted value.
var saying = []string{
	"is required", "is not defined", "is not a function", "is not allowed", "is undefined", "is null", "must be",
	"must not", "must have", "cannot be null", "cannot be blank", "can't be blank", "may not be null", "should not be",
}

func saysName(rest string) bool {
	rest = strings.TrimLeft(rest[:min(len(rest), 64)], " ")
	behind := strings.TrimLeftFunc(rest, unicode.IsLetter)
	return beginsWithAny(rest, saying) || naming[rest[:len(rest)-len(behind)]]
}

// isName reports whether a text could be a name in source code or in a schema. Such a name consists
// of letters, digits and underscores, and may have several parts.
func isName(s string) bool {
	if s == "" || len(s) > 128 || strings.Contains(s, "..") {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x80 && isLetter(c), c == '_', c == '$':
		case isDigit(c) && i > 0, (c == '.' || c == ':' || c == '\\') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}

// isClass reports whether a name must be the name of a class or a namespace. It must be one if it
// has several parts and one of them begins with a capital letter, or if it is written LikeThis.
func isClass(s string) bool {
	parts, large, humps := 1, false, 0
	for i := 0; i < len(s); i++ {
		first := i == 0 || strings.IndexByte(`.:\`, s[i-1]) >= 0
		switch {
		case strings.IndexByte(`.:\`, s[i]) >= 0:
			parts++
		case s[i] >= 'A' && s[i] <= 'Z' && i+2 < len(s) && kindOf(s[i+1]) == 'a' && kindOf(s[i+2]) == 'a':
			large = large || first
			humps++
		}
	}
	if parts > 1 {
		return large
	}
	return humps > 1 && s[0] >= 'A' && s[0] <= 'Z' && !strings.ContainsAny(s, numbers)
}

// unquoted removes the quotes around a text if they enclose the whole text.
func unquoted(text string) string {
	for range 4 {
		text = strings.TrimSpace(text)
		if len(text) < 2 || len(text) > 512 {
			return text
		}
		f := folder{src: text}
		r, size := utf8.DecodeRuneInString(text)
		for _, q := range quotes {
			if end, after := f.closingQuote(size, q.shut, q.also); q.open == r && after == len(text) && end > 0 {
				f.at = end
				break
			}
		}
		if f.at == 0 {
			return text
		}
		text = text[size:f.at]
	}
	return text
}

func endsWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '#')
}

func beginsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '#')
}
