package payload

import (
	"strings"
)

// jsonReader splits valid JSON into tokens. It never fails. If the JSON is not valid, its results
// are meaningless, but it still ends.
type jsonReader struct {
	src []byte
	at  int
}

func (r *jsonReader) space() {
	for r.at < len(r.src) && (r.src[r.at] == ' ' || r.src[r.at] == '\t' || r.src[r.at] == '\n' || r.src[r.at] == '\r') {
		r.at++
	}
}

// peek returns the first byte of the next token, or 0 at the end.
func (r *jsonReader) peek() byte {
	r.space()
	if r.at < len(r.src) {
		return r.src[r.at]
	}
	return 0
}

// token returns the next string, number or word. The source is valid JSON, so the end of the token
// is easy to find.
func (r *jsonReader) token() []byte {
	r.space()
	from := r.at
	if r.at < len(r.src) && r.src[r.at] == '"' {
		for r.at++; r.at < len(r.src) && r.src[r.at] != '"'; r.at++ {
			if r.src[r.at] == '\\' {
				r.at++
			}
		}
		r.at = min(r.at+1, len(r.src))
		return r.src[from:r.at]
	}
	for r.at < len(r.src) && !strings.ContainsRune(" \t\r\n,:]}", rune(r.src[r.at])) {
		r.at++
	}
	if r.at == from && r.at < len(r.src) {
		r.at++ // cannot happen in valid JSON, but the reader must always advance
	}
	return r.src[from:r.at]
}

// skip skips one value.
func (r *jsonReader) skip() {
	depth := 0
	for r.at < len(r.src) {
		switch r.peek() {
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case ',', ':':
			r.at++
		case 0:
			return
		default:
			r.token()
		}
		if depth <= 0 {
			return
		}
	}
}
